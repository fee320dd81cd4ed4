// Messages and hints name commands as `kf push APP`; if the program was started under another name, they show that name.

import { allNames } from '../cf/cf-commands.ts';

const names = allNames().filter((name) => name.length > 1);
/** Only where a command follows: the product is still called kf. Commands of kf as a plugin of kubectl are left unchanged. */
const command = new RegExp(`(?<![\\w./-]|kubectl )kf (?=(?:${names.join('|')})(?![\\w-]))`, 'g');

/** `text` with `bin` in place of kf in every command. */
export function commandsAs(text: string, bin: string): string {
  return text.replace(command, `${bin} `);
}

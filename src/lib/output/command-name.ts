// Commands in messages and hints are written as `kf push APP`; who started kf under another name reads that name.

import { allNames } from '../cf/cf-commands.ts';

const names = allNames().filter((name) => name.length > 1);
/** Only where a command follows: the product stays kf. What names kf as a plugin of kubectl already does so. */
const command = new RegExp(`(?<![\\w./-]|kubectl )kf (?=(?:${names.join('|')})(?![\\w-]))`, 'g');

/** `text` with every command of kf named as one of `bin`. */
export function commandsAs(text: string, bin: string): string {
  return text.replace(command, `${bin} `);
}

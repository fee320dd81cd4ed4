// docs/commands: a page per command with what `kf help COMMAND` prints.

import { helpSubject, type CommandStatics } from '../src/declared.ts';
import { commandHelp } from '../src/lib/output/help.ts';

const note = '<!-- Written by `node tools/generate.ts` from src/commands: change it there. -->';

/** @param known the commands that have a page */
async function pageOf(name: string, known: readonly string[]): Promise<{ file: string; text: string }> {
  const url = new URL(`../src/commands/${name}.ts`, import.meta.url);
  const { default: command } = (await import(url.href)) as { default: CommandStatics };
  const subject = helpSubject(command, name);
  const help = commandHelp(subject, 'kf').join('\n').trimEnd();
  const related = subject.seeAlso
    .filter((other) => known.includes(other))
    .map((other) => `[${other}](${other}.md)`)
    .join(' · ');
  const links = related === '' ? '' : `\nSee also: ${related}\n`;
  return { file: `docs/commands/${name}.md`, text: `${note}\n\n# kf ${name}\n\n\`\`\`text\n${help}\n\`\`\`\n${links}` };
}

/** One page for each command, and the list of them. */
export async function commandPages(commandNames: readonly string[]): Promise<{ file: string; text: string }[]> {
  const names = commandNames.toSorted();
  const list = names.map((name) => `- [${name}](${name}.md)`);
  const index = { file: 'docs/commands/README.md', text: `${note}\n\n# Commands of kf\n\n${list.join('\n')}\n` };
  return [index, ...(await Promise.all(names.map((name) => pageOf(name, names))))];
}

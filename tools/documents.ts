// The parts of README and docs that are generated from the code: the table of commands, the table of exit codes and the index of decisions.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { FailureClass } from '../src/lib/errors.ts';
import { classCodes } from '../src/lib/output/exit-codes.ts';
import { decisionRows } from './decisions.ts';
import { listCommands } from '../src/lib/output/overview.ts';

const builtIn: Record<string, string> = { help: 'show all commands, or the help of one', version: 'show the version' };

/** The meaning of each class, for a user who finds it in a log. A new class without a text here does not compile. */
const meanings: Readonly<Record<FailureClass, string>> = {
  failed: 'any failure that has no class of its own',
  usage: 'wrong command line, manifest or settings, no target, or a cf command that kf does not have yet; nothing was changed',
  'not-found': 'there is no such app, org, space, service, route, domain or file; or kf is not set up in the cluster',
  forbidden: 'the user lacks a right (`error.details.missingRight` names it) or is not known',
  conflict: 'a name or route is taken; another client changed the object; or the versions of CLI and controller do not fit',
  upload: 'the registry did not accept the source',
  build: 'the build failed; kf printed its log',
  start: 'an instance did not start, or crashed (`error.details` has the instance, the cause and its last lines)',
  timeout: 'it took too long; the message says what kf waited for',
  quota: 'the change would exceed a quota of the space',
  unreachable: 'the API server or the registry does not answer',
  accepted: 'the change was written, but no controller has processed it; or a deletion has begun, but something blocks it',
  bug: 'an error in kf itself, printed with a stack trace',
  interrupted: 'Ctrl-C or SIGTERM',
};

interface CommandClass {
  default: { summary?: string };
}

/** The file's text with the part between its two markers replaced. */
async function withSection(root: string, file: string, name: string, lines: string[]): Promise<{ file: string; text: string }> {
  const text = await readFile(join(root, file), 'utf8');
  const [start, end] = [`<!-- ${name}: written by tools/generate.ts -->\n`, `<!-- end of ${name} -->`];
  const [from, to] = [text.indexOf(start), text.indexOf(end)];
  if (from === -1 || to < from) throw new Error(`${file} lacks the marks of its section '${name}'.`);
  return { file, text: `${text.slice(0, from + start.length)}\n${lines.join('\n')}\n\n${text.slice(to)}` };
}

async function summaryOf(name: string): Promise<string> {
  const { default: command } = (await import(new URL(`../src/commands/${name}.ts`, import.meta.url).href)) as CommandClass;
  if (command.summary === undefined) throw new Error(`src/commands/${name}.ts has no summary.`);
  return command.summary;
}

/** The summaries of the commands for `kf help`, which loads no command. */
export async function summariesFile(commandNames: readonly string[]): Promise<{ file: string; text: string }> {
  const rows = await Promise.all(
    commandNames.toSorted().map(async (name) => `  ${JSON.stringify(name)}: ${JSON.stringify(await summaryOf(name))},`),
  );
  const head = '// Written by tools/generate.ts from src/commands: a summary is changed there.\n\n';
  const type = 'export const summaries: Readonly<Record<string, string>> = {';
  return { file: 'src/lib/cf/summaries.generated.ts', text: `${head}${type}\n${rows.join('\n')}\n};\n` };
}

/** README.md, docs/exit-codes.md and docs/decisions/README.md with their generated tables. */
export async function documentFiles(root: string, commandNames: readonly string[]): Promise<{ file: string; text: string }[]> {
  const isAvailable = (name: string): boolean => name in builtIn || commandNames.includes(name);
  const rows = await Promise.all(
    listCommands({ all: false, isAvailable }).map(async (row) => {
      const names = row.alias === undefined ? `\`${row.name}\`` : `\`${row.name}\`, \`${row.alias}\``;
      return `| ${names} | ${builtIn[row.name] ?? (await summaryOf(row.name))} |`;
    }),
  );
  const codes = Object.entries(classCodes).map(([name, code]) => `| \`${name}\` | ${code} | ${meanings[name as FailureClass]} |`);
  return Promise.all([
    withSection(root, 'README.md', 'commands', ['| command | what it does |', '| --- | --- |', ...rows]),
    withSection(root, 'docs/exit-codes.md', 'classes', ['| class | number | meaning |', '| --- | --- | --- |', ...codes]),
    withSection(root, 'docs/decisions/README.md', 'decisions', ['| number | decision |', '| --- | --- |', ...(await decisionRows(root))]),
  ]);
}

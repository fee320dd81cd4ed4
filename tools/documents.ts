// The parts of README and docs that follow from the code: the table of commands, the table of exit codes and the index of decisions.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { FailureClass } from '../src/lib/errors.ts';
import { classCodes } from '../src/lib/output/exit-codes.ts';
import { decisionRows } from './decisions.ts';
import { listCommands, type CommandRow } from '../src/lib/output/overview.ts';

const builtIn: Record<string, string> = { help: 'show all commands, or the help of one', version: 'show the version' };

/** What each class means to the one who reads it in a log. The compiler asks for a new class here. */
const meanings: Readonly<Record<FailureClass, string>> = {
  failed: 'none of the others',
  usage: 'wrong command line, manifest or settings, nothing targeted, or a cf command that kf does not have yet; nothing was changed',
  'not-found': 'no such app, org, space, service, route, domain, file; kf is not set up',
  forbidden: 'the user lacks a right (`error.details.missingRight` names it) or is not known',
  conflict: 'a name or route is taken; somebody else changed it meanwhile; the versions of CLI and controller do not fit',
  upload: 'the registry did not take the source',
  build: 'the build failed; its log was printed before',
  start: 'an instance did not start or did not stay (`error.details` says which, why, and its last lines)',
  timeout: 'it took too long; the message names what was awaited',
  quota: 'a quota of the space has no room for it',
  unreachable: 'the API server or the registry does not answer',
  accepted: 'written, but no controller has taken it up',
  bug: 'a mistake of kf itself; printed with a stack trace',
  interrupted: 'Ctrl-C or SIGTERM',
};

interface CommandClass {
  default: { summary?: string };
}

/** The file's text with what lies between its two marks replaced. */
async function withSection(root: string, file: string, name: string, lines: string[]): Promise<{ file: string; text: string }> {
  const text = await readFile(join(root, file), 'utf8');
  const [start, end] = [`<!-- ${name}: written by tools/generate.ts -->\n`, `<!-- end of ${name} -->`];
  const [from, to] = [text.indexOf(start), text.indexOf(end)];
  if (from === -1 || to < from) throw new Error(`${file} lacks the marks of its section '${name}'.`);
  return { file, text: `${text.slice(0, from + start.length)}\n${lines.join('\n')}\n\n${text.slice(to)}` };
}

async function summaryOf({ name, summary }: CommandRow): Promise<string> {
  const { default: command } = (await import(new URL(`../src/commands/${name}.ts`, import.meta.url).href)) as CommandClass;
  return command.summary ?? summary;
}

/** README.md, docs/exit-codes.md and docs/decisions/README.md with their tables as the repository has them. */
export async function documentFiles(root: string, commandNames: readonly string[]): Promise<{ file: string; text: string }[]> {
  const isThere = (name: string): boolean => name in builtIn || commandNames.includes(name);
  const rows = await Promise.all(
    listCommands({ all: false, isThere }).map(async (row) => {
      const names = row.alias === undefined ? `\`${row.name}\`` : `\`${row.name}\`, \`${row.alias}\``;
      return `| ${names} | ${builtIn[row.name] ?? (await summaryOf(row))} |`;
    }),
  );
  const codes = Object.entries(classCodes).map(([name, code]) => `| \`${name}\` | ${code} | ${meanings[name as FailureClass]} |`);
  return Promise.all([
    withSection(root, 'README.md', 'commands', ['| command | what it does |', '| --- | --- |', ...rows]),
    withSection(root, 'docs/exit-codes.md', 'classes', ['| class | number | meaning |', '| --- | --- | --- |', ...codes]),
    withSection(root, 'docs/decisions/README.md', 'decisions', ['| number | decision |', '| --- | --- |', ...(await decisionRows(root))]),
  ]);
}

// docs/cf-commands.md: the comparison as a page, with the totals at its head.

import { flagName } from './data.ts';
import { hiddenGroup, type ComparedCommand, type Comparison, type Entry, type Status } from './compare.ts';

const statuses: readonly Status[] = ['done', 'differs', 'ignored', 'refused', 'open'];

const legend: Readonly<Record<Status, string>> = {
  done: 'there, with the effect that it has in cf; a test shows it',
  differs: 'there, but something is different on purpose',
  ignored: 'accepted, without an effect',
  refused: 'not there; kf says what to use instead',
  open: 'not there, and not decided',
};

const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('<', '&lt;');
const code = (text: string): string => `\`${cell(text)}\``;

function noteOfEntry({ name, status, note, values }: Entry): string[] {
  const own = status === 'done' ? [] : [`${code(name)} ${status}: ${cell(note)}`];
  const single = Object.entries(values).map(([value, { refused, ignored, differs }]) => {
    const word = refused !== undefined ? 'refused' : ignored !== undefined ? 'ignored' : 'differs';
    return `${code(`${name} ${value}`)} ${word}: ${cell(refused ?? ignored ?? differs ?? '')}`;
  });
  return [...own, ...single];
}

function notesOf({ note, entries, ownFlags }: ComparedCommand): string {
  const own = ownFlags.map(({ name, char }) => code(char === undefined ? `--${name}` : flagName({ long: name })));
  const parts = [...(note === '' ? [] : [cell(note)]), ...entries.flatMap(noteOfEntry)];
  return [...parts, ...(own.length === 0 ? [] : [`only in kf: ${own.join(', ')}`])].join('<br>');
}

function rowOf(command: ComparedCommand): string {
  const { name, alias } = command.facts;
  const names = alias === undefined ? code(name) : `${code(name)}, ${code(alias)}`;
  return `| ${names} | ${command.facts.tier} | ${command.status} | ${notesOf(command)} |`;
}

const count = (found: readonly Status[], status: Status): string => String(found.filter((one) => one === status).length);

function totalRow(title: string, found: readonly Status[]): string {
  return `| ${title} | ${found.length} | ${statuses.map((status) => count(found, status)).join(' | ')} |`;
}

function totals({ commands, global }: Comparison): string[] {
  const ofTier = (tier: number): ComparedCommand[] => commands.filter(({ facts }) => facts.tier === tier && facts.group !== hiddenGroup);
  const flags = [...commands, global].flatMap(({ entries }) => entries.filter(({ kind }) => kind === 'flag').map(({ status }) => status));
  return [
    `| | all | ${statuses.join(' | ')} |`,
    `| --- | --- | ${statuses.map(() => '---').join(' | ')} |`,
    ...[1, 2, 3].map((tier) =>
      totalRow(
        `commands of tier ${tier}`,
        ofTier(tier).map(({ status }) => status),
      ),
    ),
    totalRow('flags of the commands that are there', flags),
  ];
}

/** Path and text of the page. */
export function documentOf(comparison: Comparison): { file: string; text: string } {
  const groups = Map.groupBy(comparison.commands, ({ facts }) => facts.group);
  const head = ['| command | tier | status | what to know |', '| --- | --- | --- | --- |'];
  const lines = [
    '<!-- Written by `node tools/generate.ts` from tools/surface and src/commands: change it there. -->',
    "# kf's commands and cf's",
    '',
    'Each command, argument, flag and variable of the cf CLI (v8), and what kf has of it. `kf migrate check FILE...` reads scripts and CI files with it. Tier 1 is the work of a developer, tier 2 what teams need, tier 3 the rest.',
    '',
    ...Object.entries(legend).map(([status, meaning]) => `- **${status}**: ${meaning}`),
    '',
    ...totals(comparison),
    '',
    ...[...groups].flatMap(([group, commands]) => [`## ${group}`, '', ...head, ...commands.map(rowOf), '']),
    '## Every command',
    '',
    '| flag or variable | status | what to know |',
    '| --- | --- | --- |',
    ...comparison.global.entries.map((entry) => `| ${code(entry.name)} | ${entry.status} | ${cell(entry.note)} |`),
    '',
  ];
  return { file: 'docs/cf-commands.md', text: lines.join('\n') };
}

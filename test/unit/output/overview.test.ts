import { readdirSync } from 'node:fs';
import { expect, it } from 'vitest';
import { cfCommands, kfCommands } from '../../../src/lib/cf/cf-commands.ts';
import { plainInk } from '../../../src/lib/output/ink.ts';
import { layOut } from '../../../src/lib/output/layout.ts';
import { listCommands, overviewHelp } from '../../../src/lib/output/overview.ts';

const names = readdirSync('src/commands').map((file) => file.replace(/\.ts$/, ''));
const isAvailable = (name: string): boolean => names.includes(name) || ['help', 'version'].includes(name);

it('the overview shows each command with the summary of its own help', async () => {
  const listed = new Map(listCommands({ all: false, isAvailable }).map(({ name, summary }) => [name, summary]));
  for (const name of names) {
    const { default: command } = (await import(`../../../src/commands/${name}.ts`)) as { default: { summary: string } };
    expect([name, listed.get(name)]).toEqual([name, command.summary]);
  }
});

it('the overview has no own label for a command of kf', () => {
  const labelled = [...Object.values(cfCommands), kfCommands].flat().filter(([name, , label]) => names.includes(name) && label !== '');
  expect(labelled).toEqual([]);
});

it('the overview fits into 80 columns', () => {
  const lines = layOut(overviewHelp({ bin: 'kf', version: '1.0.0', all: false, isAvailable }), { ink: plainInk, message: (text) => text });
  expect(lines.filter((line) => line.length > 80)).toEqual([]);
});

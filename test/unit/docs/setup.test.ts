import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { stringify } from 'yaml';
import Setup from '../../../src/commands/setup.ts';
import { classCodes } from '../../../src/lib/output/exit-codes.ts';
import { standard } from '../../../src/lib/ops/install/request.ts';
import { knownKeys, settingsSchema } from '../../../src/lib/ops/install/settings-schema.ts';

const page = (name: string): string => readFileSync(new URL(`../../../docs/${name}.md`, import.meta.url), 'utf8');

test('docs/setup.md has every key of setup.yaml and every flag of kf setup', () => {
  const text = page('setup');
  const flags = Object.keys(Setup.flags).filter((name) => !['file', 'output'].includes(name));
  expect([...knownKeys.map((key) => `\`${key}\``), ...flags.map((flag) => `--${flag}`)].filter((word) => !text.includes(word))).toEqual([]);
});

/** Rows of the table of options: keys and default. */
const rows = page('setup')
  .split('\n')
  .flatMap((line): { keys: string[]; standard: string }[] => {
    const [, , keys = '', standard = ''] = line.split(/(?<!\\)\|/).map((cell) => cell.trim());
    return line.startsWith('|') && /^`/.test(keys) ? [{ keys: keys.split(', ').map((key) => key.replaceAll('`', '')), standard }] : [];
  });

test('the table of setup.yaml lists the keys of its schema and no others', () => {
  expect(rows.flatMap(({ keys }) => keys).toSorted()).toEqual(knownKeys.toSorted());
});

test('the defaults in the table are those of the code', () => {
  const told = new Map(rows.flatMap(({ keys, standard: text }) => keys.map((key) => [key, text.replaceAll('`', '')] as const)));
  const { images: _, ...others } = standard;
  const shown = (value: unknown): string => stringify(value, { collectionStyle: 'flow', flowCollectionPadding: false }).trim();
  const held = Object.entries(others).map(([key, value]) => [key, shown(value)]);
  expect(Object.fromEntries(held.map(([key = '']) => [key, told.get(key)]))).toEqual(Object.fromEntries(held));
});

test('nested keys are on the page', () => {
  const inner = Object.values(settingsSchema).flatMap((rule) => (rule.type === 'map' ? Object.keys(rule.keys) : []));
  expect(inner.filter((key) => !page('setup').includes(key))).toEqual([]);
});

test('docs/troubleshooting.md has every class of failure', () => {
  const text = page('troubleshooting');
  expect(Object.keys(classCodes).filter((name) => !text.includes(`| ${name} |`))).toEqual([]);
});

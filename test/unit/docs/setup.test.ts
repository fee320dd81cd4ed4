import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import Setup from '../../../src/commands/setup.ts';
import { classCodes } from '../../../src/lib/output/exit-codes.ts';
import { knownKeys } from '../../../src/lib/ops/install/request.ts';

const page = (name: string): string => readFileSync(new URL(`../../../docs/${name}.md`, import.meta.url), 'utf8');

test('every key of setup.yaml and every flag of kf setup stands in its page', () => {
  const text = page('setup');
  const flags = Object.keys(Setup.flags).filter((name) => !['file', 'output'].includes(name));
  expect([...knownKeys.map((key) => `\`${key}\``), ...flags.map((flag) => `--${flag}`)].filter((word) => !text.includes(word))).toEqual([]);
});

test('every class of failure stands in the page on troubleshooting', () => {
  const text = page('troubleshooting');
  expect(Object.keys(classCodes).filter((name) => !text.includes(`| ${name} |`))).toEqual([]);
});

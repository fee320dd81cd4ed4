import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { compareAt } from '../../../tools/surface/read.ts';

const root = fileURLToPath(new URL('../../../', import.meta.url));

test('every command, argument, flag and variable of cf is there or decided, and every reference to a test is right', async () => {
  const { commands, problems } = await compareAt(root);
  expect(problems).toEqual([]);
  expect(commands.length).toBeGreaterThan(190);
  expect(commands.filter(({ status }) => status === 'open')).toEqual([]);
});

// State that reconcilers keep belongs to their controller.

import { expect, test } from 'vitest';
import { Memory, Remembered } from '../../../src/controller/runtime/memory.ts';

const part = new Remembered(() => new Map<string, number>());

test('a part is the same object each time, and another controller begins with an empty one', () => {
  const memory = new Memory();
  memory.of(part).set('a', 1);
  expect(memory.of(part).get('a')).toBe(1);
  expect(memory.of(new Remembered(() => new Map<string, number>())).size).toBe(0);
  expect(new Memory().of(part).size).toBe(0);
});

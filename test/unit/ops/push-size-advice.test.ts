import { expect, test } from 'vitest';
import { sizeAdvice } from '../../../src/lib/ops/push/artifact.ts';

test('a folder of a gibibyte and more is pushed with a word about .cfignore', () => {
  expect(sizeAdvice({ files: 9, bytes: 1024 ** 3 - 1 })).toBeUndefined();
  expect(sizeAdvice({ files: 12, bytes: 3.2 * 1024 ** 3 })).toBe(
    'The folder has 3.2G in 12 files; what the app does not need can be named in a file .cfignore.',
  );
});

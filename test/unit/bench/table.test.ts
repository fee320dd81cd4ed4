import { expect, test } from 'vitest';
import { mergeResults, renderTable, type Results } from '../../bench/table.ts';

const found = (when: string, measured: string): Results[string] => ({ when, rows: [{ what: 'a | b', reach: '≤ 1 s', measured }] });

test('the row of a bench that did not run stays, one that ran is replaced, and one that no longer exists is removed', () => {
  const before = { late: found('1', 'old'), early: found('1', 'old'), gone: found('1', 'old') };
  const merged = mergeResults(['early', 'never', 'late'], before, { late: found('2', 'new') });
  expect(merged).toEqual({ early: found('1', 'old'), late: found('2', 'new') });
  expect(Object.keys(merged)).toEqual(['early', 'late']);
  expect(renderTable(merged).split('\n').slice(2)).toEqual(['| a \\| b | ≤ 1 s | old |  | 1 |', '| a \\| b | ≤ 1 s | new |  | 2 |', '']);
});

import { expect, expectTypeOf, test } from 'vitest';
import { defined } from '../../../src/lib/defined.ts';

test('fields without a value leave no key, and the others keep their order', () => {
  const absent = undefined as string | undefined;
  const object = { first: 1, ...defined({ b: 'b', absent, zero: 0, empty: '', none: null }), last: 2 };
  expect(Object.keys(object)).toEqual(['first', 'b', 'zero', 'empty', 'none', 'last']);
  expect(JSON.stringify(object)).toBe('{"first":1,"b":"b","zero":0,"empty":"","none":null,"last":2}');
});

test('only fields that can be undefined become optional', () => {
  const path = undefined as string | undefined;
  expectTypeOf(defined({ name: 'a', path })).branded.toEqualTypeOf<{ name: string; path?: string }>();
});

import { describe, expect, test } from 'vitest';
import { Store } from '../../../src/controller/runtime/store.ts';
import { contains, diff, isEqual } from '../../../src/controller/runtime/merge-patch.ts';
import { compareResourceVersions, type KubeObject, type Stored } from '../../../src/lib/api/object.ts';

const object = (name: string, version: string, labels: Record<string, string> = {}, uid = `uid-${name}`): Stored => ({
  metadata: { name, namespace: 'ns', uid, resourceVersion: version, labels },
});
const store = () => {
  const made = new Store<KubeObject>();
  made.addIndex('app', (item) => Object.values(item.metadata.labels ?? {}));
  return made;
};

describe('Store', () => {
  test('compares versions as numbers of any length', () => {
    expect(compareResourceVersions('9', '10')).toBeLessThan(0);
    expect(compareResourceVersions('123456789012345678901', '123456789012345678900')).toBeGreaterThan(0);
    expect(compareResourceVersions('7', '7')).toBe(0);
  });

  test('never replaces a newer version of the same object by an older one', () => {
    const s = store();
    s.put(object('a', '12'));
    expect(s.put(object('a', '9'))).toBe(false);
    expect(s.get('ns', 'a')?.metadata.resourceVersion).toBe('12');
  });

  test('accepts an object that left the selector with a later version', () => {
    const s = store();
    s.put(object('a', '5'));
    s.remove(object('a', '6'));
    expect(s.put(object('a', '9'))).toBe(true);
    expect(s.replaceAll([], '20')).toHaveLength(1);
    expect(s.put(object('a', '20'))).toBe(false);
    expect(s.put(object('a', '21'))).toBe(true);
  });

  test('replaces an object by another one of the same name, whatever its version', () => {
    const s = store();
    s.put(object('a', '12'));
    expect(s.put(object('a', '11', {}, 'other'))).toBe(true);
  });

  test('does not accept an object again from a late answer after its deletion was seen', () => {
    const s = store();
    s.put(object('a', '5'));
    s.remove(object('a', '6'));
    expect(s.put(object('a', '5'))).toBe(false);
    expect(s.size).toBe(0);
  });

  test('updates indexes on changes and removals', () => {
    const s = store();
    s.put(object('a', '1', { app: 'x' }));
    s.put(object('b', '1', { app: 'x' }));
    s.put(object('a', '2', { app: 'y' }));
    expect(s.by('app', 'x').map((item) => item.metadata.name)).toEqual(['b']);
    s.remove(object('b', '3'));
    expect(s.by('app', 'x')).toEqual([]);
    expect(s.by('app', 'y')).toHaveLength(1);
    expect([s.count('app', 'x'), s.count('app', 'y')]).toEqual([0, 1]);
    expect(() => s.count('none', 'x')).toThrow('The store has no index "none".');
  });

  test('finds by a value the one object that has it, or all of them', () => {
    const s = store();
    const names = (): string[] => s.by('app', 'x').map((item) => item.metadata.name);
    for (const name of ['a', 'a', 'b', 'c']) s.put(object(name, '1', { app: 'x', also: 'x' }));
    expect([names(), s.count('app', 'x')]).toEqual([['a', 'b', 'c'], 3]);
    for (const name of ['b', 'a']) s.remove(object(name, '2'));
    expect([names(), s.count('app', 'x')]).toEqual([['c'], 1]);
    s.remove(object('c', '2'));
    expect([names(), s.count('app', 'x')]).toEqual([[], 0]);
  });

  test('removes objects that are missing in a list, but not those that were written after the list was made', () => {
    const s = store();
    s.put(object('old', '5'));
    s.put(object('new', '30'));
    expect(s.replaceAll([object('a', '7')], '20').map((item) => item.metadata.name)).toEqual(['old']);
    expect(s.list().map((item) => item.metadata.name)).toEqual(['new', 'a']);
  });
});

describe('merge patches', () => {
  test.each([
    ['equal states', { a: 1, b: [1, { c: 2 }] }, { b: [1, { c: 2 }], a: 1 }, undefined],
    ['a changed leaf', { a: { b: 1, c: 2 } }, { a: { b: 1, c: 3 } }, { a: { c: 3 } }],
    ['a removed key', { a: 1, b: 2 }, { a: 1 }, { b: null }],
    ['a key that was never there', { a: 1 }, { a: 1, b: undefined }, undefined],
    ['a changed list is sent whole', { a: [1, 2] }, { a: [1] }, { a: [1] }],
  ])('%s', (_name, from, to, patch) => {
    expect(diff(from, to)).toEqual(patch);
  });

  test('a declaration matches an object with additional fields', () => {
    expect(contains({ a: { b: 1, c: 2 }, d: [{ e: 1, f: 2 }] }, { a: { b: 1 }, d: [{ e: 1 }] })).toBe(true);
    expect(contains({ a: { b: 1 } }, { a: { b: 2 } })).toBe(false);
    expect(contains({ d: [1, 2] }, { d: [1] })).toBe(false);
  });

  test('a missing field and an undefined field are equal', () => {
    expect(isEqual({ a: undefined }, {})).toBe(true);
    expect(isEqual({ a: null }, {})).toBe(false);
  });
});

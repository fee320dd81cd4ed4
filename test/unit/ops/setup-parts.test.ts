import { readdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import { setupObject } from '../../../src/lib/ops/install/kinds.ts';
import { inOrder } from '../../../src/lib/ops/install/part.ts';
import { parts } from '../../../src/lib/ops/install/parts.generated.ts';

const part = (name: string, ...requires: string[]) => ({ name, requires });
const namesOf = (all: { name: string }[]): string[] => all.map(({ name }) => name);

test('parts are installed after those that they require, and otherwise by name', () => {
  const given = [
    part('gateway', 'kinds'),
    part('controller', 'kinds'),
    part('org', 'controller', 'gateway'),
    part('kinds', 'registry'),
    part('registry'),
  ];
  expect(namesOf(inOrder(given))).toEqual(['registry', 'kinds', 'controller', 'gateway', 'org']);
});

test('the order does not depend on the order of the list', () => {
  expect(namesOf(inOrder(parts.toReversed()))).toEqual(namesOf(inOrder(parts)));
});

test('parts that require each other are refused by name', () => {
  const given = [part('a', 'c'), part('b', 'a'), part('c', 'b'), part('d')];
  expect(() => inOrder(given)).toThrow('Parts of setup require each other: a, b, c.');
});

test('a part that requires itself is refused', () => {
  expect(() => inOrder([part('a', 'a')])).toThrow('Parts of setup require each other: a.');
});

test('a part that requires an unknown part is refused by name', () => {
  expect(() => inOrder([part('a', 'b')])).toThrow("The part 'a' of setup requires 'b', which is no part.");
});

test('a part has the name of its file, and each file is a part', () => {
  const folder = new URL('../../../src/lib/ops/install/parts/', import.meta.url);
  const files = readdirSync(folder).map((file) => file.replace(/\.ts$/, ''));
  expect(namesOf([...parts])).toEqual(files.toSorted());
});

test('the registry is installed before the kinds, the controller before the default org, and namespaces are removed last', () => {
  expect(namesOf(inOrder(parts))).toEqual([
    ...['namespaces', 'network', 'settings', 'programs', 'registry', 'kinds', 'network-check'],
    ...['policies', 'roles', 'controller', 'gateway', 'pages', 'org', 'internal-domain', 'space'],
  ]);
});

test.each([
  ['a kind', { apiVersion: 'v1', metadata: { name: 'x' } }],
  ['an apiVersion', { kind: 'Service', metadata: { name: 'x' } }],
  ['a name', { apiVersion: 'v1', kind: 'Service', metadata: { namespace: 'y' } }],
])('an object without %s is refused as an object of a setup', (_, object) => {
  expect(() => setupObject(object)).toThrow(`Setup cannot apply an object without its kind and its name: ${JSON.stringify(object)}`);
});

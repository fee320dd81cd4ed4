// The check that fields of kf's kinds are only added: what it finds, and what it lets through.

import { stringify } from 'yaml';
import { describe, expect, test } from 'vitest';
import { compareKinds, unexcused, type Difference } from '../../../tools/releases/fields.ts';

const kind = (spec: object, more: object = {}): string =>
  stringify({
    metadata: { name: 'things.example.com' },
    spec: {
      scope: 'Namespaced',
      versions: [
        { name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object', properties: { spec } } }, ...more },
      ],
    },
  });

const before = {
  type: 'object',
  required: ['name'],
  properties: {
    name: { type: 'string', maxLength: 63 },
    size: { type: 'string', enum: ['small', 'large'] },
    ports: { type: 'array', maxItems: 8, items: { type: 'object', properties: { port: { type: 'integer', maximum: 100 } } } },
    labels: { type: 'object', additionalProperties: { type: 'string' } },
    any: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
  },
};

type Change = (spec: typeof before) => void;

function differences(change: Change): Difference[] {
  const now = structuredClone(before);
  change(now);
  return compareKinds([kind(before)], [kind(now)]);
}

test.each<[string, Change]>([
  ['a new field', ({ properties }) => Object.assign(properties, { more: { type: 'string', maxLength: 5 } })],
  [
    'a new field of the items of a list',
    ({ properties }) => Object.assign(properties.ports.items.properties, { name: { type: 'string' } }),
  ],
  ['a higher limit, and none', ({ properties }) => Object.assign(properties.name, { maxLength: 253 }, { pattern: undefined })],
  ['a new value', ({ properties }) => properties.size.enum.push('huge')],
  ['a field that is not required any more', (spec) => Object.assign(spec, { required: [] })],
  ['a description', ({ properties }) => Object.assign(properties.name, { description: 'Of the thing.' })],
])('%s is no difference', (_, change) => {
  expect(differences(change)).toEqual([]);
});

describe('what is removed', () => {
  test.each<[string, string, Change]>([
    ['property', 'spec', ({ properties }) => Reflect.deleteProperty(properties, 'size')],
    ['property', 'spec.ports[]', ({ properties }) => Reflect.deleteProperty(properties.ports.items.properties, 'port')],
    ['property', 'spec.labels', ({ properties }) => Reflect.deleteProperty(properties.labels, 'additionalProperties')],
    ['type', 'spec.name', ({ properties }) => Object.assign(properties.name, { type: 'integer' })],
    ['enum', 'spec.size', ({ properties }) => properties.size.enum.pop()],
    ['x-kubernetes-preserve-unknown-fields', 'spec.any', ({ properties }) => Object.assign(properties, { any: { type: 'object' } })],
    ['x-kubernetes-list-type', 'spec.ports', ({ properties }) => Object.assign(properties.ports, { 'x-kubernetes-list-type': 'set' })],
  ])('%s of %s is found, and no reason excuses it', (what, at, change) => {
    const found = differences(change);
    expect(found).toMatchObject([{ kind: 'removed', what, at: `things.example.com/v1 ${at}` }]);
    expect(unexcused(found, [{ where: /./, until: 'x', why: 'never' }])).toEqual(found);
  });

  test('a kind, a version and the scope are found', () => {
    expect(compareKinds([kind(before)], [])).toMatchObject([{ what: 'kind' }]);
    expect(compareKinds([kind(before)], [kind(before, { served: false })])).toMatchObject([{ what: 'version' }]);
    expect(compareKinds([kind(before)], [kind(before).replace('Namespaced', 'Cluster')])).toMatchObject([{ what: 'scope' }]);
  });
});

describe('what is narrowed', () => {
  test.each<[string, string, Change]>([
    ['maxLength', 'spec.name', ({ properties }) => Object.assign(properties.name, { maxLength: 20 })],
    ['maxLength', 'spec.size', ({ properties }) => Object.assign(properties.size, { maxLength: 20 })],
    ['maximum', 'spec.ports[].port', ({ properties }) => Object.assign(properties.ports.items.properties.port, { maximum: 99 })],
    ['minimum', 'spec.ports[].port', ({ properties }) => Object.assign(properties.ports.items.properties.port, { minimum: 0 })],
    ['pattern', 'spec.name', ({ properties }) => Object.assign(properties.name, { pattern: '^a' })],
    ['enum', 'spec.name', ({ properties }) => Object.assign(properties.name, { enum: ['a'] })],
    ['required', 'spec', (spec) => spec.required.push('size')],
    ['rule', 'spec', (spec) => Object.assign(spec, { 'x-kubernetes-validations': [{ rule: 'self == oldSelf' }] })],
  ])('%s of %s is found, and only its own reason excuses it', (what, at, change) => {
    const found = differences(change);
    expect(found).toMatchObject([{ kind: 'narrowed', what, at: `things.example.com/v1 ${at}` }]);
    expect(unexcused(found, [{ where: /^others/, until: 'x', why: 'another' }])).toEqual(found);
    const where = new RegExp(`${`${at} ${what}`.replaceAll(/[.[\]]/g, String.raw`\$&`)}$`);
    expect(unexcused(found, [{ where, until: 'x', why: 'a reason' }])).toEqual([]);
  });
});

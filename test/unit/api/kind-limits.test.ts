import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { describe, expect, test } from 'vitest';
import { instanceLimits } from '../../../src/lib/api/app.ts';
import { deployableOf } from '../../../src/lib/api/revisions.ts';

interface Schema {
  type?: string;
  format?: string;
  enum?: string[];
  maxLength?: number;
  maxItems?: number;
  maxProperties?: number;
  maximum?: number;
  items?: Schema;
  properties?: Record<string, Schema>;
  additionalProperties?: Schema;
  'x-kubernetes-int-or-string'?: boolean;
  'x-kubernetes-preserve-unknown-fields'?: boolean;
}

interface Crd {
  spec: { names: { kind: string }; versions: { schema: { openAPIV3Schema: Schema } }[] };
}

const folder = join(import.meta.dirname, '../../../manifests/crds');
const kinds = new Map(
  readdirSync(folder).map((file): [string, Schema] => {
    const { spec } = parse(readFileSync(join(folder, file), 'utf8')) as Crd;
    return [spec.names.kind, spec.versions[0]!.schema.openAPIV3Schema];
  }),
);

/** Paths of fields that can grow without a limit. */
function unbounded(schema: Schema, path: string): string[] {
  const isText = schema.type === 'string' || schema['x-kubernetes-int-or-string'] === true;
  const isMap = schema.additionalProperties !== undefined || schema['x-kubernetes-preserve-unknown-fields'] === true;
  return [
    ...(isText && schema.enum === undefined && schema.maxLength === undefined ? [path] : []),
    ...(schema.items !== undefined && schema.maxItems === undefined ? [path] : []),
    ...(isMap && schema.maxProperties === undefined ? [path] : []),
    ...Object.entries(schema.properties ?? {}).flatMap(([key, inner]) => unbounded(inner, `${path}.${key}`)),
    ...(schema.items === undefined ? [] : unbounded(schema.items, `${path}[]`)),
    ...(schema.additionalProperties === undefined ? [] : unbounded(schema.additionalProperties, `${path}{}`)),
  ];
}

/** The largest number of characters in values that the schema allows. */
function largest(schema: Schema | undefined): number {
  if (schema === undefined) return 0;
  if (schema.enum !== undefined) return Math.max(...schema.enum.map((value) => value.length));
  if (schema.items !== undefined) return (schema.maxItems ?? Infinity) * largest(schema.items);
  if (schema.additionalProperties !== undefined) return (schema.maxProperties ?? Infinity) * largest(schema.additionalProperties);
  if (schema.properties !== undefined) return Object.values(schema.properties).reduce((sum, inner) => sum + largest(inner), 0);
  return schema.maxLength ?? 0;
}

describe('the kinds', () => {
  test('have a limit on every string, list and map', () => {
    expect(kinds.size).toBe(23);
    for (const [kind, schema] of kinds) expect(unbounded(schema, kind)).toEqual([]);
  });

  // The quota of a kind multiplies what a developer writes: docs/decisions/0015-sizes-and-counts.md uses these figures.
  test.each([
    ['CFApp', 6],
    ['CFProcess', 24],
    ['CFPackage', 8],
    ['CFBuild', 6],
    ['CFRoute', 40],
    ['CFNetworkPolicy', 1],
    ['CFTask', 12],
    ['CFServiceInstance', 24],
    ['CFServiceBinding', 4],
  ])('let a developer write no %s of more than %i Ki characters', (kind, most) => {
    expect(largest(kinds.get(kind)?.properties?.['spec']) / 1024).toBeLessThanOrEqual(most);
  });

  test('let the status of a process list as many instances as the controller writes, and no app have more than the limit', () => {
    const { spec, status } = kinds.get('CFProcess')?.properties ?? {};
    expect(spec?.properties?.['desiredInstances']?.maximum).toBe(instanceLimits.most);
    expect(status?.properties?.['instancesStatus']?.maxProperties).toBeGreaterThanOrEqual(instanceLimits.listed);
    expect(largest(status) / 1024).toBeLessThan(1_024);
  });

  test('let the status of an app list the droplets of all revisions that a rollback can return to', () => {
    const { revision } = kinds.get('CFApp')?.properties?.['status']?.properties ?? {};
    const records = Array.from({ length: 20 }, (_, index) => {
      const version = 20 - index;
      return { version, guid: 'g', description: 'New droplet deployed.', droplet: `d${version}`, created: 'then' };
    });
    expect(revision?.properties?.['droplets']?.maxItems).toBe(deployableOf(records, 1).length);
  });
});

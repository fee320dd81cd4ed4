import { describe, expect, expectTypeOf, it } from 'vitest';
import type * as documented from '../../../src/api-types.d.ts';
import * as api from '../../../src/api.ts';
import type { SpaceSession } from '../../../src/lib/session/session.ts';

describe('the API of plugins', () => {
  it('has the exports that its types and docs/plugins.md name', async () => {
    const { readFileSync } = await import('node:fs');
    const types = readFileSync('src/api-types.d.ts', 'utf8');
    const declared = [...types.matchAll(/^export declare (?:abstract class|class|const|function) (\w+)/gm)].map(([, name]) => name);
    const passedOn = [...types.matchAll(/^export \{ ([\w, ]+) \} from/gm)].flatMap(([, names = '']) => names.split(', '));
    expect([...declared, ...passedOn].toSorted()).toEqual(Object.keys(api).toSorted());
    const page = readFileSync('docs/plugins.md', 'utf8');
    expect(Object.keys(api).filter((name) => !page.includes(`\`${name}\``))).toEqual([]);
  });

  it('has the types that it declares', () => {
    expectTypeOf<SpaceSession>().toExtend<Omit<documented.SpaceSession, 'cluster'>>();
    expectTypeOf<SpaceSession['cluster']['identity']>().toExtend<documented.Cluster['identity']>();
    expectTypeOf<Parameters<SpaceSession['cluster']['list']>[1]>().toExtend<Parameters<documented.Cluster['list']>[1]>();
    expectTypeOf(api.resource).toExtend<typeof documented.resource>();
    expectTypeOf(api.computedResource).toExtend<typeof documented.computedResource>();
    expectTypeOf<Parameters<typeof documented.line>>().toExtend<Parameters<typeof api.line>>();
    expectTypeOf<Parameters<typeof documented.table>>().toExtend<Parameters<typeof api.table>>();
    expectTypeOf(api.KfError).toExtend<typeof documented.KfError>();
    expectTypeOf(api.apiVersion).toExtend<typeof documented.apiVersion>();
  });
});

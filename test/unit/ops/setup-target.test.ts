// The target after a setup: a valid one stays.

import { beforeEach, expect, it } from 'vitest';
import { kinds } from '../../../src/lib/api/group.ts';
import { targetAfterSetup } from '../../../src/lib/ops/tenancy/target.ts';
import type { Session } from '../../../src/lib/session/session.ts';
import type { TargetState } from '../../../src/lib/session/state.ts';
import { MemoryCluster } from '../../support/memory-cluster.ts';

const org = { name: 'default', guid: 'org-guid' };
const own = { org, space: { name: 'default', guid: 'default-guid' } };
const targeted = { org, space: { name: 'oncall', guid: 'oncall-guid' } };
let cluster: MemoryCluster;

/** The target that is saved; the result is the same. */
async function after(state: TargetState): Promise<TargetState> {
  const saved: TargetState[] = [];
  const saveOrWarn = (one: TargetState) => void saved.push(one);
  const session = { cluster, root: 'cf', state, signal: new AbortController().signal, saveOrWarn } as Partial<Session> as Session;
  const target = await targetAfterSetup(session, own);
  const { context, server } = cluster.identity;
  expect(saved).toEqual([{ context, server, ...target }]);
  return target;
}

beforeEach(async () => {
  cluster = new MemoryCluster();
  await cluster.create(kinds.org, { metadata: { name: org.guid, namespace: 'cf' }, spec: { displayName: org.name } });
  await cluster.create(kinds.space, { metadata: { name: 'oncall-guid', namespace: org.guid }, spec: { displayName: 'oncall' } });
});

it('stays while its org and space exist', async () => {
  expect(await after(targeted)).toEqual(targeted);
});

it.each<[string, TargetState]>([
  ['there is none', {}],
  ['it has no space', { org }],
  ['its space is gone', { ...targeted, space: { name: 'gone', guid: 'gone' } }],
  ['its org is gone', { ...targeted, org: { name: 'gone', guid: 'gone' } }],
])('is that of setup when %s', async (_, state) => {
  expect(await after(state)).toEqual(own);
});

it('is that of setup when its space is being deleted', async () => {
  await cluster.mergePatch(kinds.space, org.guid, 'oncall-guid', { metadata: { finalizers: ['x/y'] } });
  await cluster.delete(kinds.space, org.guid, 'oncall-guid');
  expect(await after(targeted)).toEqual(own);
});

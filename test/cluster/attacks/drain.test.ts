// Attacker: a member of one space who wants to keep an operator from emptying a node, with apps that never become whole or cannot be deleted. The only
// node of the cluster is emptied of the app's pods; those that Kubernetes makes again wait for it.

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { Place } from '../../support/developer.ts';
import { kubectl, kubectlJson, ringEnv } from '../../support/kf.ts';
import { TestWorld, type Member } from '../../support/members.ts';
import { until } from '../../support/until.ts';

const sample = `${ringEnv('KF_CLUSTER_NODE_REGISTRY')}/kf/sample:1`;
const small = ['-o', sample, '-m', '32M', '-k', '32M'];
const appLabel = 'korifi.cloudfoundry.org/app-guid';
const world = new TestWorld();
let attacker: Member;
let place: Place;
let node: string;

interface Pod {
  metadata: { name: string; deletionTimestamp?: string };
  spec: { nodeName?: string };
  status: { conditions?: { type: string; status: string }[] };
}

async function itemsOf<T>(kind: string, guid: string): Promise<T[]> {
  return (await kubectlJson<{ items: T[] }>('get', kind, '-n', place.space, '-l', `${appLabel}=${guid}`)).items;
}

const isReady = ({ metadata, status }: Pod): boolean =>
  metadata.deletionTimestamp === undefined && status.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') === true;
const readyOf = async (guid: string): Promise<number> => (await itemsOf<Pod>('pods', guid)).filter(isReady).length;
const placedOf = async (guid: string): Promise<Pod[]> =>
  (await itemsOf<Pod>('pods', guid)).filter(({ spec }) => spec.nodeName !== undefined);
const budgetsOf = async (guid: string): Promise<number> => (await itemsOf('pdb', guid)).length;

/** Throws when the node is not empty of the app in time. */
const drain = (guid: string): Promise<string> =>
  kubectl('drain', node, '--ignore-daemonsets', '--delete-emptydir-data', '--timeout=120s', `--pod-selector=${appLabel}=${guid}`);

async function push(name: string, ...more: string[]): Promise<string> {
  await attacker.kf.ok('push', name, ...small, ...more);
  return (await attacker.kf.ok('app', name, '--guid')).stdout.trim();
}

beforeAll(async () => {
  place = await world.space();
  attacker = await world.member('spaceDeveloper', place);
  node = (await kubectlJson<{ items: { metadata: { name: string } }[] }>('get', 'nodes')).items[0]?.metadata.name ?? '';
});
afterEach(() => kubectl('uncordon', node));
afterAll(() => world.remove());

describe('a node can be emptied', () => {
  test.each([
    ['of which the second one crashes', 'crashing', 'test $CF_INSTANCE_INDEX = 0 && exec node /app/server.cjs; exit 3', 'crashed'],
    ['of which no node has room for the second one', 'crowded', 'exec node /app/server.cjs', 'down'],
  ])('of an app with instances %s, and its budget comes back with it', async (_, name, command, state) => {
    const guid = await push(name, '-c', command);
    if (state === 'down') await kubectl('cordon', node);
    expect((await attacker.kf.run(['scale', name, '-i', '2'])).code).toBe(1);
    await until('the state of the second instance', async () => {
      const { stdout } = await attacker.kf.run(['app', name]);
      return new RegExp(`^#\\d +${state}`, 'm').test(stdout);
    });
    await until('the first instance alone', async () => (await readyOf(guid)) === 1);
    // On a node that takes no pods the budget has gone already.
    if (state !== 'down') expect(await budgetsOf(guid)).toBe(1);
    await drain(guid);
    expect(await placedOf(guid)).toEqual([]);
    await kubectl('uncordon', node);
    await until('the first instance and the budget', async () => (await readyOf(guid)) >= 1 && (await budgetsOf(guid)) === 1);
    await attacker.kf.ok('delete', name, '-r', '-f');
  });

  test('of an app whose deletion a finalizer of the attacker stops', async () => {
    const guid = await push('stuck');
    const patch = JSON.stringify({ metadata: { finalizers: ['attacker.example/stay'] } });
    const app = ['cfapp', guid, '-n', place.space];
    expect(await attacker.kubectl(['patch', ...app, '--type=merge', '-p', patch])).toMatchObject({ code: 0 });
    expect(await attacker.kubectl(['delete', ...app, '--wait=false'])).toMatchObject({ code: 0 });
    await drain(guid);
    expect(await placedOf(guid)).toEqual([]);
    await kubectl('patch', ...app, '--type=merge', '-p', JSON.stringify({ metadata: { finalizers: null } }));
  });
});

describe('a developer may not', () => {
  const budget = (): object => ({
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: 'mine', namespace: place.space },
    spec: { maxUnavailable: 0, selector: {} },
  });
  const pod = (): object => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'mine', namespace: place.space },
    spec: { containers: [{ name: 'main', image: sample }], terminationGracePeriodSeconds: 86_400 },
  });

  test.each([
    ['make a budget that allows no eviction', budget],
    ['make a pod that nothing controls, or one that ends slowly', pod],
  ])('%s', async (_, object) => {
    const said = await attacker.kubectl(['create', '-f', '-'], object());
    expect(said.code).not.toBe(0);
    expect(said.stderr).toContain('is forbidden: User');
  });

  test('keep a pod with a finalizer, or change the budget of an app', async () => {
    const guid = await push('kept');
    const finalizers = JSON.stringify({ metadata: { finalizers: ['attacker.example/stay'] } });
    for (const kind of ['pods', 'poddisruptionbudgets', 'statefulsets']) {
      const [{ metadata: { name } } = { metadata: { name: '' } }] = await itemsOf<Pod>(kind, guid);
      const said = await attacker.kubectl(['patch', kind, name, '-n', place.space, '--type=merge', '-p', finalizers]);
      expect([kind, said.code]).not.toEqual([kind, 0]);
      expect(said.stderr).toContain(`is forbidden: User`);
    }
  });
});

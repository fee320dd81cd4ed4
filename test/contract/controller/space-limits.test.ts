import { afterEach, describe, expect, test } from 'vitest';
import { configMapType, eventType, namespaceType, resourceQuotaType, roleBindingType } from '../../../src/lib/api/core.ts';
import { kinds } from '../../../src/lib/api/group.ts';
import { limitsOf, type Limits } from '../../../src/templates/limits.ts';
import type { MemoryCluster } from '../../support/memory-cluster.ts';
import { app, info, startScene, type BuildScene } from './build-scene.ts';

const api = 'korifi.cloudfoundry.org/v1alpha1';
let scene: BuildScene;
afterEach(() => scene.stop());

/** The operator's setup.yaml, in an installation that is an hour old by default. */
async function setUp(cluster: MemoryCluster, space: Limits, ageMs = 3_600_000): Promise<void> {
  const metadata = { creationTimestamp: new Date(Date.now() - ageMs).toISOString() };
  const data = { 'info.json': JSON.stringify({ ...info, limits: { space } }) };
  await cluster.mergePatch(configMapType, 'cf', 'kf-info', { metadata, data });
}

async function startWithSpace(space: Limits = {}, ageMs?: number): Promise<void> {
  scene = await startScene();
  await setUp(scene.cluster, space, ageMs);
  await scene.cluster.create(kinds.org, {
    apiVersion: api,
    kind: 'CFOrg',
    metadata: { name: 'o', namespace: 'cf' },
    spec: { displayName: 'o' },
  });
  const metadata = { name: 's', namespace: 'o' };
  await scene.cluster.create(kinds.space, { apiVersion: api, kind: 'CFSpace', metadata, spec: { displayName: 's' } });
  await scene.until(() => expect(scene.condition(kinds.space, 'o', 's', 'Ready')?.status).toBe('True'));
}

/** Starts the controller again; it reconciles everything. */
async function restart(): Promise<void> {
  await scene.stop();
  const { cluster } = scene;
  await cluster.delete(roleBindingType, 's', 'kf-controller-space', {
    uid: cluster.peek(roleBindingType, 's', 'kf-controller-space')?.metadata.uid ?? '',
  });
  scene = await startScene(cluster);
  // It is created again just before the quota is read.
  await scene.until(() => expect(cluster.peek(roleBindingType, 's', 'kf-controller-space')).toBeDefined());
}

/** For the only space of an org: half of the org's Secrets are reserved for a future space, and as much of everything else as one space may have. */
const alone = (named: Limits = {}, withKinds = true): Limits => ({ ...limitsOf('space', named, withKinds), 'count/secrets': '1000' });
const hard = (ns = 's') => scene.cluster.peek(resourceQuotaType, ns, 'kf-limits')?.spec?.hard;

describe('the quota of a space', () => {
  test('exists when the space is ready, with limits for what runs and for each kind that a developer writes', async () => {
    await startWithSpace();
    expect(hard()).toEqual(alone());
    expect(hard()).toMatchObject({
      pods: '64',
      'requests.memory': '16Gi',
      'requests.ephemeral-storage': '64Gi',
      'count/cfapps.korifi.cloudfoundry.org': '100',
    });
    expect(hard('o')).toEqual(limitsOf('org'));
  });

  test("has the operator's values, and no entry for a limit that is empty", async () => {
    await startWithSpace({ pods: '7', 'requests.memory': '', 'limits.cpu': '3' });
    expect(hard()).toMatchObject({ pods: '7', 'limits.cpu': '3' });
    expect(hard()).not.toHaveProperty('requests.memory');
  });

  test('follows the installation as long as nobody changed it', async () => {
    await startWithSpace();
    // In the form in which the API server stores it.
    await scene.cluster.mergePatch(resourceQuotaType, 's', 'kf-limits', {
      spec: { hard: { 'count/secrets': '1k', 'count/jobs.batch': '1k' } },
    });
    await setUp(scene.cluster, { pods: '9', 'requests.memory': '' });
    await restart();
    await scene.until(() => expect(hard()).toEqual(alone({ pods: '9', 'requests.memory': '' })));
  });

  test('stays as an operator changed it', async () => {
    await startWithSpace();
    await scene.cluster.mergePatch(resourceQuotaType, 's', 'kf-limits', { spec: { hard: { pods: '500' } } });
    await setUp(scene.cluster, { pods: '9' });
    const before = scene.cluster.writes.length;
    await restart();
    await scene.until(() => expect(scene.condition(kinds.space, 'o', 's', 'Ready')?.status).toBe('True'));
    expect(hard()).toEqual({ ...alone(), pods: '500' });
    expect(scene.cluster.writes.slice(before).filter(({ kind }) => kind === 'ResourceQuota')).toEqual([]);
  });

  test('of a new installation names no kinds yet, because the cluster would refuse objects of a kind that it has not counted', async () => {
    await startWithSpace({}, 1_000);
    expect(hard()).toEqual(alone({}, false));
    expect(Object.keys(hard() ?? {}).filter((key) => key.endsWith('korifi.cloudfoundry.org'))).toEqual([]);
    await setUp(scene.cluster, {});
    await restart();
    await scene.until(() => expect(hard()).toEqual(alone()));
  });
});

describe('the quotas of the spaces of an org', () => {
  const apps = 'count/cfapps.korifi.cloudfoundry.org';
  const addSpace = async (name: string): Promise<void> => {
    await scene.cluster.create(kinds.space, {
      apiVersion: api,
      kind: 'CFSpace',
      metadata: { name, namespace: 'o' },
      spec: { displayName: name },
    });
  };
  const isReady = (name: string): boolean => scene.condition(kinds.space, 'o', name, 'Ready')?.status === 'True';
  const used = new Map<string, number>();
  /** As the cluster counts, and applies the limits of the quota. */
  const count = async (ns: string, amount: number): Promise<void> => {
    used.set(ns, amount);
    await takeOver(ns);
  };
  const takeOver = (ns: string): Promise<unknown> =>
    scene.cluster.mergePatch(
      resourceQuotaType,
      ns,
      'kf-limits',
      { status: { hard: hard(ns), used: { [apps]: String(used.get(ns) ?? 0) } } },
      { subresource: 'status' },
    );
  const shares = (...spaces: string[]): number[] => spaces.map((ns) => Number(hard(ns)?.[apps]));

  test('together never exceed the total of the org, and a new space is ready when it has its share', async () => {
    await startWithSpace();
    await count('s', 100);
    await addSpace('s-2');
    await scene.until(() => expect(isReady('s-2')).toBe(true));
    expect(shares('s', 's-2')).toEqual([100, 33]);
    await count('s-2', 30);
    await scene.until(() => expect(shares('s-2')).toEqual([53]));
    await count('s-2', 53);
    await scene.until(() => expect(shares('s-2')).toEqual([68]));
    await count('s-2', 90);
    await scene.until(() => expect(shares('s-2')).toEqual([93]));
    await count('s-2', 93);
    await addSpace('s-3');
    await scene.until(() => expect(isReady('s-3')).toBe(true));
    const given = shares('s', 's-2', 's-3');
    expect(given[2]).toBeGreaterThan(0);
    expect(given.reduce((sum, one) => sum + one, 0)).toBeLessThanOrEqual(200);
    // Capacity that one space does not need any more is available to the others.
    await count('s', 10);
    await scene.until(() => expect(shares('s')).toEqual([34]));
    expect(shares('s-3')[0]).toBeLessThanOrEqual(6);
    await takeOver('s');
    await scene.until(() => expect(shares('s', 's-2', 's-3')).toEqual([34, 100, 24]));
  });

  test('do not count a quota that an operator edited, and count remaining objects of a deleted quota', async () => {
    await startWithSpace();
    for (const name of ['s-2', 's-3']) {
      await addSpace(name);
      await scene.until(() => expect(isReady(name)).toBe(true));
    }
    const edit = { spec: { hard: { [apps]: '500' } } };
    await scene.cluster.mergePatch(resourceQuotaType, 's-2', 'kf-limits', edit);
    for (let number = 0; number < 180; number += 1) await scene.cluster.create(kinds.app, app(`a-${number}`, 's-3'));
    const uid = scene.cluster.peek(resourceQuotaType, 's-3', 'kf-limits')?.metadata.uid ?? '';
    await scene.cluster.delete(resourceQuotaType, 's-3', 'kf-limits', { uid });
    await scene.until(() => expect(shares('s')).toEqual([10]));
    expect(shares('s-2')).toEqual([500]);
  });

  test('share the total that the operator sets for an org', async () => {
    scene = await startScene();
    const metadata = { creationTimestamp: new Date(Date.now() - 3_600_000).toISOString() };
    const limits = { orgTotal: { [apps]: '30', 'count/secrets': '', 'requests.memory': '8Gi' } };
    await scene.cluster.mergePatch(configMapType, 'cf', 'kf-info', {
      metadata,
      data: { 'info.json': JSON.stringify({ ...info, limits }) },
    });
    const org = { metadata: { name: 'o', namespace: 'cf' }, spec: { displayName: 'o' } };
    await scene.cluster.create(kinds.org, { apiVersion: api, kind: 'CFOrg', ...org });
    await addSpace('s');
    await scene.until(() => expect(isReady('s')).toBe(true));
    expect(hard()).toEqual({ ...limitsOf('space'), [apps]: '15', 'requests.memory': String(4 * 1024 ** 3) });
  });
});

describe('the quota of a space that existed before kf made quotas', () => {
  const used = { pods: '80', 'requests.memory': '20Gi', 'count/cfapps.korifi.cloudfoundry.org': '100', 'count/secrets': '12' };
  const counted = (): Promise<unknown> =>
    scene.cluster.mergePatch(
      resourceQuotaType,
      's',
      'kf-limits',
      { status: { used: { ...Object.fromEntries(Object.keys(hard() ?? {}).map((key) => [key, '0'])), ...used } } },
      { subresource: 'status' },
    );

  /** As after an upgrade: the namespace is an hour old and has no quota. */
  async function startWithOldSpace(space: Limits = {}, ageMs?: number): Promise<void> {
    await startWithSpace(space, ageMs);
    await scene.stop();
    const { cluster } = scene;
    const uid = cluster.peek(resourceQuotaType, 's', 'kf-limits')?.metadata.uid ?? '';
    await cluster.delete(resourceQuotaType, 's', 'kf-limits', { uid });
    const metadata = { creationTimestamp: new Date(Date.now() - 3_600_000).toISOString() };
    await cluster.mergePatch(namespaceType, undefined, 's', { metadata });
    scene = await startScene(cluster);
  }

  test('refuses nothing until existing objects are counted, and then allows them and more', async () => {
    await startWithOldSpace();
    await scene.until(() => expect(hard()).toEqual(Object.fromEntries(Object.keys(limitsOf('space')).map((key) => [key, '1P']))));
    await counted();
    const wider = { pods: '120', 'requests.memory': '30720Mi', 'count/cfapps.korifi.cloudfoundry.org': '150' };
    await scene.until(() => expect(hard()).toEqual({ ...limitsOf('space'), ...wider }));
    await scene.until(() =>
      expect(scene.cluster.all(eventType).find(({ reason }) => reason === 'LimitsWidened')).toMatchObject({
        message: expect.stringMatching(/^These limits are higher than the defaults, .* pods 120 \(default 64\)/) as string,
      }),
    );
    await setUp(scene.cluster, { 'count/secrets': '9' });
    await restart();
    await scene.until(() => expect(scene.condition(kinds.space, 'o', 's', 'Ready')?.status).toBe('True'));
    expect(hard()).toMatchObject(wider);
  });

  test("has the operator's values, whatever exists", async () => {
    await startWithOldSpace({ pods: '7' });
    await scene.until(() => expect(hard()?.['pods']).toBe('1P'));
    await counted();
    await scene.until(() => expect(hard()).toMatchObject({ pods: '7', 'requests.memory': '30720Mi', 'count/secrets': '2000' }));
  });

  test('waits until the cluster counts all kinds', async () => {
    await startWithOldSpace({}, 1_000);
    await scene.until(() => expect(scene.cluster.peek(roleBindingType, 's', 'kf-controller-space')).toBeDefined());
    await setUp(scene.cluster, {});
    await restart();
    await scene.until(() => expect(hard()?.['count/cfapps.korifi.cloudfoundry.org']).toBe('1P'));
  });
});

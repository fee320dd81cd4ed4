import { afterEach, describe, expect, test } from 'vitest';
import { configMapType, eventType, namespaceType, resourceQuotaType, roleBindingType } from '../../../src/lib/api/core.ts';
import { kinds } from '../../../src/lib/api/group.ts';
import { limitsOf, type Limits } from '../../../src/templates/limits.ts';
import type { MemoryCluster } from '../../support/memory-cluster.ts';
import { info, startScene, type BuildScene } from './build-scene.ts';

const api = 'korifi.cloudfoundry.org/v1alpha1';
let scene: BuildScene;
afterEach(() => scene.stop());

/** What an operator wrote into setup.yaml, in an installation that is an hour old unless told. */
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

/** The controller starts anew, and looks at everything. */
async function restart(): Promise<void> {
  await scene.stop();
  const { cluster } = scene;
  await cluster.delete(roleBindingType, 's', 'kf-controller-space', {
    uid: cluster.peek(roleBindingType, 's', 'kf-controller-space')?.metadata.uid ?? '',
  });
  scene = await startScene(cluster);
  // It comes back just before the quota is looked at.
  await scene.until(() => expect(cluster.peek(roleBindingType, 's', 'kf-controller-space')).toBeDefined());
}

const hard = (ns = 's') => scene.cluster.peek(resourceQuotaType, ns, 'kf-limits')?.spec?.hard;

describe('the quota of a space', () => {
  test('is there when the space is ready, with limits for what runs and for each kind that a developer writes', async () => {
    await startWithSpace();
    expect(hard()).toEqual(limitsOf('space'));
    expect(hard()).toMatchObject({ pods: '64', 'requests.memory': '16Gi', 'count/cfapps.korifi.cloudfoundry.org': '100' });
    expect(hard('o')).toEqual(limitsOf('org'));
  });

  test('names what the operator wants instead, and nothing for a limit that is empty', async () => {
    await startWithSpace({ pods: '7', 'requests.memory': '', 'limits.cpu': '3' });
    expect(hard()).toMatchObject({ pods: '7', 'limits.cpu': '3' });
    expect(hard()).not.toHaveProperty('requests.memory');
  });

  test('follows the installation as long as nobody changed it', async () => {
    await startWithSpace();
    // As the API server keeps it.
    await scene.cluster.mergePatch(resourceQuotaType, 's', 'kf-limits', {
      spec: { hard: { 'count/secrets': '2k', 'count/jobs.batch': '1k' } },
    });
    await setUp(scene.cluster, { pods: '9', 'requests.memory': '' });
    await restart();
    await scene.until(() => expect(hard()).toEqual(limitsOf('space', { pods: '9', 'requests.memory': '' })));
  });

  test('stays as an operator changed it', async () => {
    await startWithSpace();
    await scene.cluster.mergePatch(resourceQuotaType, 's', 'kf-limits', { spec: { hard: { pods: '500' } } });
    await setUp(scene.cluster, { pods: '9' });
    const before = scene.cluster.writes.length;
    await restart();
    await scene.until(() => expect(scene.condition(kinds.space, 'o', 's', 'Ready')?.status).toBe('True'));
    expect(hard()).toEqual({ ...limitsOf('space'), pods: '500' });
    expect(scene.cluster.writes.slice(before).filter(({ kind }) => kind === 'ResourceQuota')).toEqual([]);
  });

  test('of a new installation names no kinds yet: the cluster would refuse objects of a kind that it has not counted', async () => {
    await startWithSpace({}, 1_000);
    expect(hard()).toEqual(limitsOf('space', {}, false));
    expect(Object.keys(hard() ?? {}).filter((key) => key.endsWith('korifi.cloudfoundry.org'))).toEqual([]);
    await setUp(scene.cluster, {});
    await restart();
    await scene.until(() => expect(hard()).toEqual(limitsOf('space')));
  });
});

describe('the quota of a space that was there before kf made quotas', () => {
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

  test('refuses nothing until what is there is counted, and then leaves room for it', async () => {
    await startWithOldSpace();
    await scene.until(() => expect(hard()).toEqual(Object.fromEntries(Object.keys(limitsOf('space')).map((key) => [key, '1P']))));
    await counted();
    const wider = { pods: '120', 'requests.memory': '30720Mi', 'count/cfapps.korifi.cloudfoundry.org': '150' };
    await scene.until(() => expect(hard()).toEqual({ ...limitsOf('space'), ...wider }));
    await scene.until(() =>
      expect(scene.cluster.all(eventType).find(({ reason }) => reason === 'LimitsWidened')).toMatchObject({
        message: expect.stringContaining('pods 120 (default 64)') as string,
      }),
    );
    await setUp(scene.cluster, { 'count/secrets': '9' });
    await restart();
    await scene.until(() => expect(scene.condition(kinds.space, 'o', 's', 'Ready')?.status).toBe('True'));
    expect(hard()).toMatchObject(wider);
  });

  test('is as the operator names it, whatever is there', async () => {
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

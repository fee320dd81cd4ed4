import { afterEach, describe, expect, test } from 'vitest';
import { configMapType, resourceQuotaType, roleBindingType } from '../../../src/lib/api/core.ts';
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

// The quotas of cf (CFQuota): what they become in the ResourceQuotas and the namespace of a space.

import { afterEach, describe, expect, test } from 'vitest';
import { configMapType, namespaceType, resourceQuotaType } from '../../../src/lib/api/core.ts';
import { annotations, kinds } from '../../../src/lib/api/group.ts';
import type { QuotaLimits } from '../../../src/lib/api/quotas.ts';
import { limitsOf } from '../../../src/templates/limits.ts';
import { info, startScene, type BuildScene } from './build-scene.ts';

const api = 'korifi.cloudfoundry.org/v1alpha1';
const routes = 'count/cfroutes.korifi.cloudfoundry.org';
const services = 'count/cfserviceinstances.korifi.cloudfoundry.org';
let scene: BuildScene;
afterEach(() => scene.stop());

const addSpace = (name: string) =>
  scene.cluster.create(kinds.space, {
    ...{ apiVersion: api, kind: 'CFSpace' },
    metadata: { name, namespace: 'o' },
    spec: { displayName: name },
  });
const isReady = (name: string): boolean => scene.condition(kinds.space, 'o', name, 'Ready')?.status === 'True';

async function start(...spaces: string[]): Promise<void> {
  scene = await startScene();
  // As in an installation that is an hour old.
  const metadata = { creationTimestamp: new Date(Date.now() - 3_600_000).toISOString() };
  await scene.cluster.mergePatch(configMapType, 'cf', 'kf-info', { metadata, data: { 'info.json': JSON.stringify(info) } });
  const org = { apiVersion: api, kind: 'CFOrg', metadata: { name: 'o', namespace: 'cf' }, spec: { displayName: 'o' } };
  await scene.cluster.create(kinds.org, org);
  for (const space of spaces) {
    await addSpace(space);
    await scene.until(() => expect(isReady(space)).toBe(true));
  }
}

const addQuota = (namespace: string, name: string, limits: QuotaLimits) =>
  scene.cluster.create(kinds.quota, {
    ...{ apiVersion: api, kind: 'CFQuota' },
    metadata: { name, namespace },
    spec: { displayName: `${name} plan`, ...limits },
  });
const name = (quota: string | null) => ({ metadata: { annotations: { [annotations.quota]: quota } } });
const setOrg = (quota: string | null) => scene.cluster.mergePatch(kinds.org, 'cf', 'o', name(quota));
const setSpace = (space: string, quota: string | null) => scene.cluster.mergePatch(kinds.space, 'o', space, name(quota));
const quota = (ns: string, of = 'kf-limits') => scene.cluster.peek(resourceQuotaType, ns, of);
const hard = (ns: string, of?: string) => quota(ns, of)?.spec?.hard;
const notes = (ns: string) => scene.cluster.peek(namespaceType, undefined, ns)?.metadata.annotations ?? {};

describe('the quota of a space', () => {
  test('lowers its limits, in the namespace of the space', async () => {
    await start('s', 's-2');
    await addQuota('o', 'small', { totalMemoryMB: 512, instanceMemoryMB: 128, appInstances: 3, routes: 2, serviceInstances: 0 });
    await setSpace('s', 'small');
    await scene.until(() => {
      expect(hard('s')).toMatchObject({ 'requests.memory': '512Mi', [routes]: '2', [services]: '0', pods: '64' });
      expect(quota('s', 'kf-instances')?.spec).toEqual({ hard: { pods: '3' }, scopes: ['NotTerminating'] });
      expect(notes('s')).toMatchObject({
        'kf.cloudfoundry.org/instance-memory-mb': '128',
        'kf.cloudfoundry.org/instance-memory-quota': "space quota 'small plan'",
      });
    });
    expect(JSON.parse(quota('s')?.metadata.annotations?.[annotations.quotas] ?? '')).toMatchObject({
      space: { guid: 'small', name: 'small plan', limits: { totalMemoryMB: 512, routes: 2 } },
    });
    expect(hard('s-2')).toMatchObject({ 'requests.memory': '16Gi' });
    expect(quota('s-2', 'kf-instances')).toBeUndefined();
  });

  test('never raises a limit of the installation', async () => {
    await start('s');
    await addQuota('o', 'large', { totalMemoryMB: 1_000_000, routes: 1_000_000 });
    await setSpace('s', 'large');
    await scene.until(() => expect(quota('s')?.metadata.annotations?.[annotations.quotas]).toContain('large plan'));
    expect(hard('s')).toMatchObject({ 'requests.memory': '16Gi', [routes]: limitsOf('space')[routes] });
  });

  test('is lifted when it is unset, and when it is deleted', async () => {
    await start('s', 's-2');
    const small = await addQuota('o', 'small', { totalMemoryMB: 512, instanceMemoryMB: 128, appInstances: 3 });
    await setSpace('s', 'small');
    await setSpace('s-2', 'small');
    await scene.until(() => expect(hard('s-2', 'kf-instances')).toEqual({ pods: '3' }));
    await scene.until(() => expect(hard('s', 'kf-instances')).toEqual({ pods: '3' }));
    await setSpace('s', null);
    const isFree = (ns: string): void => {
      expect(hard(ns)).toMatchObject({ 'requests.memory': '16Gi' });
      expect(hard(ns, 'kf-instances')).toEqual({});
      expect(Object.keys(notes(ns)).filter((key) => key.includes('instance-memory'))).toEqual([]);
    };
    await scene.until(() => isFree('s'));
    expect(hard('s-2')).toMatchObject({ 'requests.memory': '512Mi' });
    await scene.cluster.delete(kinds.quota, 'o', 'small', { uid: small.metadata.uid });
    await scene.until(() => isFree('s-2'));
    expect(quota('s-2')?.metadata.annotations).not.toHaveProperty([annotations.quotas]);
  });

  test('of another org has no effect', async () => {
    await start('s');
    await addQuota('other-org', 'small', { totalMemoryMB: 512 });
    await addQuota('cf', 'small', { totalMemoryMB: 512 });
    await setSpace('s', 'small');
    await addSpace('s-2');
    await scene.until(() => expect(isReady('s-2')).toBe(true));
    expect(hard('s')).toMatchObject({ 'requests.memory': '16Gi' });
  });
});

describe('the quota of an org', () => {
  test('is shared by its spaces, and belongs wholly to an only one', async () => {
    await start('s');
    await addQuota('cf', 'team', { totalMemoryMB: 2048, appInstances: 10, routes: 11, instanceMemoryMB: 1024 });
    await setOrg('team');
    await scene.until(() => {
      expect(hard('s')).toMatchObject({ 'requests.memory': '2048Mi', [routes]: '11' });
      expect(hard('s', 'kf-instances')).toEqual({ pods: '10' });
      expect(notes('s')).toMatchObject({ [annotations.instanceMemoryQuota]: "org quota 'team plan'" });
    });
    // The cluster applies the smaller limits, as its own controller does.
    const apply = (of: string) =>
      scene.cluster.mergePatch(resourceQuotaType, 's', of, { status: { hard: hard('s', of), used: {} } }, { subresource: 'status' });
    await addSpace('s-2');
    await scene.until(async () => {
      await apply('kf-limits');
      await apply('kf-instances');
      expect(isReady('s-2')).toBe(true);
    });
    expect(hard('s')).toMatchObject({ 'requests.memory': '1024Mi', [routes]: '5' });
    expect(hard('s-2')).toMatchObject({ 'requests.memory': '1024Mi', [routes]: '5' });
    expect([hard('s', 'kf-instances'), hard('s-2', 'kf-instances')]).toEqual([{ pods: '5' }, { pods: '5' }]);
  });

  test('gives a space what its builds need, before anything of it runs', async () => {
    await start('s', 's-2');
    await addQuota('cf', 'team', { totalMemoryMB: 1600 });
    await setOrg('team');
    const applied = async (): Promise<void> => {
      for (const ns of ['s', 's-2'])
        await scene.cluster.mergePatch(
          resourceQuotaType,
          ns,
          'kf-limits',
          { status: { hard: hard(ns), used: {} } },
          { subresource: 'status' },
        );
    };
    await scene.until(async () => {
      await applied();
      expect([hard('s')?.['requests.memory'], hard('s-2')?.['requests.memory']]).toEqual(['800Mi', '800Mi']);
    });
    const resources = { requests: { memory: '1200Mi' } };
    const spec = { GUID: 'p', appGUID: 'a', processType: 'web', version: '1', image: 'i', instances: 1, runnerName: 'other', resources };
    await scene.cluster.create(kinds.appWorkload, {
      ...{ apiVersion: api, kind: 'AppWorkload' },
      metadata: { name: 'w', namespace: 's' },
      spec,
    });
    await scene.until(async () => {
      await applied();
      expect(hard('s')?.['requests.memory']).toBe('1400Mi');
    });
    expect(hard('s-2')?.['requests.memory']).toBe('200Mi');
  });
});

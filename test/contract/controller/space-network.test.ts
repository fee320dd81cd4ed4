import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { configMapType, nodeType } from '../../../src/lib/api/core.ts';
import { kinds } from '../../../src/lib/api/group.ts';
import type { NetworkSettings } from '../../../src/lib/api/kf-info.ts';
import { networkPolicyType, type NetworkPolicy } from '../../../src/lib/api/network-policy.ts';
import { info, startScene, type BuildScene } from './build-scene.ts';

const api = 'korifi.cloudfoundry.org/v1alpha1';
const settings: NetworkSettings = { egress: [], ingress: [], dns: [], apiServer: ['198.51.100.1'], ipv6: false };

describe('the NetworkPolicies of a space', () => {
  let scene: BuildScene;
  const names = (): string[] =>
    scene.cluster
      .all(networkPolicyType)
      .map(({ metadata }) => `${metadata.namespace ?? ''}/${metadata.name ?? ''}`)
      .sort();
  const text = (name: string): string => JSON.stringify(scene.cluster.peek(networkPolicyType, 's-1', name)?.spec);
  const setUp = (network: NetworkSettings | undefined): Promise<unknown> =>
    scene.cluster.mergePatch(configMapType, 'cf', 'kf-info', { data: { 'info.json': JSON.stringify({ ...info, network }) } });

  beforeEach(async () => {
    scene = await startScene();
    await scene.cluster.create(kinds.org, {
      apiVersion: api,
      kind: 'CFOrg',
      metadata: { name: 'o-1', namespace: 'cf' },
      spec: { displayName: 'o' },
    });
    await scene.cluster.create(kinds.space, {
      apiVersion: api,
      kind: 'CFSpace',
      metadata: { name: 's-1', namespace: 'o-1' },
      spec: { displayName: 's' },
    });
    await scene.until(() => expect(scene.condition(kinds.space, 'o-1', 's-1', 'Ready')?.status).toBe('True'));
  });
  afterEach(() => scene.stop());

  test('exist while kf-info asks for them and are deleted when it does not, and policies of others stay', async () => {
    expect(names()).toEqual([]);
    await setUp(settings);
    await scene.until(() => expect(names()).toEqual(['s-1/kf-apps', 's-1/kf-builds']));
    const theirs: NetworkPolicy = { metadata: { name: 'theirs', namespace: 's-1' }, spec: { podSelector: {}, policyTypes: ['Egress'] } };
    await scene.cluster.create(networkPolicyType, theirs);
    await setUp(undefined);
    await scene.until(() => expect(names()).toEqual(['s-1/theirs']));
  });

  test('are restored when somebody deletes or widens them', async () => {
    await setUp(settings);
    await scene.until(() => expect(names()).toHaveLength(2));
    const before = [text('kf-apps'), text('kf-builds')];
    await scene.cluster.mergePatch(networkPolicyType, 's-1', 'kf-builds', {
      spec: { ingress: [{}], podSelector: { matchLabels: { a: 'b' } } },
    });
    await scene.cluster.delete(networkPolicyType, 's-1', 'kf-apps');
    await scene.until(() => expect([text('kf-apps'), text('kf-builds')]).toEqual(before));
  });

  test('exclude the addresses of nodes from the internet, also of nodes that are added later', async () => {
    await setUp(settings);
    await scene.until(() => expect(text('kf-apps')).toContain('198.51.100.1/32'));
    const status = { addresses: [{ type: 'ExternalIP', address: '203.0.113.9' }] };
    await scene.cluster.create(nodeType, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'new' }, status });
    await scene.until(() => expect(text('kf-apps')).toContain('203.0.113.9/32'));
  });
});

// The reconcilers of tenancy, services and builds on a cluster in memory.

import { vi } from 'vitest';
import { buildSideReconcilers } from '../../../src/controller/reconcilers.ts';
import { createLogger } from '../../../src/controller/runtime/log.ts';
import { Manager } from '../../../src/controller/runtime/manager.ts';
import { watch, type Reconciler } from '../../../src/controller/runtime/reconciler.ts';
import { conditionsWith, writeStatus } from '../../../src/controller/runtime/status.ts';
import { splitKey } from '../../../src/controller/runtime/store.ts';
import { claimName } from '../../../src/controller/names/leases.ts';
import { sources } from '../../../src/controller/sources.ts';
import { findCondition } from '../../../src/lib/api/conditions.ts';
import { configMapType, namespaceType, secretType } from '../../../src/lib/api/core.ts';
import { kinds, labels } from '../../../src/lib/api/group.ts';
import type { KfInfo } from '../../../src/lib/api/kf-info.ts';
import type { Condition, KubeObject, ResourceType } from '../../../src/lib/api/object.ts';
import type { BuilderInfo, CFApp } from '../../../src/lib/api/types.generated.ts';
import { MemoryCluster } from '../../support/memory-cluster.ts';
import { patienceMs } from '../../support/until.ts';

export const info: KfInfo = {
  format: 1,
  oldestCli: '0.1.0',
  controller: { version: '0.1.0', namespace: 'kf-system' },
  registry: {
    namespace: 'kf-system',
    service: 'kf-registry',
    port: 5000,
    pushHost: 'kf-registry.kf-system.svc:5000',
    pullPrefix: 'localhost:32500/',
  },
  builder: { name: 'kf-builder', image: 'builder:1', runImage: 'run:1', insecureRegistries: ['10.0.0.1:5000'] },
  programImage: 'node:24',
  defaultDomain: 'apps.localhost',
  gateway: { namespace: 'kf-node', name: 'kf', features: [] },
  drainSeconds: 4,
  processDefaults: { memoryMB: 256, diskQuotaMB: 1024 },
  staging: { memoryMB: 1024, diskMB: 4096 },
  root: 'cf',
};

/** Acquires the names of apps, as the app's own reconciler does. */
const appClaims: Reconciler = {
  name: 'app-claims',
  watches: [watch(kinds.app)],
  reconcile: async (key, context) => {
    const { ns, name } = splitKey(key);
    const app = context.stores.of(kinds.app).get(ns, name);
    if (app === undefined) return undefined;
    const claim = await claimName(context, { entity: 'app', object: app });
    const conditions = conditionsWith(app, claim.claimed, ...(claim.notReady === undefined ? [] : [claim.notReady]));
    await writeStatus(context, kinds.app, app, { ...app.status, conditions });
    return claim.held ? undefined : { requeueAfterMs: 100 };
  },
};

/** No value has to be stable for long, because this cluster counts at once. */
const fastClock = (): number => performance.now() * 50;

export interface BuildScene {
  cluster: MemoryCluster;
  until: (check: () => void) => Promise<void>;
  condition: <T extends KubeObject>(type: ResourceType<T>, ns: string, name: string, of: string) => Condition | undefined;
  /** Puts the controller's clock forward. */
  pass: (ms: number) => void;
  stop: () => Promise<void>;
}

/** Starts everything on `cluster`, with kf-info, the registry's key and a known builder. */
export async function startScene(cluster = new MemoryCluster()): Promise<BuildScene> {
  await prepare(cluster);
  let passed = 0;
  const manager = new Manager({
    cluster,
    sources: sources('cf'),
    reconcilers: [...buildSideReconcilers({ fetchProgram: 'fetch()', now: fastClock }), appClaims],
    leader: { ns: 'kf-system', name: 'kf-controller', identity: 'test' },
    rootNamespace: 'cf',
    log: createLogger('error', () => undefined),
    now: () => Date.now() + passed,
  });
  const aborter = new AbortController();
  const running = manager.run(aborter.signal);
  return {
    cluster,
    until: (check) => vi.waitFor(check, { timeout: patienceMs, interval: 10 }),
    condition: (type, ns, name, of) => findCondition(cluster.peek(type, ns, name) ?? { metadata: {} }, of),
    pass: (ms) => void (passed += ms),
    stop: async () => {
      aborter.abort();
      await running;
    },
  };
}

async function prepare(cluster: MemoryCluster): Promise<void> {
  if (cluster.peek(namespaceType, undefined, 'cf') !== undefined) return;
  for (const name of ['cf', 'kf-system']) await cluster.create(namespaceType, { metadata: { name, labels: { [labels.managedBy]: 'kf' } } });
  await cluster.create(configMapType, { metadata: { name: 'kf-info', namespace: 'cf' }, data: { 'info.json': JSON.stringify(info) } });
  const key = Buffer.from('0123456789abcdef0123456789abcdef').toString('base64');
  await cluster.create(secretType, { metadata: { name: 'kf-registry-key', namespace: 'kf-system' }, data: { key } });
  const mirror = { MIRROR: Buffer.from('m').toString('base64') };
  await cluster.create(secretType, { metadata: { name: 'kf-build-env', namespace: 'kf-system' }, data: mirror });
  const builder: BuilderInfo = {
    apiVersion: 'korifi.cloudfoundry.org/v1alpha1',
    kind: 'BuilderInfo',
    metadata: { name: 'kf-builder', namespace: 'cf' },
    spec: {},
  };
  const made = await cluster.create(kinds.builderInfo, builder);
  const stamps = { creationTimestamp: 'x', updatedTimestamp: 'x' };
  const status = {
    stacks: [{ name: 'kf', description: '', ...stamps }],
    buildpacks: [{ name: 'kf/nodejs', version: '1.0.0', stack: 'kf', ...stamps }],
    builder: { image: 'builder:1', runImage: 'run:1', digest: 'sha256:1', uid: 1001, gid: 1002, architecture: 'amd64' },
  };
  await cluster.mergePatch(
    kinds.builderInfo,
    'cf',
    'kf-builder',
    { metadata: { resourceVersion: made.metadata.resourceVersion }, status },
    { subresource: 'status' },
  );
}

/** An app as the CLI creates it. */
export function app(name: string, ns = 's-1', displayName = name): CFApp {
  return {
    apiVersion: 'korifi.cloudfoundry.org/v1alpha1',
    kind: 'CFApp',
    metadata: { name, namespace: ns },
    spec: { displayName, desiredState: 'STOPPED', envSecretName: `${name}-env`, lifecycle: { type: 'buildpack', data: { stack: '' } } },
  };
}

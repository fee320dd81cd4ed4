// The reconcilers of apps on a cluster in memory, with a simulated node and gateway.

import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { vi } from 'vitest';
import { appReconciler } from '../../../src/controller/apps/app.ts';
import { appEventsReconciler } from '../../../src/controller/apps/event-log.ts';
import { appWorkloadReconciler } from '../../../src/controller/rollout/workload.ts';
import { domainReconciler } from '../../../src/controller/routes/domain.ts';
import { frozenSecretsReconciler } from '../../../src/controller/rollout/frozen-secrets.ts';
import { processReconciler } from '../../../src/controller/rollout/process.ts';
import { routeReconciler } from '../../../src/controller/routes/route.ts';
import { createLogger } from '../../../src/controller/runtime/log.ts';
import { Manager } from '../../../src/controller/runtime/manager.ts';
import { sources } from '../../../src/controller/sources.ts';
import { configMapType, secretType, serviceType } from '../../../src/lib/api/core.ts';
import { podType } from '../../../src/lib/api/pod-kind.ts';
import { httpRouteType, mainBackends, revisionHeader, revisionOf, type HttpRoute } from '../../../src/lib/api/gateway.ts';
import { annotations, kinds, labels } from '../../../src/lib/api/group.ts';
import type { AppRollout, CFApp, CFBuild, CFProcess } from '../../../src/lib/api/types.generated.ts';
import { defined } from '../../../src/lib/defined.ts';
import { MemoryCluster } from '../../support/memory-cluster.ts';
import { patienceMs } from '../../support/until.ts';
import { info } from './build-scene.ts';
import { appGuid, Node, ns, readyPods } from './run-node.ts';

export { appGuid, ns };

export interface Gateway {
  server: Server;
  address: string;
  /** From now on it names the forms of routes that it has at this moment; `false`: the present ones again. */
  freeze: (isFrozen: boolean) => void;
}

/** The generation that gets most requests without a header. */
function carrierOf(cluster: MemoryCluster): string {
  const backends = cluster.all(httpRouteType).flatMap((route) => mainBackends(route));
  const name = backends.toSorted((a, b) => (b.weight ?? 1) - (a.weight ?? 1))[0]?.name;
  return cluster.all(serviceType).find(({ metadata }) => metadata.name === name)?.metadata.labels?.[labels.generation] ?? '';
}

/** A gateway that routes by the generation header, as the HTTPRoute's probe rules say, and by the weights without it. */
export async function startGateway(cluster: MemoryCluster): Promise<Gateway> {
  let loaded: HttpRoute[] | undefined;
  const server = createServer((request, response) => {
    const generation = String(request.headers['kf-generation'] ?? carrierOf(cluster));
    const service = cluster.all(serviceType).find(({ metadata }) => metadata.labels?.[labels.generation] === generation);
    if (request.headers[revisionHeader] !== undefined) {
      const routes = (loaded ?? cluster.all(httpRouteType)).filter(
        ({ spec }) => spec?.hostnames?.includes(request.headers.host ?? '') === true,
      );
      response.writeHead(302, { location: `http://${revisionOf(routes[0]) ?? 'none'}.loaded.kf.invalid/` }).end();
      return;
    }
    const serves = service !== undefined && readyPods(cluster, generation) > 0;
    const own = cluster.all(podType).find((pod) => pod.metadata.labels?.[labels.generation] === generation);
    const image = own?.spec?.containers[0]?.image ?? '';
    const status = image.startsWith('mute') ? 502 : serves && !image.startsWith('down') ? 200 : 503;
    response.writeHead(status, serves ? { 'kf-generation': generation } : {}).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    server,
    address: `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`,
    freeze: (isFrozen) => (loaded = isFrozen ? structuredClone(cluster.all(httpRouteType)) : undefined),
  };
}

export interface RunScene {
  cluster: MemoryCluster;
  until: (check: () => void) => Promise<void>;
  app: () => CFApp | undefined;
  web: () => CFProcess | undefined;
  /** Changes the app as a push does: droplet, STARTED, a fresh deploy-id. */
  deploy: (image: string, more?: DeployOptions) => Promise<string>;
  patchApp: (patch: Record<string, unknown>) => Promise<void>;
  /** New pods of `good` run and are not ready until this ends. */
  holdStarts: (isHeld: boolean) => void;
  /** From now on a quota refuses pods beyond so many. */
  limitPods: (most: number) => void;
  /** Of the gateway, which answers as the version that gets most requests, or as the one that the header names. */
  gateway: string;
  /** The gateway accepts routes, but loads no changes of them any more; `false`: it loads them again. */
  freezeGateway: (isFrozen: boolean) => void;
  /** The metrics of the present controller. */
  metrics: () => Promise<string>;
  /** Ends the controller and starts another. */
  restartController: () => Promise<void>;
  stopController: () => Promise<void>;
  stop: () => Promise<void>;
}

export interface DeployOptions {
  /** Changes the environment, as a push does. */
  rev?: string;
  annotations?: Record<string, string>;
  /** Those that the droplet names. */
  processTypes?: readonly string[];
  /** Those that the image exposes. */
  ports?: readonly number[];
  /** How the instances are replaced. */
  rollout?: Omit<AppRollout, 'id'>;
}

interface Controller {
  stop: () => Promise<void>;
  metrics: () => Promise<string>;
}

function manager(cluster: MemoryCluster, identity: string, { eventPauseMs, now }: SceneOptions): Controller {
  const aborter = new AbortController();
  const made = new Manager({
    cluster,
    sources: sources('cf'),
    reconcilers: [
      ...[appReconciler, processReconciler(), appWorkloadReconciler, frozenSecretsReconciler(), routeReconciler, domainReconciler],
      ...(eventPauseMs === undefined ? [] : [appEventsReconciler(eventPauseMs)]),
    ],
    leader: { ns: 'kf-system', name: 'kf-controller', identity, followMs: 20 },
    rootNamespace: 'cf',
    ...defined({ now }),
    log: createLogger('error', (line) => process.stderr.write(line)),
  });
  const running = made.run(aborter.signal);
  return {
    metrics: () => made.renderMetrics(),
    stop: async () => {
      aborter.abort();
      await running;
    },
  };
}

async function createObjects(cluster: MemoryCluster, address: string, routed: boolean): Promise<void> {
  const settings = {
    ...info,
    drainSeconds: 1,
    gateway: { ...info.gateway, features: ['HTTPRouteResponseHeaderModification'], internalAddress: address },
  };
  await cluster.create(configMapType, { metadata: { name: 'kf-info', namespace: 'cf' }, data: { 'info.json': JSON.stringify(settings) } });
  await cluster.create(kinds.domain, { metadata: { name: 'domain-1', namespace: 'cf' }, spec: { name: 'apps.example' } });
  await cluster.create(secretType, { metadata: { name: 'env', namespace: ns }, data: { COLOUR: Buffer.from('red').toString('base64') } });
  await cluster.create(kinds.app, {
    metadata: { name: appGuid, namespace: ns, annotations: { [annotations.appRev]: '0' } },
    spec: { displayName: 'shop', desiredState: 'STOPPED', lifecycle: { type: 'docker', data: { stack: '' } }, envSecretName: 'env' },
  });
  if (routed) await createRoute(cluster, 'route-1', 'shop');
}

/** A route to web. */
export async function createRoute(cluster: MemoryCluster, name: string, host: string): Promise<void> {
  await cluster.create(kinds.route, {
    metadata: { name, namespace: ns },
    spec: {
      host,
      domainRef: { name: 'domain-1', namespace: 'cf' },
      destinations: [{ guid: name.replace('route', 'dest'), appRef: { name: appGuid }, processType: 'web' }],
    },
  });
}

export interface SceneOptions {
  routed?: boolean;
  /** The controller cannot reach the gateway, but it can reach instances: all of them listen at the gateway's own port on loopback. */
  unreachableGateway?: boolean;
  /** The controller records what happens to apps, with this pause between two writes. */
  eventPauseMs?: number;
  /** The controller's wall clock in milliseconds. */
  now?: () => number;
  /** Names of the routes that the gateway turns down. */
  refusedRoutes?: ReadonlySet<string>;
}

export async function startRunScene(options: SceneOptions = {}): Promise<RunScene> {
  const { routed = true, unreachableGateway = false, refusedRoutes = new Set<string>() } = options;
  const cluster = new MemoryCluster();
  const gateway = await startGateway(cluster);
  // Port 9 is the discard port; nothing listens there.
  await createObjects(cluster, unreachableGateway ? 'http://127.0.0.1:9' : gateway.address, routed);
  const node = new Node(cluster, unreachableGateway ? '127.0.0.1' : '192.0.2.1', refusedRoutes);
  const ports = [unreachableGateway ? Number(new URL(gateway.address).port) : 8080];
  let controller = manager(cluster, 'one', options);
  let count = 0;
  const patchApp = async (patch: Record<string, unknown>): Promise<void> => void (await cluster.mergePatch(kinds.app, ns, appGuid, patch));
  const stopController = (): Promise<void> => controller.stop();
  return {
    cluster,
    until: (check) => vi.waitFor(check, { timeout: patienceMs, interval: 5 }),
    app: () => cluster.peek(kinds.app, ns, appGuid),
    web: () => cluster.all(kinds.process).find(({ spec }) => spec.processType === 'web'),
    patchApp,
    holdStarts: (isHeld) => node.holdStarts(isHeld),
    limitPods: (most) => node.limitPods(most),
    gateway: gateway.address,
    freezeGateway: gateway.freeze,
    metrics: () => controller.metrics(),
    deploy: async (image, more = {}) => {
      count += 1;
      const build = `build-${String(count)}`;
      const made = await cluster.create<CFBuild>(kinds.build, {
        metadata: { name: build, namespace: ns },
        spec: {
          appRef: { name: appGuid },
          packageRef: { name: 'p' },
          lifecycle: { type: 'docker', data: { stack: '' } },
          stagingMemoryMB: 1,
          stagingDiskMB: 1,
        },
      });
      const processTypes = more.processTypes?.map((type) => ({ type, command: 'work' }));
      const status = { state: 'STAGED', droplet: { registry: { image }, ports: more.ports ?? ports, ...defined({ processTypes }) } };
      await cluster.mergePatch(kinds.build, ns, build, { metadata: { uid: made.metadata.uid }, status }, { subresource: 'status' });
      const deployId = `deploy-${String(count)}`;
      const marks = {
        [annotations.deployId]: deployId,
        ...(more.rev === undefined ? {} : { [annotations.appRev]: more.rev }),
        ...more.annotations,
      };
      const rollout = more.rollout === undefined ? {} : { rollout: { id: deployId, step: null, canceled: null, ...more.rollout } };
      await patchApp({
        metadata: { annotations: marks },
        spec: { desiredState: 'STARTED', currentDropletRef: { name: build }, ...rollout },
      });
      return deployId;
    },
    restartController: async () => {
      await stopController();
      controller = manager(cluster, 'two', options);
    },
    stopController,
    stop: async () => {
      await stopController();
      node.stop();
      await node.ended;
      gateway.server.close();
      cluster.close();
    },
  };
}

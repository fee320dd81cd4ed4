// One whole life of an org in a cluster in memory, from the setup to its deletion, by the writes of the CLI. The controller may be killed on the way.

import { expect, vi } from 'vitest';
import { findCondition, isReady } from '../../../src/lib/api/conditions.ts';
import {
  configMapType, jobType, namespaceType, podDisruptionBudgetType, roleBindingType, secretType, statefulSetType,
} from '../../../src/lib/api/core.ts'; // prettier-ignore
import { gatewayType, type Listener } from '../../../src/lib/api/gateway.ts';
import { annotations, kinds, labels } from '../../../src/lib/api/group.ts';
import { networkPolicyType } from '../../../src/lib/api/network-policy.ts';
import type { KubeObject, ResourceType, Stored } from '../../../src/lib/api/object.ts';
import { cfRoles } from '../../../src/lib/api/roles.ts';
import type { CFApp, CFProcess } from '../../../src/lib/api/types.generated.ts';
import { ensureCertificateSecrets } from '../../../src/lib/ops/install/tls-secrets.ts';
import { buildApp, buildEnvSecret } from '../../../src/templates/app.ts';
import { buildBuild, buildBuildEnvSecret, buildPackage } from '../../../src/templates/build.ts';
import { buildPolicyHalf } from '../../../src/templates/network-policies.ts';
import { buildDestination, buildRoute } from '../../../src/templates/route.ts';
import { buildAppBinding, buildCredentialsSecret, buildUserProvidedInstance } from '../../../src/templates/service.ts';
import { buildTask } from '../../../src/templates/task.ts';
import { buildDomain, buildOrg, buildQuota, buildRoleBinding, buildSpace } from '../../../src/templates/tenancy.ts';
import { frozenSecretNames } from '../../../src/templates/workload.ts';
import { MemoryCluster } from '../../support/memory-cluster.ts';
import { patienceMs } from '../../support/until.ts';
import { info } from './build-scene.ts';
import { KilledController, type Kill } from './killed-controller.ts';
import { World } from './life-world.ts';

const [root, org, ns, appGuid] = ['cf', 'o-1', 's-1', 'a-1'];
const author = { changedBy: 'alice', now: new Date('2026-01-01T00:00:00Z') };
const lifecycle = { type: 'buildpack' as const, data: { stack: '' } };
const longAgo = '2026-01-01T00:00:00Z';
const allowedRoutes = { namespaces: { from: 'Selector' } };
const listeners: Listener[] = [
  { name: 'http-apps', port: 8000, protocol: 'HTTP', allowedRoutes },
  {
    name: 'https-apps',
    port: 8443,
    protocol: 'HTTPS',
    allowedRoutes,
    tls: { mode: 'Terminate', certificateRefs: [{ group: '', kind: 'Secret', name: 'kf-gateway-tls', namespace: 'kf-system' }] },
  },
];

/** The stages after which the objects are compared, in their order. */
export const stages = ['made', 'used', 'deleted', 'gone'] as const;
export type Stage = (typeof stages)[number];

const until = (check: () => void): Promise<void> => vi.waitFor(check, { timeout: patienceMs, interval: 15 });

export class Life {
  readonly cluster: MemoryCluster;
  readonly controller: KilledController;
  readonly #world: World;
  #passed = 0;
  #changes = 0;

  private constructor(cluster: MemoryCluster, world: World, controller: (now: () => number) => KilledController) {
    this.cluster = cluster;
    this.#world = world;
    this.controller = controller(() => Date.now() + this.#passed);
  }

  /** Begins a life. @param https the address where the gateway shows its certificates */
  static async begin(https: string, kills: readonly Kill[] = []): Promise<Life> {
    const cluster = new MemoryCluster();
    const begun: { life?: Life } = {};
    const world = await World.start(cluster, (step, send) => {
      if (begun.life === undefined) throw new Error('the registry was written to before there was a controller');
      return begun.life.controller.outside('images', step, send);
    });
    await setUp(cluster, world, https);
    begun.life = new Life(cluster, world, (now) => new KilledController(cluster, kills, now));
    return begun.life;
  }

  /** How often a pod of each Job was made. */
  get podsOfJobs(): ReadonlyMap<string, number> {
    return this.#world.podsOfJobs;
  }

  get repositories(): string[] {
    return this.#world.repositories;
  }

  async end(): Promise<void> {
    await this.controller.stop();
    await this.#world.stop();
    this.cluster.close();
  }

  /** Lives on until the end of the stage. */
  async live(stage: Stage): Promise<void> {
    const acts: Record<Stage, () => Promise<void>> = {
      made: () => this.#make(),
      used: () => this.#use(),
      deleted: () => this.#deleteApp(),
      gone: () => this.#deletePlaces(),
    };
    await acts[stage]();
  }

  async #make(): Promise<void> {
    await this.cluster.create(kinds.domain, buildDomain({ guid: 'd-1', rootNamespace: root, name: 'apps.example' }, author));
    await this.#ready(kinds.domain, root, 'd-1');
    await this.cluster.create(kinds.org, buildOrg({ guid: org, rootNamespace: root, displayName: 'acme' }, author));
    await this.#ready(kinds.org, root, org);
    await this.#giveRole();
    await this.cluster.create(kinds.space, buildSpace({ guid: ns, orgGuid: org, displayName: 'dev' }, author));
    await this.#ready(kinds.space, org, ns);
    await this.#limit();
    await this.#push('b-1');
    await this.#scale();
    await this.#bind();
    await this.#push('b-2');
  }

  async #use(): Promise<void> {
    await this.#runTasks();
    await this.#connect();
    await this.#pushOften();
    await this.#loseSecret();
    await this.#rollBack();
    await this.#restart();
    await this.#stop();
  }

  /** `kf set-org-role`, after which alice is a user of the installation. */
  async #giveRole(): Promise<void> {
    const given = { role: cfRoles.organizationManager, subject: { user: 'alice' }, namespace: org, guid: 'r-1' };
    await this.cluster.create(roleBindingType, buildRoleBinding(given));
    await until(() =>
      expect(this.cluster.all(roleBindingType).map(({ metadata, roleRef }) => `${metadata.namespace} ${roleRef.name}`)).toContain(
        `${root} ${cfRoles.cfUser.clusterRole}`,
      ),
    );
  }

  /** `kf create-quota` and `kf set-quota`. */
  async #limit(): Promise<void> {
    const spec = { displayName: 'small', totalMemoryMB: 4096, appInstances: 20 };
    await this.cluster.create(kinds.quota, buildQuota({ guid: 'q-1', namespace: root, spec }, author));
    await this.cluster.mergePatch(kinds.org, root, org, { metadata: { annotations: { [annotations.quota]: 'q-1' } } });
    await until(() => expect(JSON.stringify(this.#inSpace('ResourceQuota'))).toContain('4096Mi'));
  }

  /** `kf push` from source. */
  async #push(build: string): Promise<void> {
    const app = this.#app() ?? (await this.#createApp());
    const image = `${this.#world.registry}/${ns}/${appGuid}-packages@sha256:${'a'.repeat(64)}`;
    await this.cluster.create(kinds.package, buildPackage({ guid: `p-${build}`, app, type: 'bits', image }, author));
    await this.#ready(kinds.package, ns, `p-${build}`);
    const input = { guid: build, app, packageGuid: `p-${build}`, lifecycle, stagingMemoryMB: 0, stagingDiskMB: 0 };
    const made = await this.cluster.create(kinds.build, buildBuild({ ...input, envSecretName: `${build}-env` }, author));
    await this.cluster.create(secretType, buildBuildEnvSecret(made, { COLOUR: 'red' }, author));
    await until(() => expect(this.cluster.peek(kinds.build, ns, build)?.status?.state).toBe('STAGED'));
    await this.#change({ desiredState: 'STARTED', currentDropletRef: { name: build } }, 'Serving');
  }

  async #createApp(): Promise<Stored<CFApp>> {
    const app = await this.cluster.create(kinds.app, buildApp({ guid: appGuid, namespace: ns, displayName: 'shop', lifecycle }, author));
    await this.cluster.create(secretType, buildEnvSecret(app, { COLOUR: 'red' }, author));
    await until(() => expect(findCondition(this.#app() ?? app, 'Claimed')?.status).toBe('True'));
    const domain = this.#need(this.cluster.peek(kinds.domain, root, 'd-1'));
    const destinations = [buildDestination({ guid: 'dest-1', appGuid })];
    await this.cluster.create(kinds.route, buildRoute({ guid: 'ro-1', namespace: ns, host: 'shop', domain, org, destinations }, author));
    await this.#ready(kinds.route, ns, 'ro-1');
    return app;
  }

  /** `kf scale -i 2`. */
  async #scale(): Promise<void> {
    await this.cluster.mergePatch(kinds.process, ns, this.#web().metadata.name, { spec: { desiredInstances: 2 } });
    await until(() => {
      expect(this.#web().status?.actualInstances).toBe(2);
      expect(this.cluster.all(podDisruptionBudgetType)).toHaveLength(1);
    });
  }

  /** `kf create-user-provided-service` and `kf bind-service`. */
  async #bind(): Promise<void> {
    const wanted = buildUserProvidedInstance({ guid: 'si-1', namespace: ns, displayName: 'db', secretName: 'si-1' }, author);
    const instance = await this.cluster.create(kinds.serviceInstance, wanted);
    await this.cluster.create(secretType, buildCredentialsSecret(instance, { url: 'u' }, author));
    await this.#ready(kinds.serviceInstance, ns, 'si-1');
    await this.cluster.create(kinds.serviceBinding, buildAppBinding({ guid: 'sb-1', app: this.#need(this.#app()), instance }, author));
    await this.#ready(kinds.serviceBinding, ns, 'sb-1');
  }

  /** `kf run-task`, twice; only the newest task is kept, when the one before is old. */
  async #runTasks(): Promise<void> {
    for (const guid of ['t-1', 't-2']) {
      await this.cluster.create(kinds.task, buildTask({ guid, app: this.#need(this.#app()), name: guid, command: 'rake' }, author));
      await until(() => {
        expect(findCondition(this.#need(this.cluster.peek(kinds.task, ns, guid)), 'Succeeded')?.status).toBe('True');
        expect(this.cluster.peek(jobType, ns, guid)?.spec?.ttlSecondsAfterFinished).toBeGreaterThan(0);
      });
      const { conditions = [] } = this.#need(this.cluster.peek(kinds.task, ns, guid)).status ?? {};
      const old = conditions.map((one) => ({ ...one, lastTransitionTime: longAgo }));
      await this.cluster.mergePatch(kinds.task, ns, guid, { status: { conditions: old } }, { subresource: 'status' });
    }
    await until(() => expect(this.cluster.all(kinds.task)).toHaveLength(1));
  }

  /** `kf create-app` and `kf add-network-policy`. */
  async #connect(): Promise<void> {
    const input = { guid: 'a-2', namespace: ns, displayName: 'worker', lifecycle };
    const peer = await this.cluster.create(kinds.app, buildApp(input, author));
    await this.cluster.create(secretType, buildEnvSecret(peer, {}, author));
    const app = this.#need(this.#app());
    const ports = { protocol: 'tcp' as const, port: 8080 };
    await this.cluster.create(kinds.networkPolicy, buildPolicyHalf(app, 'connects', { peer, ports }, author));
    await this.cluster.create(kinds.networkPolicy, buildPolicyHalf(peer, 'accepts', { peer: app, ports }, author));
    await until(() => expect(this.cluster.all(networkPolicyType).map(({ metadata }) => metadata.name)).toContain(`kf-app-${appGuid}`));
  }

  /** Old packages of the app, of which the oldest goes. */
  async #pushOften(): Promise<void> {
    const app = this.#need(this.#app());
    for (const day of ['1', '2', '3', '4']) {
      const guid = `p-${day}`;
      await this.cluster.create(kinds.package, buildPackage({ guid, app, type: 'bits', image: `i@sha256:${'b'.repeat(64)}` }, author));
      await this.#ready(kinds.package, ns, guid);
      await this.cluster.mergePatch(kinds.package, ns, guid, { metadata: { creationTimestamp: `2026-01-0${day}T00:00:00Z` } });
    }
    await until(() => expect(this.cluster.peek(kinds.package, ns, 'p-1')).toBeUndefined());
  }

  /** Somebody deletes the copy of the variables that the instances have. */
  async #loseSecret(): Promise<void> {
    const names = this.cluster.all(kinds.appWorkload).filter(({ spec }) => spec.instances > 0).flatMap(frozenSecretNames); // prettier-ignore
    const name = this.#need(names.at(-1));
    await this.cluster.delete(secretType, ns, name);
    this.#pass(10_000);
    await this.#touchWorkloads();
    await until(() => expect(this.cluster.peek(secretType, ns, name)).toBeDefined());
  }

  /** Starts a look at each. */
  async #touchWorkloads(): Promise<void> {
    for (const { metadata } of this.cluster.all(kinds.appWorkload))
      await this.cluster.mergePatch(kinds.appWorkload, ns, metadata.name, { metadata: { annotations: { touched: 'yes' } } });
  }

  /** `kf rollback --version 1`. */
  async #rollBack(): Promise<void> {
    await this.#change({ currentDropletRef: { name: 'b-1' } }, 'Serving', (id) => ({ [annotations.rolledBack]: `1/${id}` }));
  }

  async #restart(): Promise<void> {
    await this.#change({}, 'Serving', () => ({ [annotations.appRev]: this.#nextRev() }));
  }

  async #stop(): Promise<void> {
    const rev = this.#nextRev();
    const marks = { [annotations.appRev]: rev, [annotations.lastStopAppRev]: rev };
    await this.#change({ desiredState: 'STOPPED' }, 'Stopped', () => marks);
  }

  /** `kf delete -r` of both apps, and `kf delete-service`; the binding goes with its app. */
  async #deleteApp(): Promise<void> {
    // The controller looks at the registry again.
    this.#pass(30_000);
    await this.cluster.delete(kinds.route, ns, 'ro-1');
    for (const name of [appGuid, 'a-2']) await this.cluster.delete(kinds.app, ns, name);
    await until(() => {
      expect(this.cluster.all(kinds.serviceBinding)).toEqual([]);
      expect(this.cluster.all(statefulSetType)).toEqual([]);
      expect(this.repositories).toEqual([]);
    });
    await this.cluster.delete(kinds.serviceInstance, ns, 'si-1');
  }

  /** `kf delete-space` and `kf delete-org`. */
  async #deletePlaces(): Promise<void> {
    await this.cluster.delete(kinds.space, org, ns);
    await until(() => expect(this.cluster.all(kinds.space)).toEqual([]));
    await this.cluster.delete(kinds.org, root, org);
    await until(() => {
      expect(this.cluster.all(kinds.org)).toEqual([]);
      expect(this.cluster.peek(namespaceType, undefined, org)).toBeUndefined();
    });
  }

  /** One patch of the app, as each of these commands makes, and the wait for it. */
  async #change(spec: object, phase: string, marks: (id: string) => Record<string, string> = () => ({})): Promise<void> {
    this.#changes += 1;
    const id = `change-${String(this.#changes)}`;
    const notes = { ...marks(id), [annotations.deployId]: id };
    await this.cluster.mergePatch(kinds.app, ns, appGuid, { metadata: { annotations: notes }, spec });
    await until(() => expect(this.#app()?.status?.deployment).toMatchObject({ id, phase }));
  }

  #nextRev(): string {
    return String(Number(this.#app()?.metadata.annotations?.[annotations.appRev] ?? '0') + 1);
  }

  #app(): Stored<CFApp> | undefined {
    return this.cluster.peek(kinds.app, ns, appGuid);
  }

  #web(): Stored<CFProcess> {
    return this.#need(this.cluster.all(kinds.process).find(({ metadata }) => metadata.labels?.[labels.appGuid] === appGuid));
  }

  #inSpace(kind: string): Stored[] {
    const all = this.cluster.everything();
    return all.filter(({ type, object }) => type.kind === kind && object.metadata.namespace === ns).map(({ object }) => object);
  }

  #need<T>(found: T | undefined): T {
    if (found === undefined) throw new Error('something of this life is missing');
    return found;
  }

  #pass(ms: number): void {
    this.#passed += ms;
  }

  async #ready<T extends KubeObject>(type: ResourceType<T>, place: string, name: string): Promise<void> {
    await until(() => expect(isReady(this.cluster.peek(type, place, name) ?? { metadata: {} })).toBe(true));
  }
}

/** What `kf setup` leaves. */
async function setUp(cluster: MemoryCluster, world: World, https: string): Promise<void> {
  for (const name of [root, 'kf-system', 'kf-node'])
    await cluster.create(namespaceType, { metadata: { name, labels: { [labels.managedBy]: 'kf', [labels.partOf]: 'setup' } } });
  const settings = {
    ...info,
    drainSeconds: 1,
    tasksKeptPerApp: 1,
    // The name of an image that answers.
    registry: { ...info.registry, pushHost: world.registry, pullPrefix: 'good.example/' },
    gateway: {
      ...info.gateway,
      features: ['HTTPRouteResponseHeaderModification'],
      internalAddress: world.gatewayAddress,
      https: { port: 443, secrets: [], internalAddress: https, issuer: { name: 'an-authority' } },
    },
    network: { egress: [], ingress: [], dns: [], apiServer: ['198.51.100.1'], ipv6: false },
  };
  const key = Buffer.from('0123456789abcdef0123456789abcdef').toString('base64');
  await cluster.create(secretType, { metadata: { name: 'kf-registry-key', namespace: 'kf-system' }, data: { key } });
  await ensureCertificateSecrets(cluster);
  await cluster.create(configMapType, { metadata: { name: 'kf-ca-certificate', namespace: root } });
  await cluster.create(gatewayType, { metadata: { name: 'kf', namespace: 'kf-node' }, spec: { gatewayClassName: 'x', listeners } });
  await cluster.create(configMapType, {
    metadata: { name: 'kf-info', namespace: root },
    data: { 'info.json': JSON.stringify(settings) },
  });
  // The API server has known the kinds of kf for long: quotas name them from the beginning.
  await cluster.mergePatch(configMapType, root, 'kf-info', { metadata: { creationTimestamp: longAgo } });
}

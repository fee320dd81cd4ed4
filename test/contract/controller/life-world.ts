// What else runs in the cluster of a whole life: the controllers of Kubernetes, the kubelet, the gateway, cert-manager and the registry's gate.

import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { certificateType } from '../../../src/lib/api/cert-manager.ts';
import { jobType, namespaceType, type Job } from '../../../src/lib/api/core.ts';
import { gatewayType } from '../../../src/lib/api/gateway.ts';
import { annotations, labels } from '../../../src/lib/api/group.ts';
import type { KubeObject, ResourceType, Stored } from '../../../src/lib/api/object.ts';
import { podType, type Pod } from '../../../src/lib/api/pod-kind.ts';
import { builderPodName } from '../../../src/templates/builder-pod.ts';
import type { MemoryCluster } from '../../support/memory-cluster.ts';
import { Node } from './run-node.ts';
import { startGateway, type Gateway } from './run-scene.ts';

const past = '2026-01-01T00:00:00Z';
const digestOf = (build: string): string => `sha256:${Buffer.from(build).toString('hex').padEnd(64, '0').slice(0, 64)}`;
const metadata = gzipSync(
  '[[processes]]\ntype = "web"\ncommand = ["node", "s.js"]\ndirect = true\n[[buildpacks]]\nid = "kf/nodejs"\nversion = "1.0.0"\n',
).toString('base64');
const ended = (message = '') => ({ terminated: { exitCode: 0, reason: 'Completed', message, finishedAt: past } });
const container = (name: string, state: object) => ({ name, image: 'i', imageID: '', ready: false, restartCount: 0, state });
const condition = (type: string, of: KubeObject) => ({
  type,
  status: 'True' as const,
  reason: 'x',
  message: '',
  lastTransitionTime: past,
  observedGeneration: of.metadata.generation ?? 1,
});

/** A write of the controller to the registry. */
type Outside = (step: string, send: () => Promise<void>) => Promise<void>;

export class World {
  /** How often a pod of each Job was made. */
  readonly podsOfJobs = new Map<string, number>();
  readonly #cluster: MemoryCluster;
  readonly #gateway: Gateway;
  readonly #node: Node;
  readonly #registry: Server;
  readonly #repositories = new Set<string>();
  readonly #stopped = new AbortController();
  readonly #ended: Promise<void>;

  private constructor(cluster: MemoryCluster, gateway: Gateway, registry: Server) {
    this.#cluster = cluster;
    this.#gateway = gateway;
    this.#registry = registry;
    this.#node = new Node(cluster, '192.0.2.1');
    this.#ended = this.#live();
  }

  static async start(cluster: MemoryCluster, outside: Outside): Promise<World> {
    const registry = createServer();
    await new Promise<void>((resolve) => registry.listen(0, '127.0.0.1', resolve));
    const world = new World(cluster, await startGateway(cluster), registry);
    world.#answer(outside);
    return world;
  }

  get gatewayAddress(): string {
    return this.#gateway.address;
  }

  /** Host and port of the registry. */
  get registry(): string {
    return `127.0.0.1:${String((this.#registry.address() as AddressInfo).port)}`;
  }

  /** The repositories with images. */
  get repositories(): string[] {
    return [...this.#repositories].toSorted();
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    this.#node.stop();
    await Promise.all([this.#ended, this.#node.ended]);
    this.#gateway.server.close();
    this.#registry.close();
    this.#registry.closeAllConnections();
  }

  /** The registry's gate, as far as the controller asks it. */
  #answer(outside: Outside): void {
    this.#registry.on('request', (request, response) => {
      const [, repository = ''] = /^\/kf\/repositories\/([^/]+\/[^/?]+)/.exec(request.url ?? '') ?? [];
      const reply = (body: object): void => void response.writeHead(200).end(JSON.stringify(body));
      if (request.method === 'GET') return reply({ now: Math.floor(Date.now() / 1000), repositories: this.repositories });
      if (request.method === 'POST') return reply({ manifests: 0, isUsed: false });
      const remove = (): Promise<void> => Promise.resolve(void this.#repositories.delete(repository));
      outside('remove repository', remove).then(
        () => reply({}),
        () => request.socket.destroy(),
      );
    });
  }

  async #live(): Promise<void> {
    for (let seen = -1; !this.#stopped.signal.aborted; await sleep(5)) {
      if (this.#cluster.writes.length === seen) continue;
      seen = this.#cluster.writes.length;
      for (const job of this.#cluster.all(jobType)) await this.#follow(job);
      for (const pod of this.#cluster.all(podType)) await this.#advance(pod);
      await this.#certify();
      for (const namespace of this.#cluster.all(namespaceType))
        if (namespace.metadata.deletionTimestamp !== undefined) await this.#empty(namespace.metadata.name);
    }
  }

  /** The Job controller: one pod for each Job that may run, and its end. */
  async #follow(job: Stored<Job>): Promise<void> {
    const { namespace, name, uid } = job.metadata;
    if (job.spec?.suspend === true || (job.status?.conditions ?? []).length > 0) return;
    const pod = this.#cluster.all(podType).find(({ metadata: { ownerReferences } }) => ownerReferences?.[0]?.uid === uid);
    if (pod?.status?.phase === 'Succeeded') {
      const status = { conditions: [{ type: 'Complete', status: 'True', reason: '', message: '' }] };
      await this.#patchStatus(jobType, job, status);
    }
    if (pod !== undefined) return;
    this.podsOfJobs.set(name, (this.podsOfJobs.get(name) ?? 0) + 1);
    await this.#cluster.create<Pod>(podType, {
      metadata: {
        name: `${name}-pod`,
        namespace,
        labels: { ...job.spec?.template.metadata?.labels },
        ownerReferences: [{ apiVersion: 'batch/v1', kind: 'Job', name, uid }],
      },
      spec: { containers: [] },
      status: { phase: 'Pending' },
    });
  }

  /** The kubelet, for all pods but those of StatefulSets. */
  async #advance(pod: Stored<Pod>): Promise<void> {
    if (pod.status?.phase === 'Succeeded') return;
    const marks = pod.metadata.labels ?? {};
    if (pod.metadata.name === builderPodName) {
      const report = 'uid=1001\ngid=1002\nmachine=x86_64\nstack=kf\ndescription=kf\norder=\n';
      await this.#patchStatus(podType, pod, { phase: 'Succeeded', containerStatuses: [container('look', ended(report))] });
    }
    if (marks[labels.taskGuid] !== undefined)
      await this.#patchStatus(podType, pod, { phase: 'Succeeded', containerStatuses: [container('workload', ended())] });
    const build = marks[labels.buildWorkloadName];
    if (build !== undefined) await this.#build(pod, build);
  }

  /** The container that uploads waits for the controller's word that the build has ended. */
  async #build(pod: Stored<Pod>, name: string): Promise<void> {
    const built = [container('source', ended()), container('build', ended())];
    if (pod.metadata.annotations?.[annotations.buildEnded] === undefined) {
      if (pod.status?.phase === 'Running') return;
      await this.#patchStatus(podType, pod, { phase: 'Running', containerStatuses: [...built, container('registry', { running: {} })] });
      return;
    }
    const app = pod.metadata.labels?.[labels.appGuid] ?? '';
    this.#repositories.add(`${pod.metadata.namespace}/${app}-droplets`);
    const uploaded = container('registry', ended(`digest=${digestOf(name)}\nmetadata=${metadata}\n`));
    await this.#patchStatus(podType, pod, { phase: 'Succeeded', containerStatuses: [...built, uploaded] });
  }

  /** cert-manager issues each certificate, and the gateway loads each listener. */
  async #certify(): Promise<void> {
    for (const certificate of this.#cluster.all(certificateType)) {
      if (certificate.status !== undefined) continue;
      await this.#patchStatus(certificateType, certificate, { conditions: [condition('Ready', certificate)] });
    }
    for (const gateway of this.#cluster.all(gatewayType)) {
      const loaded = gateway.status?.listeners?.[0]?.conditions?.[0]?.observedGeneration;
      if (loaded === gateway.metadata.generation) continue;
      const conditions = [condition('ResolvedRefs', gateway)];
      await this.#patchStatus(gatewayType, gateway, {
        listeners: (gateway.spec?.listeners ?? []).map(({ name }) => ({ name, conditions })),
      });
    }
  }

  /** The namespace controller. */
  async #empty(ns: string): Promise<void> {
    const inside = this.#cluster.everything().filter(({ object }) => object.metadata.namespace === ns);
    for (const { type, object } of inside)
      if (object.metadata.deletionTimestamp === undefined) await this.#cluster.delete(type, ns, object.metadata.name);
    if (this.#cluster.everything().some(({ object }) => object.metadata.namespace === ns)) return;
    await this.#cluster.mergePatch(namespaceType, undefined, ns, { metadata: { finalizers: null } });
  }

  /** The object may be gone by now. */
  async #patchStatus<T extends KubeObject>(
    type: ResourceType<T>,
    { metadata: { namespace, name, uid } }: Stored,
    status: object,
  ): Promise<void> {
    const patch = { metadata: { uid }, status };
    await this.#cluster.mergePatch(type, namespace, name, patch, { subresource: 'status' }).catch(() => undefined);
  }
}

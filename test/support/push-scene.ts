// kf against a served cluster, for pushes of one app `shop` from the folder `app`: this class acts as controller and registry.

import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { findCondition } from '../../src/lib/api/conditions.ts';
import { secretType } from '../../src/lib/api/core.ts';
import { annotations, kinds } from '../../src/lib/api/group.ts';
import { canaryOf, isCanceled } from '../../src/lib/api/rollout.ts';
import type { KubeObject, ResourceType } from '../../src/lib/api/object.ts';
import type { CFApp, CFBuild, CFPackage, DeploymentStatus, Droplet } from '../../src/lib/api/types.generated.ts';
import { ownerReference } from '../../src/templates/metadata.ts';
import { Cli, type CliRun } from './cli.ts';
import { ServedCluster } from './served-cluster.ts';

export const ns = 'space-guid';

/** The result of a usual build. */
export const builtWeb: Partial<Droplet> = {
  buildpacks: [{ name: 'kf/nodejs', version: '1' }],
  processTypes: [{ type: 'web', command: 'node server.js' }],
};

export const nameOf = (object: KubeObject | undefined): string => object?.metadata.name ?? '';
const encoded = (text: string): string => Buffer.from(text).toString('base64');

const condition = (type: string, status: 'True' | 'False', message = '') => ({
  type,
  status,
  reason: type,
  message,
  lastTransitionTime: '',
  observedGeneration: 1,
});

export class PushScene {
  /** The result of the next build; undefined: the build does not end. */
  droplet: Partial<Droplet> | 'fails' | undefined = builtWeb;
  /** Class of the next build's failure. */
  buildFailure: string | undefined;
  buildMessage = 'It broke.';
  /** How the next start fails; undefined: it succeeds. */
  failure: Omit<DeploymentStatus, 'id' | 'phase'> | undefined;
  /** The next start goes on for ever. */
  isStarting = false;
  /** Only this app stays in its start. */
  startingApp: string | undefined;
  /** Digests of the manifests that the registry has. */
  readonly images: Set<string>;
  readonly cluster: ServedCluster;
  readonly cli: Cli;
  /** Builds that have not ended, with how they will. */
  readonly #waiting = new Map<string, PushScene['droplet']>();

  private constructor(cluster: ServedCluster, program: string, images: Set<string>) {
    this.cluster = cluster;
    this.images = images;
    this.cli = new Cli(program, { KUBECONFIG: cluster.server.kubeconfig(), KF_ORG: 'example-org', KF_SPACE: 'example-space' });
    cluster.memory.intercept = (verb, type, name) => this.#reconcile(verb, type, name);
    mkdirSync(path.join(this.cli.home, 'app'));
    this.source('a');
  }

  /** @param program the kf to run */
  static async start(program: string): Promise<PushScene> {
    const cluster = await (await ServedCluster.start()).installed();
    const registry = '/api/v1/namespaces/kf-system/services/http:kf-registry:5000/proxy/v2/.*';
    const images = new Set<string>();
    cluster.server.on(`HEAD ${registry}`, (call) => {
      const isThere = call.path.includes('/blobs/') || images.has(call.path.slice(call.path.lastIndexOf('/') + 1));
      call.text('', isThere ? 200 : 404);
    });
    const manifests = new Map<string, string>();
    cluster.server.on(`PUT ${registry}`, (call) => {
      const digest = `sha256:${createHash('sha256').update(call.body).digest('hex')}`;
      images.add(digest);
      manifests.set(digest, call.body);
      call.text('', 201);
    });
    cluster.server.on(`GET ${registry}`, (call) => {
      const digest = call.path.slice(call.path.lastIndexOf('/') + 1);
      call.text(images.has(digest) ? (manifests.get(digest) ?? '') : '', images.has(digest) ? 200 : 404);
    });
    await cluster.add(secretType, {
      metadata: { name: 'kf-registry-push', namespace: ns },
      data: { username: encoded('push.space-guid'), password: encoded('secret') },
    });
    const at = { creationTimestamp: '2026-08-07T10:16:20Z', updatedTimestamp: '2026-08-07T10:16:20Z' };
    await cluster.add(kinds.builderInfo, { metadata: { name: 'kf-builder', namespace: 'cf' }, spec: {} });
    const status = {
      stacks: [{ name: 'kf', description: '', ...at }],
      buildpacks: [{ name: 'kf/nodejs', stack: 'kf', version: '1.0.0', ...at }],
    };
    await cluster.memory.mergePatch(kinds.builderInfo, 'cf', 'kf-builder', { status }, { subresource: 'status' });
    return new PushScene(cluster, program, images);
  }

  async stop(): Promise<void> {
    await this.cluster.stop();
    this.cli.remove();
  }

  /** Sets the source of the next push. */
  source(content: string): void {
    writeFileSync(path.join(this.cli.home, 'app', 'server.js'), content);
  }

  /** @throws when the command fails */
  async ok(...args: string[]): Promise<CliRun> {
    const run = await this.cli.run(args);
    if (run.code !== 0) throw new Error(`${args.join(' ')}: ${run.stdout}${run.stderr}`);
    return run;
  }

  builds(): CFBuild[] {
    return this.cluster.memory.all(kinds.build);
  }

  packages(): CFPackage[] {
    return this.cluster.memory.all(kinds.package);
  }

  app(): CFApp {
    const [found] = this.cluster.memory.all(kinds.app);
    if (found === undefined) throw new Error('there is no app');
    return found;
  }

  /** The variables that a build got. */
  variablesOf(build: CFBuild | undefined): Record<string, string> {
    const secret = this.cluster.memory.peek(secretType, ns, build?.metadata.annotations?.[annotations.envSecret] ?? '');
    const entries = Object.entries(secret?.data ?? {}).map(([name, value]) => [name, Buffer.from(value, 'base64').toString()]);
    return Object.fromEntries(entries) as Record<string, string>;
  }

  /** GUIDs of the instances that were bound when the build began. */
  servicesOf(build: CFBuild | undefined): string[] {
    const bindings = new Map(this.cluster.memory.all(kinds.serviceBinding).map(({ metadata, spec }) => [metadata.name, spec.service.name]));
    const { services = [] } = this.cluster.memory.peek(kinds.buildWorkload, ns, nameOf(build))?.spec ?? {};
    return services.map(({ name }) => bindings.get(name ?? '') ?? '');
  }

  /** The package from which the app's droplet was built. */
  packageThatRuns(): string {
    const droplet = this.app().spec.currentDropletRef?.name;
    return this.builds().find((build) => nameOf(build) === droplet)?.spec.packageRef.name ?? '';
  }

  setStatus<T extends KubeObject>(type: ResourceType<T>, name: string, status: object): void {
    void this.cluster.memory.mergePatch(type, ns, name, { status }, { subresource: 'status' }).catch(() => undefined);
  }

  endBuild(name: string, outcome: PushScene['droplet']): void {
    const staging = [condition('Staging', 'True', 'a node')];
    if (outcome === undefined) this.setStatus(kinds.build, name, { state: 'STAGING', conditions: staging });
    else if (outcome === 'fails')
      this.setStatus(kinds.build, name, {
        state: 'FAILED',
        conditions: [condition('Succeeded', 'False', this.buildMessage)],
        ...(this.buildFailure === undefined ? {} : { failure: { reason: this.buildFailure } }),
      });
    else
      this.setStatus(kinds.build, name, {
        state: 'STAGED',
        conditions: [condition('Succeeded', 'True')],
        droplet: { registry: { image: `image-of-${name}` }, ...outcome },
      });
  }

  /** Lists the existing bindings in the app's status. */
  tellBindings(): void {
    const serviceBindings = this.cluster.memory
      .all(kinds.serviceBinding)
      .map(({ metadata: { name = '' } }) => ({ guid: name, name, secret: name }));
    this.setStatus(kinds.app, nameOf(this.app()), { serviceBindings });
  }

  /** Names and hosts are free, builds end as `droplet` says, and each change of an app ends at once. */
  #reconcile(verb: string, type: ResourceType, name: string): void {
    if (verb === 'create' && type.plural === kinds.app.plural)
      setTimeout(() => this.setStatus(kinds.app, name, { conditions: [condition('Claimed', 'True')] }), 5);
    if (type.plural === kinds.route.plural && (verb === 'create' || verb === 'patch')) setTimeout(() => this.#keepRoute(name), 5);
    const uploaded = { conditions: [{ ...condition('Ready', 'True'), observedGeneration: 1 }] };
    if (verb === 'create' && type.plural === kinds.package.plural) setTimeout(() => this.setStatus(kinds.package, name, uploaded), 5);
    if (verb === 'create' && type.plural === kinds.build.plural) this.#build(name);
    if (verb === 'create' && type.plural === secretType.plural) setTimeout(() => this.#endWaiting(), 5);
    if (verb === 'create' && type.plural === kinds.serviceBinding.plural) setTimeout(() => void this.#makeReady(name), 5);
    if (verb === 'delete' && type.plural === kinds.serviceBinding.plural) setTimeout(() => this.tellBindings(), 5);
    if (verb !== 'patch' || type.plural !== kinds.app.plural) return;
    setTimeout(() => {
      const app = this.cluster.memory.peek(kinds.app, ns, name);
      const id = app?.metadata.annotations?.[annotations.deployId];
      const { id: before, phase, step, canceled } = app?.status?.deployment ?? {};
      const canary = app === undefined ? undefined : canaryOf(app);
      const isNews =
        id !== before || phase === 'Starting' || step !== canary?.step || (app !== undefined && isCanceled(app) && canceled !== true);
      if (app === undefined || id === undefined || !isNews) return;
      const told = { id, step: canary?.step ?? null, canceled: isCanceled(app) ? true : null };
      this.setStatus(kinds.app, name, {
        deployment: { ...told, ...(app.spec.desiredState === 'STARTED' ? this.#started(app) : { phase: 'Stopped' }) },
      });
    }, 5);
  }

  #started(app: CFApp): Omit<DeploymentStatus, 'id'> {
    if (isCanceled(app)) return { phase: 'Serving' };
    if (this.isStarting || this.startingApp === app.spec.displayName) return { phase: 'Starting' };
    if (this.failure !== undefined) return { phase: 'Failed', ...this.failure };
    return { phase: canaryOf(app) === undefined ? 'Serving' : 'Paused' };
  }

  #build(name: string): void {
    this.#waiting.set(name, this.droplet);
    const services = this.cluster.memory.all(kinds.serviceBinding).map(({ metadata }) => ({ kind: 'Secret', name: metadata.name ?? '' }));
    const spec = { buildRef: { name }, builderName: 'kf-builder', services };
    setTimeout(() => {
      const build = this.cluster.memory.peek(kinds.build, ns, name);
      // An image is not built.
      if (build === undefined || build.spec.lifecycle.type === 'docker') return;
      const ownerReferences = [ownerReference(kinds.build, build)];
      void this.cluster.add(kinds.buildWorkload, { metadata: { name, namespace: ns, ownerReferences }, spec });
    }, 2);
    setTimeout(() => this.#endWaiting(), 5);
  }

  /** Ends the builds that have the Secret with their variables. */
  #endWaiting(): void {
    for (const [name, outcome] of this.#waiting) {
      const build = this.cluster.memory.peek(kinds.build, ns, name);
      const secret = build?.metadata.annotations?.[annotations.envSecret];
      if (build === undefined || (secret !== undefined && this.cluster.memory.peek(secretType, ns, secret) === undefined)) continue;
      this.#waiting.delete(name);
      this.endBuild(name, outcome);
    }
  }

  async #makeReady(name: string): Promise<void> {
    const { memory } = this.cluster;
    const binding = memory.peek(kinds.serviceBinding, ns, name);
    const instance = memory.peek(kinds.serviceInstance, ns, binding?.spec.service.name ?? '');
    const version = memory.peek(secretType, ns, instance?.spec.secretName ?? '')?.metadata.resourceVersion ?? '';
    const app = memory.peek(kinds.app, ns, binding?.spec.appRef.name ?? '');
    const ownerReferences = app === undefined ? [] : [ownerReference(kinds.app, app, false)];
    const told = { metadata: { annotations: { [annotations.instanceVersion]: version }, ownerReferences } };
    await memory.mergePatch(kinds.serviceBinding, ns, name, told);
    this.setStatus(kinds.serviceBinding, name, { conditions: [condition('Ready', 'True')] });
    this.tellBindings();
  }

  #keepRoute(name: string): void {
    const route = this.cluster.memory.peek(kinds.route, ns, name);
    if (route === undefined || findCondition(route, 'Claimed')?.observedGeneration === route.metadata.generation) return;
    const conditions = ['Claimed', 'Programmed', 'Ready'].map((type) => ({
      ...condition(type, 'True'),
      observedGeneration: route.metadata.generation,
    }));
    this.setStatus(kinds.route, name, { conditions, uri: 'shop.apps.localhost' });
  }
}

// A MemoryCluster behind HTTP, so that kf can use it from a child process; tests read its memory and act as the controller.

import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { autoscalerType } from '../../src/lib/api/autoscaler.ts';
import { configMapType, eventType, leaseType, namespaceType, secretType, serviceType, statefulSetType } from '../../src/lib/api/core.ts';
import { podType } from '../../src/lib/api/pod-kind.ts';
import { httpRouteType } from '../../src/lib/api/gateway.ts';
import { kinds, places } from '../../src/lib/api/group.ts';
import type { KfInfo } from '../../src/lib/api/kf-info.ts';
import { resource, type KubeObject, type ResourceType } from '../../src/lib/api/object.ts';
import { KubeError } from '../../src/lib/kube/errors.ts';
import { ScriptedApiServer, type Call } from './apiserver.ts';
import { MemoryCluster, unscaled } from './memory-cluster.ts';

const roleBindings = resource('rbac.authorization.k8s.io', 'v1', 'RoleBinding', 'rolebindings');
const podMetrics = resource('metrics.k8s.io', 'v1beta1', 'PodMetrics', 'pods');
const quotas = resource('', 'v1', 'ResourceQuota', 'resourcequotas');
const builtIn: ResourceType[] = [
  secretType,
  configMapType,
  podType,
  statefulSetType,
  autoscalerType,
  roleBindings,
  podMetrics,
  quotas,
  leaseType,
  eventType,
  httpRouteType,
  namespaceType,
  serviceType,
];
const known: ResourceType[] = [...Object.values(kinds), ...builtIn];

interface Place {
  type: ResourceType;
  ns: string | undefined;
  name: string | undefined;
  subresource: string | undefined;
}

const pattern = /^\/(?:api\/v1|apis\/([^/]+)\/[^/]+)(?:\/namespaces\/([^/]+))?\/([^/]+)(?:\/([^/]+))?(?:\/(.+))?$/;

function placeOf(path: string): Place | undefined {
  const [, group = '', ns, plural, name, subresource] = pattern.exec(path) ?? [];
  const type = known.find((one) => one.group === group && one.plural === plural);
  return type === undefined ? undefined : { type, ns, name, subresource };
}

interface PrinterColumn {
  name: string;
  jsonPath: string;
}

/** The columns of a kind's CRD, after the name. */
function columnsOf(type: ResourceType): PrinterColumn[] {
  const file = new URL(`../../manifests/crds/${type.plural}.yaml`, import.meta.url);
  const crd = parse(readFileSync(file, 'utf8')) as { spec: { versions: { additionalPrinterColumns?: PrinterColumn[] }[] } };
  return [{ name: 'Name', jsonPath: '.metadata.name' }, ...(crd.spec.versions[0]?.additionalPrinterColumns ?? [])];
}

/** The value at a path of plain keys; a dot in a key is written `\\.`. */
function valueAt(object: unknown, jsonPath: string): unknown {
  const keys = jsonPath
    .slice(1)
    .split(/(?<!\\)\./)
    .map((key) => key.replaceAll('\\.', '.'));
  return keys.reduce<unknown>((value, key) => (value as Record<string, unknown> | undefined)?.[key], object);
}

/** metav1.Table, rows without objects. */
function tableOf(type: ResourceType, items: readonly KubeObject[]): object {
  const columns = columnsOf(type);
  const rows = items.map((item) => ({ cells: columns.map(({ jsonPath }) => valueAt(item, jsonPath) ?? null) }));
  return { kind: 'Table', columnDefinitions: columns.map(({ name }) => ({ name, type: 'string', priority: 0 })), rows };
}

export class ServedCluster {
  readonly memory = new MemoryCluster();
  readonly server: ScriptedApiServer;
  /** The API server's name of the caller. */
  user = 'alice';
  /** Kinds without a CRD. */
  readonly missing = new Set<string>();

  private constructor(server: ScriptedApiServer) {
    this.server = server;
    server.on('.*', (call) => this.#answer(call));
    server.on('GET /version', (call) => call.json({ major: '1', minor: '36', gitVersion: 'v1.36.0' }));
    server.on('POST .*/selfsubjectaccessreviews', (call) => call.json({ status: { allowed: true } }, 201));
    server.on('POST .*/selfsubjectreviews', (call) => call.json({ status: { userInfo: { username: this.user } } }, 201));
  }

  static async start(): Promise<ServedCluster> {
    return new ServedCluster(await ScriptedApiServer.start());
  }

  stop(): Promise<void> {
    this.memory.close();
    return this.server.stop();
  }

  /** The objects after a setup: kf-info, an org with a space, a domain. */
  async installed(): Promise<this> {
    const info: Partial<KfInfo> = {
      format: 1,
      oldestCli: '0.1.0',
      root: 'cf',
      controller: { version: '0.1.0', namespace: 'kf-system' },
      registry: {
        namespace: 'kf-system',
        service: 'kf-registry',
        port: 5000,
        pushHost: 'kf-registry.kf-system.svc:5000',
        pullPrefix: 'localhost:32500/',
      },
      builder: { name: 'kf-builder', image: 'builder' },
      defaultDomain: 'apps.localhost',
      gateway: { namespace: 'kf-node', name: 'kf', features: [] },
      drainSeconds: 4,
      processDefaults: { memoryMB: 256, diskQuotaMB: 1024 },
      staging: { memoryMB: 1024, diskMB: 4096 },
    };
    await this.add(configMapType, { metadata: { name: places.info, namespace: 'cf' }, data: { [places.infoKey]: JSON.stringify(info) } });
    await this.add(kinds.org, { metadata: { name: 'org-guid', namespace: 'cf' }, spec: { displayName: 'example-org' } });
    await this.add(kinds.space, { metadata: { name: 'space-guid', namespace: 'org-guid' }, spec: { displayName: 'example-space' } });
    await this.add(kinds.domain, { metadata: { name: 'default-domain', namespace: 'cf' }, spec: { name: 'apps.localhost' } });
    return this;
  }

  /** Creates an object as kubectl would: without index labels. */
  async add<T extends KubeObject>(type: ResourceType<T>, object: T): Promise<T> {
    return this.memory.create(type, { apiVersion: `${type.group}/${type.version}`, kind: type.kind, ...object });
  }

  async #answer(call: Call): Promise<void> {
    const place = placeOf(call.path);
    if (place === undefined || this.missing.has(place.type.plural)) {
      call.text('404 page not found\n', 404);
      return;
    }
    try {
      await this.#serve(call, place);
    } catch (error) {
      if (!(error instanceof KubeError)) throw error;
      call.json(
        error.body ?? { kind: 'Status', status: 'Failure', code: error.status, reason: error.reason, message: error.message },
        error.status,
      );
    }
  }

  async #serve(call: Call, place: Place): Promise<void> {
    const { type, ns, name } = place;
    const body = call.body === '' ? {} : (JSON.parse(call.body) as Record<string, unknown>);
    if (call.method === 'GET' && name === undefined) return call.query.has('watch') ? this.#watch(call, place) : this.#list(call, place);
    if (call.method === 'POST') return call.json(await this.memory.create(type, body as unknown as KubeObject), 201);
    if (name === undefined) return call.fail(405, 'MethodNotAllowed', 'not here');
    if (place.subresource === 'log') return call.text(this.memory.logTexts.get(`${ns ?? ''}/${name}`) ?? '');
    if (call.method === 'PATCH') return call.json(await this.#patch(place, body));
    if (call.method === 'DELETE') {
      const deleted = await this.memory.delete(type, ns, name, body['preconditions'] ?? {});
      return deleted ? call.json({ kind: 'Status', status: 'Success' }) : this.#notFound(call, place);
    }
    const found = await this.memory.get(type, ns, name);
    return found === undefined ? this.#notFound(call, place) : call.json(found);
  }

  #notFound(call: Call, { type, name }: Place): void {
    call.fail(404, 'NotFound', `${type.plural}.${type.group} "${name ?? ''}" not found`, { name, group: type.group, kind: type.plural });
  }

  #patch({ type, ns, name = '', subresource }: Place, body: Record<string, unknown>): Promise<KubeObject> {
    if (subresource !== 'scale') return this.memory.mergePatch(type, ns, name, body, subresource === undefined ? {} : { subresource });
    return this.memory.mergePatch(type, ns, name, unscaled(type, body));
  }

  #scope(call: Call, ns: string | undefined): { ns?: string; labelSelector?: string; fieldSelector?: string } {
    const [labelSelector, fieldSelector] = [call.query.get('labelSelector'), call.query.get('fieldSelector')];
    return {
      ...(ns === undefined ? {} : { ns }),
      ...(labelSelector === null ? {} : { labelSelector }),
      ...(fieldSelector === null ? {} : { fieldSelector }),
    };
  }

  async #list(call: Call, { type, ns }: Place): Promise<void> {
    const { items, resourceVersion } = await this.memory.list(type, this.#scope(call, ns));
    if (call.headers.accept?.includes('as=Table') === true) return call.json({ metadata: { resourceVersion }, ...tableOf(type, items) });
    call.json({ kind: `${type.kind}List`, metadata: { resourceVersion }, items });
  }

  async #watch(call: Call, { type, ns }: Place): Promise<void> {
    const stop = new AbortController();
    void call.closed.then(() => stop.abort());
    const resourceVersion = call.query.get('resourceVersion');
    const options = { ...this.#scope(call, ns), signal: stop.signal, ...(resourceVersion === null ? {} : { resourceVersion }) };
    try {
      for await (const event of this.memory.watch(type, options)) await call.events(event);
      call.end();
    } catch (error) {
      if (!stop.signal.aborted) throw error;
    }
  }
}

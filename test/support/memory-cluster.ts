// A Cluster without a server. Versions, preconditions, status subresource, selectors, owner references and watches work as in the API server.

import { EventEmitter, on } from 'node:events';
import { Readable } from 'node:stream';
import { randomUUID } from 'node:crypto';
import { stored } from '../../src/lib/api/object.ts';
import type { KubeObject, ObjectMeta, ResourceType, Stored } from '../../src/lib/api/object.ts';
import type {
  Cluster,
  DeleteOptions,
  KeepOptions,
  ListOptions,
  ListResult,
  PatchOptions,
  WatchEvent,
  WatchOptions,
} from '../../src/lib/kube/cluster.ts';
import { errorFromAnswer, type KubeError } from '../../src/lib/kube/errors.ts';

export interface RecordedWrite {
  verb: 'create' | 'patch' | 'replace' | 'apply' | 'delete';
  kind: string;
  name: string;
  subresource: string | undefined;
  body: unknown;
}

interface Change {
  type: ResourceType;
  event: WatchEvent<KubeObject>;
  version: number;
}

type Json = Record<string, unknown>;
const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value);

function merge(target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch;
  const result: Json = isObject(target) ? { ...target } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else result[key] = merge(result[key], value);
  }
  return result;
}

export function apiError(status: number, reason: string, message: string, name = 'x'): KubeError {
  return errorFromAnswer(status, JSON.stringify({ kind: 'Status', status: 'Failure', reason, message, code: status, details: { name } }));
}

/** One requirement of a label selector: `key=value`, `key` or `!key`. */
function hasLabel({ metadata: { labels } }: KubeObject, term: string): boolean {
  if (term.startsWith('!')) return labels?.[term.slice(1)] === undefined;
  const [key = '', value] = term.split('=');
  const found = labels?.[key];
  return value === undefined ? found !== undefined : found === value;
}

function matches(object: KubeObject, options: ListOptions): boolean {
  if (options.ns !== undefined && object.metadata.namespace !== options.ns) return false;
  const fields: Record<string, string | undefined> = {
    'metadata.name': object.metadata.name,
    'involvedObject.uid': (object as { involvedObject?: { uid?: string } }).involvedObject?.uid,
    type: (object as { type?: string }).type,
  };
  const terms = (selector: string | undefined): string[] => (selector === undefined || selector === '' ? [] : selector.split(','));
  const fieldsMatch = terms(options.fieldSelector).every((term) => fields[term.split('=')[0] ?? ''] === term.split('=')[1]);
  return fieldsMatch && terms(options.labelSelector).every((term) => hasLabel(object, term));
}

const isRelevant =
  (type: ResourceType, options: WatchOptions, from: number) =>
  (change: Change): boolean =>
    change.type.plural === type.plural && change.version > from && 'object' in change.event && matches(change.event.object, options);

/** The API server keeps no empty labels, annotations, finalizers and owners. */
function withoutEmpty(metadata: ObjectMeta): ObjectMeta {
  const isEmpty = (value: unknown): boolean => typeof value === 'object' && value !== null && Object.keys(value).length === 0;
  return Object.fromEntries(Object.entries(metadata).filter(([, value]) => !isEmpty(value)));
}

/** A patch of the subresource `scale` as one of the object itself. */
export function unscaled(type: ResourceType, patch: Record<string, unknown>): Record<string, unknown> {
  const { replicas } = patch['spec'] as { replicas: number };
  return { spec: type.kind === 'CFProcess' ? { desiredInstances: replicas } : { replicas } };
}

/** All views of one instance share its state; `writes` records the writes. */
export class MemoryCluster implements Cluster {
  readonly identity = { context: 'memory', server: 'memory', user: 'controller' };
  awayAt = -Infinity;
  readonly writes: RecordedWrite[] = [];
  /** Container logs by `<namespace>/<pod>`. */
  readonly logTexts = new Map<string, string>();
  /** Called before each request; throw to make it fail. */
  intercept: (verb: string, type: ResourceType, name: string) => void | Promise<void> = () => undefined;
  readonly #objects = new Map<string, { type: ResourceType; object: Stored }>();
  readonly #bus = new EventEmitter().setMaxListeners(0);
  /** Uids of deleted objects. */
  readonly #gone = new Set<string>();
  #history: Change[] = [];
  #version = 100;
  #watches = new Set<AbortController>();

  /** Ends every watch connection, as a restart of the API server does. */
  cutWatches(): void {
    for (const controller of this.#watches) controller.abort();
  }

  /** Drops old changes: an earlier watch gets 410. */
  compact(): void {
    this.#history = [];
  }

  /** The stored object, for assertions and for acting as another controller. */
  peek<T extends KubeObject>(type: ResourceType<T>, ns: string | undefined, name: string): Stored<T> | undefined {
    return this.#objects.get(this.#id(type, ns, name))?.object as Stored<T> | undefined;
  }

  /** Every object of every kind. */
  everything(): { type: ResourceType; object: Stored }[] {
    return [...this.#objects.values()];
  }

  /** Has the objects of another one from now on, and no others; nobody watches yet. */
  becomes(other: MemoryCluster): void {
    this.#objects.clear();
    for (const [id, { type, object }] of other.#objects) this.#objects.set(id, { type, object: structuredClone(object) });
    this.#version = other.#version;
    this.#history = [];
  }

  all<T extends KubeObject>(type: ResourceType<T>): Stored<T>[] {
    return [...this.#objects.values()].filter((entry) => entry.type.plural === type.plural).map((entry) => entry.object as Stored<T>);
  }

  async get<T extends KubeObject>(type: ResourceType<T>, ns: string | undefined, name: string): Promise<Stored<T> | undefined> {
    await this.intercept('get', type, name);
    return structuredClone(this.peek(type, ns, name));
  }

  async list<T extends KubeObject>(type: ResourceType<T>, options: KeepOptions<T> = {}): Promise<ListResult<T>> {
    await this.intercept('list', type, '');
    const items = this.all(type).filter((object) => matches(object, options));
    return { items: structuredClone(items).map(options.keep ?? ((item) => item)), resourceVersion: String(this.#version) };
  }

  async *watch<T extends KubeObject>(type: ResourceType<T>, options: WatchOptions = {}): AsyncIterable<WatchEvent<T>> {
    await this.intercept('watch', type, '');
    const from = this.#watchStart(options);
    const cut = new AbortController();
    this.#watches.add(cut);
    const signal = AbortSignal.any([cut.signal, ...(options.signal === undefined ? [] : [options.signal])]);
    const live = on(this.#bus, 'change', { signal });
    const relevant = isRelevant(type, options, from);
    try {
      const seen = [...this.#history];
      for (const change of seen) if (relevant(change)) yield structuredClone(change.event) as WatchEvent<T>;
      for await (const [change] of live as AsyncIterable<[Change]>) {
        if (!seen.includes(change) && relevant(change)) yield structuredClone(change.event) as WatchEvent<T>;
      }
    } catch (error) {
      if (!signal.aborted || options.signal?.aborted === true) throw error;
    } finally {
      this.#watches.delete(cut);
    }
  }

  async create<T extends KubeObject>(type: ResourceType<T>, object: T): Promise<Stored<T>> {
    const name = object.metadata.name ?? '';
    await this.intercept('create', type, name);
    const id = this.#id(type, object.metadata.namespace, name);
    if (this.#objects.has(id)) throw apiError(409, 'AlreadyExists', `${type.plural} "${name}" already exists`, name);
    this.#record('create', type, name, undefined, object);
    const { status: _status, ...rest } = structuredClone(object) as T & { status?: unknown };
    const complete = {
      ...(type.group === 'korifi.cloudfoundry.org' ? rest : structuredClone(object)),
      metadata: { ...object.metadata, uid: randomUUID(), generation: 1, creationTimestamp: new Date().toISOString() },
    } as T;
    const created = this.#store(type, complete, 'ADDED');
    const { ownerReferences: owners = [] } = created.metadata;
    if (owners.length > 0 && owners.every(({ uid }) => this.#gone.has(uid))) this.#remove(type, created);
    return created;
  }

  async mergePatch<T extends KubeObject>(
    type: ResourceType<T>,
    ns: string | undefined,
    name: string,
    patch: Record<string, unknown>,
    options: PatchOptions = {},
  ): Promise<Stored<T>> {
    await this.intercept('patch', type, name);
    const live = this.#need(type, ns, name);
    const { uid, resourceVersion } = (patch['metadata'] ?? {}) as { uid?: string; resourceVersion?: string };
    this.#check(type, live, uid, resourceVersion);
    this.#record('patch', type, name, options.subresource, patch);
    const merged = merge(live, options.subresource === 'scale' ? unscaled(type, patch) : patch) as T & { spec?: unknown; status?: unknown };
    const before = live as T & { spec?: unknown; status?: unknown };
    const isStatus = options.subresource === 'status';
    const next = isStatus ? { ...before, status: merged.status } : { ...merged, status: before.status };
    const generation = (live.metadata.generation ?? 1) + (JSON.stringify(next.spec) === JSON.stringify(before.spec) ? 0 : 1);
    const changed = this.#store(type, { ...next, metadata: { ...(isStatus ? live : next).metadata, generation } }, 'MODIFIED');
    const { finalizers = [], deletionTimestamp } = changed.metadata;
    if (deletionTimestamp !== undefined && finalizers.length === 0) this.#remove(type, changed);
    return changed;
  }

  async apply<T extends KubeObject>(type: ResourceType<T>, object: T): Promise<Stored<T>> {
    const { name = '', namespace } = object.metadata;
    await this.intercept('apply', type, name);
    if (this.peek(type, namespace, name) === undefined) return this.create(type, object);
    return this.mergePatch(type, namespace, name, Object.fromEntries(Object.entries(object)));
  }

  async replace<T extends KubeObject>(type: ResourceType<T>, object: T): Promise<Stored<T>> {
    const { name = '', namespace, uid, resourceVersion } = object.metadata;
    await this.intercept('replace', type, name);
    this.#check(type, this.#need(type, namespace, name), uid, resourceVersion);
    this.#record('replace', type, name, undefined, object);
    return this.#store(type, structuredClone(object), 'MODIFIED');
  }

  async delete(type: ResourceType, ns: string | undefined, name: string, options: DeleteOptions = {}): Promise<boolean> {
    await this.intercept('delete', type, name);
    const live = this.peek(type, ns, name);
    if (live === undefined) return false;
    this.#check(type, live, options.uid, options.resourceVersion);
    this.#record('delete', type, name, undefined, options);
    const { finalizers = [], deletionTimestamp } = live.metadata;
    if (finalizers.length === 0) this.#remove(type, live);
    else if (deletionTimestamp === undefined)
      this.#store(type, { ...live, metadata: { ...live.metadata, deletionTimestamp: new Date().toISOString() } }, 'MODIFIED');
    return true;
  }

  async logs(ns: string, pod: string): Promise<Readable> {
    return Promise.resolve(Readable.from([this.logTexts.get(`${ns}/${pod}`) ?? '']));
  }

  table(): never {
    throw new Error('Tables are not kept in memory.');
  }

  raw(): never {
    throw new Error('Raw requests are not answered from memory.');
  }

  openChannels(): never {
    throw new Error('There are no connections in memory.');
  }

  async canI(): Promise<{ allowed: boolean; reason: string }> {
    return Promise.resolve({ allowed: true, reason: '' });
  }

  async whoAmI(): Promise<string> {
    return Promise.resolve('controller');
  }

  close(): void {
    this.cutWatches();
  }

  #watchStart(options: WatchOptions): number {
    const from = Number(options.resourceVersion ?? this.#version);
    const oldest = this.#history[0]?.version ?? this.#version + 1;
    if (from < this.#version && from + 1 < oldest) throw apiError(410, 'Expired', 'too old resource version');
    return from;
  }

  #id(type: ResourceType, ns: string | undefined, name: string): string {
    return `${type.group}/${type.plural}/${ns ?? ''}/${name}`;
  }

  #need<T extends KubeObject>(type: ResourceType<T>, ns: string | undefined, name: string): Stored<T> {
    const live = this.peek(type, ns, name);
    if (live === undefined) throw apiError(404, 'NotFound', `${type.plural} "${name}" not found`, name);
    return live;
  }

  #check(type: ResourceType, live: Stored, uid: string | undefined, version: string | undefined): void {
    const isOther =
      (uid !== undefined && uid !== live.metadata.uid) || (version !== undefined && version !== live.metadata.resourceVersion);
    if (isOther) throw apiError(409, 'Conflict', `${type.plural} "${live.metadata.name}" was changed`, live.metadata.name);
  }

  #record(verb: RecordedWrite['verb'], type: ResourceType, name: string, subresource: string | undefined, body: unknown): void {
    this.writes.push({ verb, kind: type.kind, name, subresource, body: structuredClone(body) });
  }

  #store<T extends KubeObject>(type: ResourceType<T>, object: T, event: 'ADDED' | 'MODIFIED'): Stored<T> {
    this.#version += 1;
    const kept = stored(type, { ...object, metadata: withoutEmpty({ ...object.metadata, resourceVersion: String(this.#version) }) });
    this.#objects.set(this.#id(type, kept.metadata.namespace, kept.metadata.name), { type, object: kept });
    this.#announce({ type, event: { type: event, object: kept }, version: this.#version });
    return structuredClone(kept);
  }

  #remove(type: ResourceType, object: Stored): void {
    this.#version += 1;
    this.#objects.delete(this.#id(type, object.metadata.namespace, object.metadata.name));
    this.#gone.add(object.metadata.uid);
    const gone = { ...object, metadata: { ...object.metadata, resourceVersion: String(this.#version) } };
    this.#announce({ type, event: { type: 'DELETED', object: gone }, version: this.#version });
    for (const entry of [...this.#objects.values()]) {
      const isOwned = entry.object.metadata.ownerReferences?.some((owner) => owner.uid === object.metadata.uid);
      if (isOwned === true) this.#remove(entry.type, entry.object);
    }
  }

  #announce(change: Change): void {
    this.#history.push(change);
    this.#bus.emit('change', change);
  }
}

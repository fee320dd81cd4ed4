// `Cluster` over one transport: typed REST calls on the Kubernetes API.
// Source: https://kubernetes.io/docs/reference/using-api/api-concepts/

import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { apiVersionOf, stored } from '../api/object.ts';
import type { KubeObject, ResourceType, Stored } from '../api/object.ts';
import { BugError } from '../errors.ts';
import type {
  AccessQuestion,
  ApplyOptions,
  ChannelRequest,
  Cluster,
  DeleteOptions,
  KeepOptions,
  ListResult,
  LogOptions,
  PatchOptions,
  RawRequest,
  RawResponse,
  Table,
  TableOptions,
  WatchEvent,
  WatchOptions,
  WriteOptions,
} from './cluster.ts';
import { errorText, PageTooLargeError, wholeBody } from './body.ts';
import { writtenOnce } from './cut-writes.ts';
import { resolveEndpoint } from './endpoint.ts';
import type { ConnectOptions, Endpoint } from './endpoint.ts';
import type { Channels } from './channels.ts';
import { errorFromAnswer, isMissingKind, isNotFound, notUpgraded, unreachableError } from './errors.ts';
import { queryString, resourcePath } from './paths.ts';
import { Transport } from './transport.ts';
import type { TransportRequest, TransportTuning } from './transport.ts';
import { mostPageBytes, readPages, type ListPage, type TablePage } from './pages.ts';
import { onceLoaded } from './starting.ts';
import { onceQuotaCounts } from './quota.ts';
import { watchEvents } from './watch.ts';
import { throwIfAborted } from '../wait.ts';
import { defined } from '../defined.ts';

/** Answers that break off half-way are requested again. */
const maxBodyTries = 2;
/** A bookmark comes about once a minute; a watch that is silent for more than two minutes has lost its connection. */
const watchIdleMs = 150_000;
/** The server ends a watch after this time; a random part prevents that many watches return at once. */
const watchSeconds = 290;

interface Call extends Omit<TransportRequest, 'repeat' | 'waitWhenBusy' | 'body'> {
  repeat?: TransportRequest['repeat'];
  json?: unknown;
  /** Limit of the decompressed answer; no limit by default. */
  mostBytes?: number;
}

interface WireReview {
  status?: { allowed?: boolean; denied?: boolean; reason?: string; evaluationError?: string; userInfo?: { username?: string } };
}

function nameOf(object: KubeObject): string {
  const { name } = object.metadata;
  if (name === undefined) throw new BugError(`An object of kind ${String(object.kind)} without a name was to be written.`);
  return name;
}

class Client implements Cluster {
  readonly identity: Cluster['identity'];
  readonly #transport: Transport;
  readonly #userAgent: string;
  readonly #isLocal: boolean;

  constructor(endpoint: Endpoint, userAgent: string, tuning: TransportTuning) {
    this.identity = endpoint.identity;
    this.#transport = new Transport(endpoint, tuning);
    this.#userAgent = userAgent;
    this.#isLocal = ['127.0.0.1', '[::1]', 'localhost'].includes(endpoint.url.hostname);
  }

  get awayAt(): number {
    return this.#transport.awayAt;
  }

  async get<T extends KubeObject>(
    type: ResourceType<T>,
    ns: string | undefined,
    name: string,
    signal?: AbortSignal,
  ): Promise<Stored<T> | undefined> {
    try {
      return await this.#object(type, { method: 'GET', path: resourcePath(type, { ns, name }), signal });
    } catch (error) {
      if (isNotFound(error) && !isMissingKind(error)) return undefined;
      throw error;
    }
  }

  async list<T extends KubeObject>(type: ResourceType<T>, options: KeepOptions<T> = {}): Promise<ListResult<T>> {
    const items: Stored<T>[] = [];
    const { keep = (item: Stored<T>) => item } = options;
    const read = (path: string): Promise<ListPage<T>> =>
      this.#call({ method: 'GET', path, signal: options.signal, mostBytes: mostPageBytes });
    const take = (list: ListPage<T>, first: boolean): void => {
      if (first) items.length = 0;
      // In lists of built-in kinds the objects have no apiVersion and kind.
      for (const item of list.items ?? []) items.push(keep(stored(type, { ...item, apiVersion: apiVersionOf(type), kind: type.kind })));
    };
    const page = await readPages({ type, options, read, take });
    return { items, resourceVersion: page.metadata.resourceVersion ?? '' };
  }

  async table(type: ResourceType, options: TableOptions = {}): Promise<Table> {
    const rows: Table['rows'] = [];
    let columns: Table['columns'] = [];
    const headers = { Accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' };
    const read = (path: string): Promise<TablePage> =>
      this.#call({ method: 'GET', path, headers, signal: options.signal, mostBytes: mostPageBytes });
    const take = (table: TablePage, first: boolean): void => {
      if (first) {
        rows.length = 0;
        columns = table.columnDefinitions;
      }
      for (const row of table.rows ?? []) rows.push(row);
    };
    const page = await readPages({ type, options, read, take });
    return { columns, rows, resourceVersion: page.metadata.resourceVersion ?? '' };
  }

  create<T extends KubeObject>(type: ResourceType<T>, object: T, options: WriteOptions = {}): Promise<Stored<T>> {
    const path = resourcePath(type, { ns: object.metadata.namespace, query: writeQuery(options) });
    const { signal } = options;
    const call = { method: 'POST', path, json: this.#typed(type, object), signal };
    const { namespace: ns, name } = object.metadata;
    return onceQuotaCounts(() => this.#write(type, call, { ns, name, ...options }), signal);
  }

  apply<T extends KubeObject>(type: ResourceType<T>, object: T, options: ApplyOptions & { fieldManager: string }): Promise<Stored<T>> {
    const query = { ...writeQuery(options), ...(options.force === true ? { force: true } : {}) };
    const path = resourcePath(type, { ns: object.metadata.namespace, name: nameOf(object), subresource: options.subresource, query });
    const headers = { 'Content-Type': 'application/apply-patch+yaml' };
    return this.#object(type, { method: 'PATCH', path, headers, json: this.#typed(type, object), signal: options.signal }, options);
  }

  mergePatch<T extends KubeObject>(
    type: ResourceType<T>,
    ns: string | undefined,
    name: string,
    patch: Record<string, unknown>,
    options: PatchOptions = {},
  ): Promise<Stored<T>> {
    const path = resourcePath(type, { ns, name, subresource: options.subresource, query: writeQuery(options) });
    const headers = { 'Content-Type': 'application/merge-patch+json' };
    const call = { method: 'PATCH', path, headers, json: patch, signal: options.signal };
    // With a resourceVersion, a repeated patch that had arrived looks like another writer's change.
    const version = (patch['metadata'] as { resourceVersion?: unknown } | undefined)?.resourceVersion;
    return version === undefined ? this.#object(type, call, options) : this.#write(type, call, { ns, name, ...options });
  }

  replace<T extends KubeObject>(type: ResourceType<T>, object: T, options: PatchOptions = {}): Promise<Stored<T>> {
    const { namespace: ns } = object.metadata;
    const path = resourcePath(type, { ns, name: nameOf(object), subresource: options.subresource, query: writeQuery(options) });
    const json = this.#typed(type, object);
    return this.#object(type, { method: 'PUT', path, json, signal: options.signal, repeat: 'unprocessed' }, options);
  }

  async delete(type: ResourceType, ns: string | undefined, name: string, options: DeleteOptions = {}): Promise<boolean> {
    const { uid, resourceVersion } = options;
    const preconditions = { ...defined({ uid, resourceVersion }) };
    const json = {
      kind: 'DeleteOptions',
      apiVersion: 'v1',
      ...defined({ propagationPolicy: options.propagation, gracePeriodSeconds: options.gracePeriodSeconds }),
      ...(Object.keys(preconditions).length === 0 ? {} : { preconditions }),
    };
    try {
      await this.#call({ method: 'DELETE', path: resourcePath(type, { ns, name }), json, signal: options.signal });
      return true;
    } catch (error) {
      if (isNotFound(error)) return false;
      throw error;
    }
  }

  watch<T extends KubeObject>(type: ResourceType<T>, options: WatchOptions = {}): AsyncIterable<WatchEvent<T>> {
    const query = {
      watch: 1,
      allowWatchBookmarks: true,
      timeoutSeconds: watchSeconds + Math.floor(Math.random() * 120),
      resourceVersion: options.resourceVersion,
      labelSelector: options.labelSelector,
      fieldSelector: options.fieldSelector,
    };
    const path = resourcePath(type, { ns: options.ns, query });
    const open = (): Promise<IncomingMessage> => this.#answer({ method: 'GET', path, signal: options.signal, idleTimeoutMs: watchIdleMs });
    return watchEvents(type, open, this.identity, options.signal);
  }

  async logs(ns: string, pod: string, options: LogOptions = {}): Promise<Readable> {
    const query = {
      container: options.container,
      follow: options.follow,
      previous: options.previous,
      timestamps: options.timestamps,
      sinceTime: options.sinceTime,
      tailLines: options.tailLines,
      limitBytes: options.limitBytes,
    };
    const path = `/api/v1/namespaces/${encodeURIComponent(ns)}/pods/${encodeURIComponent(pod)}/log${queryString(query)}`;
    // An app may be silent for hours; TCP keep-alive finds a dead connection.
    const idleTimeoutMs = options.follow === true ? 0 : 70_000;
    return this.#answer({ method: 'GET', path, headers: { Accept: '*/*' }, signal: options.signal, idleTimeoutMs });
  }

  async canI(question: AccessQuestion, signal?: AbortSignal): Promise<{ allowed: boolean; reason: string }> {
    const { ns, group = '', ...rest } = question;
    const json = {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectAccessReview',
      spec: { resourceAttributes: { ...rest, group, ...defined({ namespace: ns }) } },
    };
    const review = await this.#call<WireReview>({
      method: 'POST',
      path: '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
      json,
      signal,
    });
    return { allowed: review.status?.allowed === true, reason: review.status?.reason ?? review.status?.evaluationError ?? '' };
  }

  async whoAmI(signal?: AbortSignal): Promise<string> {
    const json = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' };
    const review = await this.#call<WireReview>({
      method: 'POST',
      path: '/apis/authentication.k8s.io/v1/selfsubjectreviews',
      json,
      signal,
    });
    return review.status?.userInfo?.username ?? '';
  }

  async raw(request: RawRequest): Promise<RawResponse> {
    const { method, path, headers, body, signal, idleTimeoutMs } = request;
    const response = await this.#transport.send({
      method,
      path,
      headers: { 'User-Agent': this.#userAgent, ...headers },
      ...defined({ body }),
      signal,
      ...defined({ idleTimeoutMs }),
      repeat: method === 'GET' || method === 'HEAD' ? 'any' : 'unprocessed',
      waitWhenBusy: false,
    });
    const flat = Object.entries(response.headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(', ') : (value ?? '')]);
    return { status: response.statusCode ?? 0, headers: Object.fromEntries(flat) as Record<string, string>, body: response };
  }

  async openChannels({ path, protocols, signal, pingMs }: ChannelRequest): Promise<Channels> {
    const { Channels } = await import('./channels.ts');
    const headers = { 'User-Agent': this.#userAgent };
    const { socket, response } = await this.#transport.upgrade({ path, headers, protocols, signal });
    if (socket !== undefined) return new Channels(socket, { identity: this.identity, signal, ...defined({ pingMs }) });
    const status = response.statusCode ?? 0;
    const text = await errorText(response);
    if (status >= 400) throw errorFromAnswer(status, text, this.identity, path);
    throw notUpgraded(status, this.identity);
  }

  close(): void {
    this.#transport.close();
  }

  #typed<T extends KubeObject>(type: ResourceType<T>, object: T): T {
    return { ...object, apiVersion: object.apiVersion ?? apiVersionOf(type), kind: object.kind ?? type.kind };
  }

  /** A response with a status below 400. */
  async #answer(call: Call): Promise<IncomingMessage> {
    const { json, headers, repeat = 'any', ...rest } = call;
    const response = await this.#transport.send({
      ...rest,
      headers: {
        'User-Agent': this.#userAgent,
        Accept: 'application/json',
        ...(json === undefined ? {} : { 'Content-Type': 'application/json' }),
        ...headers,
      },
      ...(json === undefined ? {} : { body: JSON.stringify(json) }),
      repeat,
      waitWhenBusy: true,
    });
    const status = response.statusCode ?? 0;
    if (status < 400) return response;
    throw errorFromAnswer(status, await errorText(response), this.identity, call.path);
  }

  /** An answer that is an object of the kind. */
  async #object<T extends KubeObject>(type: ResourceType<T>, call: Call, { dryRun = false }: WriteOptions = {}): Promise<Stored<T>> {
    const object = await this.#call<T>(call);
    return dryRun ? (object as Stored<T>) : stored(type, object);
  }

  /** A create or a versioned patch, which is sent again when the connection was cut. An object without a name could not be found again. */
  #write<T extends KubeObject>(
    type: ResourceType<T>,
    call: Call & { json: object },
    { ns, name, ...options }: WriteOptions & { ns: string | undefined; name: string | undefined },
  ): Promise<Stored<T>> {
    if (name === undefined) return this.#object(type, { ...call, repeat: 'unprocessed' }, options);
    const send = (onRepeat: () => void): Promise<Stored<T>> => this.#object(type, { ...call, repeat: 'cut', onRepeat }, options);
    return writtenOnce(send, call.json, () => this.get(type, ns, name, call.signal));
  }

  async #call<R>(call: Call): Promise<R> {
    // On loopback, compression costs more than it saves.
    const packed = this.#isLocal ? call : { ...call, headers: { 'Accept-Encoding': 'gzip', ...call.headers } };
    for (let tries = 0; ; tries++) {
      const response = await onceLoaded(() => this.#answer(packed), call.signal);
      try {
        return JSON.parse((await wholeBody(response, call.mostBytes)).toString('utf8')) as R;
      } catch (error) {
        throwIfAborted(call.signal);
        if (error instanceof PageTooLargeError) throw error;
        if (call.repeat === 'unprocessed' || tries >= maxBodyTries) throw unreachableError(error, this.identity);
        call.onRepeat?.();
      }
    }
  }
}

function writeQuery({ fieldManager, dryRun }: WriteOptions): { fieldManager: string | undefined; dryRun: string | undefined } {
  return { fieldManager, dryRun: dryRun === true ? 'All' : undefined };
}

/** A cluster for an endpoint that is already known; `tuning` is for tests. */
export function clusterAt(endpoint: Endpoint, { userAgent = 'kf', ...tuning }: TransportTuning & { userAgent?: string } = {}): Cluster {
  return new Client(endpoint, userAgent, tuning);
}

/** Finds the API server and the user as kubectl does (kubeconfig, otherwise the pod's service account). Sends no request yet. */
export async function connect(options: ConnectOptions & Pick<TransportTuning, 'onDate' | 'connectTimeoutMs'>): Promise<Cluster> {
  const { userAgent = 'kf', onDate = () => undefined, connectTimeoutMs } = options;
  return clusterAt(await resolveEndpoint(options), { userAgent, onDate, ...defined({ connectTimeoutMs }) });
}

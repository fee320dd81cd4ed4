// The interface to a Kubernetes API server for the rest of kf. `client.ts` implements it over one transport; tests may implement it in memory.

import type { Readable } from 'node:stream';
import type { KubeObject, ResourceType, Stored } from '../api/object.ts';
import type { Channels } from './channels.ts';

export interface ListOptions {
  /** Left out: all namespaces (or a cluster-scoped kind). */
  ns?: string;
  labelSelector?: string;
  fieldSelector?: string;
  signal?: AbortSignal;
}

export interface KeepOptions<T extends KubeObject = KubeObject> extends ListOptions {
  /** Trims each object as soon as its page was read, so that a whole list is never held in full. */
  keep?: (object: Stored<T>) => Stored<T>;
}

export interface TableOptions extends ListOptions {
  /** Content of a row's `object`: its metadata, or nothing, which makes the answer a tenth of its size. Default: its metadata. */
  rowObjects?: 'None' | 'Metadata';
}

export interface ListResult<T extends KubeObject> {
  items: Stored<T>[];
  /** The version at which a watch continues. */
  resourceVersion: string;
}

export interface WriteOptions {
  /** Default: the program's name, which the API server takes from the User-Agent (`kf`, `kf-controller`). */
  fieldManager?: string;
  /** Nothing is stored, so a returned new object has no resourceVersion, although its type says so. */
  dryRun?: boolean;
  signal?: AbortSignal;
}

export interface PatchOptions extends WriteOptions {
  /** `status`, `scale` … */
  subresource?: string;
}

export interface ApplyOptions extends PatchOptions {
  /** Take over fields of other managers; default false: a conflict is an error. */
  force?: boolean;
}

export interface DeleteOptions {
  propagation?: 'Background' | 'Foreground' | 'Orphan';
  uid?: string;
  resourceVersion?: string;
  gracePeriodSeconds?: number;
  signal?: AbortSignal;
}

export interface WatchOptions extends ListOptions {
  /** From a list; default: the server's "get state and start at most recent". */
  resourceVersion?: string;
}

export type WatchEvent<T extends KubeObject> =
  { type: 'ADDED' | 'MODIFIED' | 'DELETED'; object: Stored<T> } | { type: 'BOOKMARK'; resourceVersion: string };

/** metav1.Table as the server prints it; `object` holds the row's metadata (PartialObjectMetadata). */
export interface Table {
  columns: { name: string; type: string; priority: number }[];
  rows: { cells: unknown[]; object: KubeObject }[];
  resourceVersion: string;
}

export interface LogOptions {
  container?: string;
  follow?: boolean;
  previous?: boolean;
  timestamps?: boolean;
  /** RFC 3339 with whole seconds (the kubelet drops the rest). */
  sinceTime?: string;
  tailLines?: number;
  limitBytes?: number;
  signal?: AbortSignal;
}

export interface AccessQuestion {
  verb: string;
  group?: string;
  resource: string;
  subresource?: string;
  ns?: string;
  name?: string;
}

export interface RawRequest {
  method: string;
  /** Path and query below the API server's URL, e.g. `/api/v1/namespaces/x/services/http:y:5000/proxy/v2/`. */
  path: string;
  headers?: Record<string, string>;
  /** A function returns the same bytes each time, so that the request can be repeated with a renewed credential. */
  body?: string | Buffer | Readable | (() => string | Buffer | Readable);
  signal?: AbortSignal;
  /** Milliseconds without a byte in either direction until the request counts as lost; 0 = never. */
  idleTimeoutMs?: number;
}

export interface ChannelRequest {
  /** Path and query below the API server's URL. */
  path: string;
  /** Accepted subprotocols, the preferred one first. */
  protocols: readonly string[];
  signal?: AbortSignal | undefined;
  /** Interval between pings; default 20,000. */
  pingMs?: number;
}

export interface RawResponse {
  status: number;
  headers: Record<string, string>;
  body: Readable;
}

/**
 * One cluster, with the rights of one user.
 *
 * Every method throws a {@link KubeError} (a KfError: `not-found`, `forbidden`, `conflict`, `unreachable` …) that names the server of the answer.
 */
export interface Cluster {
  /** The context's name, the server's URL and the kubeconfig user's name, for messages. */
  readonly identity: { context: string; server: string; user: string };
  /** When the server was last found to be away, in milliseconds of `performance.now()`; -Infinity when it always answered. */
  readonly awayAt: number;
  /** The object, or undefined when it does not exist (404). */
  get<T extends KubeObject>(
    type: ResourceType<T>,
    ns: string | undefined,
    name: string,
    signal?: AbortSignal,
  ): Promise<Stored<T> | undefined>;
  /** All pages as one list. A page has at most 500 objects and 8 MiB. */
  list<T extends KubeObject>(type: ResourceType<T>, options?: KeepOptions<T>): Promise<ListResult<T>>;
  /** The server-side table of a list, all pages. With `rowObjects: 'None'` a row has no `object`. */
  table(type: ResourceType, options?: TableOptions): Promise<Table>;
  create<T extends KubeObject>(type: ResourceType<T>, object: T, options?: WriteOptions): Promise<Stored<T>>;
  /** Server-side apply; `fieldManager` is required by the server. */
  apply<T extends KubeObject>(type: ResourceType<T>, object: T, options: ApplyOptions & { fieldManager: string }): Promise<Stored<T>>;
  /** JSON merge patch. A uid or resourceVersion in `patch.metadata` is a precondition. */
  mergePatch<T extends KubeObject>(
    type: ResourceType<T>,
    ns: string | undefined,
    name: string,
    patch: Record<string, unknown>,
    options?: PatchOptions,
  ): Promise<Stored<T>>;
  /** PUT; needs the object's resourceVersion. */
  replace<T extends KubeObject>(type: ResourceType<T>, object: T, options?: PatchOptions): Promise<Stored<T>>;
  /** True when something was deleted, false when it did not exist (404). */
  delete(type: ResourceType, ns: string | undefined, name: string, options?: DeleteOptions): Promise<boolean>;
  /** One watch connection; ends when the server ends it, throws KubeError with `expired` on 410. The caller reconnects. */
  watch<T extends KubeObject>(type: ResourceType<T>, options?: WatchOptions): AsyncIterable<WatchEvent<T>>;
  /** The raw log body of one container. */
  logs(ns: string, pod: string, options?: LogOptions): Promise<Readable>;
  canI(question: AccessQuestion, signal?: AbortSignal): Promise<{ allowed: boolean; reason: string }>;
  /** The user name that the API server sees (SelfSubjectReview). */
  whoAmI(signal?: AbortSignal): Promise<string>;
  /** Any request over the same transport (service proxy, /version …). No status is an error here. */
  raw(request: RawRequest): Promise<RawResponse>;
  /**
   * A WebSocket with channels at a path of a pod (exec, attach, portforward), over the same transport. @throws KubeError; also when the server
   * answers without an upgrade
   */
  openChannels(request: ChannelRequest): Promise<Channels>;
  close(): void;
}

// The common fields of all Kubernetes objects, the type of an object from the API server, and the descriptor that connects a type with its URL.

import { KfError } from '../errors.ts';

export interface OwnerReference {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
  controller?: boolean;
  blockOwnerDeletion?: boolean;
}

export interface ObjectMeta {
  name?: string;
  generateName?: string;
  namespace?: string;
  uid?: string;
  resourceVersion?: string;
  generation?: number;
  creationTimestamp?: string;
  deletionTimestamp?: string;
  /** Seconds between the deletion and `deletionTimestamp`. */
  deletionGracePeriodSeconds?: number;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  ownerReferences?: OwnerReference[];
  finalizers?: string[];
}

/** Any object, as kf writes it or as the API server sends it. The types of single kinds extend it. */
export interface KubeObject {
  apiVersion?: string;
  kind?: string;
  metadata: ObjectMeta;
}

/** An object of a cluster-scoped kind. */
export interface ClusterObject extends KubeObject {
  metadata: ObjectMeta & { namespace?: never };
}

interface StoredMeta {
  name: string;
  uid: string;
  resourceVersion: string;
}

/** A kind has fields of its own; a type without any stands for objects of any kind, namespaced or not. */
type IsAnyKind<T extends KubeObject> = keyof T extends keyof KubeObject ? true : false;
type StoredNamespace<T extends KubeObject> =
  IsAnyKind<T> extends true ? unknown : T['metadata'] extends { namespace?: never } ? unknown : { metadata: { namespace: string } };

/**
 * An object that came from the API server: it has a name, a uid, a version and, if its kind is namespaced, a namespace. Only {@link stored} makes
 * one from a {@link KubeObject}; clusters and caches return nothing else.
 */
export type Stored<T extends KubeObject = KubeObject> = T & { metadata: StoredMeta } & StoredNamespace<T>;

/** metav1.Condition. */
export interface Condition {
  type: string;
  status: 'True' | 'False' | 'Unknown';
  reason: string;
  message: string;
  lastTransitionTime: string;
  observedGeneration?: number;
}

/** corev1.LocalObjectReference: an object of the same namespace. */
export interface LocalReference {
  name: string;
}

/** One kind of one API group version; only the compiler uses `T`. */
export interface ResourceType<T extends KubeObject = KubeObject> {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  readonly namespaced: boolean;
  /**
   * The API server computes its objects for each answer (metrics, reviews) and does not store them: in spite of {@link Stored}, they have no uid
   * and no version.
   */
  readonly computed?: true;
  /** Never present at run time. */
  readonly wireType?: T;
}

/** Declares a kind: `resource<Pod>('', 'v1', 'Pod', 'pods')`. */
export function resource<T extends KubeObject>(
  group: string,
  version: string,
  kind: string,
  plural: string,
  namespaced = true,
): ResourceType<T> {
  return { group, version, kind, plural, namespaced };
}

/** Declares a kind whose objects the API server computes for each answer. */
export function computedResource<T extends KubeObject>(...identity: Parameters<typeof resource>): ResourceType<T> {
  return { ...resource<T>(...identity), computed: true };
}

/** The object as a stored one. @throws KfError when a field is missing that every stored object has */
export function stored<T extends KubeObject>(type: ResourceType<T>, object: T): Stored<T> {
  if (type.computed === true) return object as Stored<T>;
  const { name, namespace, uid, resourceVersion } = object.metadata;
  const lacking = [
    ...(isFilled(name) ? [] : ['name']),
    ...(isFilled(namespace) || !type.namespaced ? [] : ['namespace']),
    ...(isFilled(uid) ? [] : ['uid']),
    ...(isFilled(resourceVersion) ? [] : ['resourceVersion']),
  ];
  if (lacking.length === 0) return object as Stored<T>;
  const called = isFilled(name) ? ` '${name}'` : '';
  throw new KfError('failed', `The API server sent the ${type.kind}${called} without metadata.${lacking.join(', metadata.')}.`);
}

const isFilled = (value: string | undefined): value is string => value !== undefined && value !== '';

/** `apps/v1`, or `v1` for the core group. */
export function apiVersionOf(type: ResourceType): string {
  return type.group === '' ? type.version : `${type.group}/${type.version}`;
}

/** Compares resource versions, which are decimal numbers of any length: negative when `a` is the older one. */
export function compareResourceVersions(a: string | undefined, b: string | undefined): number {
  const [left, right] = [a ?? '', b ?? ''];
  if (left.length !== right.length) return left.length - right.length;
  if (left === right) return 0;
  return left < right ? -1 : 1;
}

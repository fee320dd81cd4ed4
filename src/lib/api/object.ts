// The shape that every Kubernetes object shares, and the descriptor that ties a TypeScript type to its URL.

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
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  ownerReferences?: OwnerReference[];
  finalizers?: string[];
}

/** Any object as the API server sends it. Wire types of single kinds extend it. */
export interface KubeObject {
  apiVersion?: string;
  kind?: string;
  metadata: ObjectMeta;
}

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

/** One kind of one API group version; `T` is carried for the compiler only. */
export interface ResourceType<T extends KubeObject = KubeObject> {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  readonly namespaced: boolean;
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

/** `apps/v1`, or `v1` for the core group. */
export function apiVersionOf(type: ResourceType): string {
  return type.group === '' ? type.version : `${type.group}/${type.version}`;
}

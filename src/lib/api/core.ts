// The API types of Kubernetes' own kinds, reduced to the fields that kf reads or writes.
// Source: https://kubernetes.io/docs/reference/generated/kubernetes-api/v1.36/

import { resource } from './object.ts';
import type { ClusterObject, KubeObject, ObjectMeta } from './object.ts';
import type { CoreCondition, LabelSelector, PodTemplateSpec } from './pod.ts';

export interface ObjectReference {
  apiVersion?: string;
  kind?: string;
  namespace?: string;
  name?: string;
  uid?: string;
  fieldPath?: string;
}

export interface Namespace extends ClusterObject {
  status?: { phase?: 'Active' | 'Terminating'; conditions?: CoreCondition[] };
}

export interface Secret extends KubeObject {
  type?: string;
  immutable?: boolean;
  /** Base64. */
  data?: Record<string, string>;
  /** Write only: plain text, which the server encodes into `data`. */
  stringData?: Record<string, string>;
}

export interface ConfigMap extends KubeObject {
  immutable?: boolean;
  data?: Record<string, string>;
  /** Base64. */
  binaryData?: Record<string, string>;
}

export interface ServiceAccount extends KubeObject {
  imagePullSecrets?: { name: string }[];
  secrets?: ObjectReference[];
  automountServiceAccountToken?: boolean;
}

export interface ServicePort {
  name?: string;
  port: number;
  targetPort?: number | string;
  protocol?: string;
  nodePort?: number;
  appProtocol?: string;
}

export interface Service extends KubeObject {
  spec?: {
    type?: 'ClusterIP' | 'NodePort' | 'LoadBalancer' | 'ExternalName';
    clusterIP?: string;
    externalName?: string;
    externalIPs?: string[];
    ipFamilyPolicy?: 'SingleStack' | 'PreferDualStack' | 'RequireDualStack';
    externalTrafficPolicy?: 'Cluster' | 'Local';
    ports?: ServicePort[];
    selector?: Record<string, string>;
    publishNotReadyAddresses?: boolean;
  };
  status?: { loadBalancer?: { ingress?: { ip?: string; hostname?: string }[] } };
}

/** discovery.k8s.io/v1 EndpointSlice: addresses of one family behind a Service. */
export interface EndpointSlice extends KubeObject {
  addressType: 'IPv4' | 'IPv6';
  endpoints: { addresses: string[]; hostname?: string; conditions?: { ready?: boolean } }[];
  ports?: { name?: string; port?: number; protocol?: string }[];
}

/** core/v1 Event: what `kubectl get events` shows. */
export interface KubeEvent extends KubeObject {
  involvedObject: ObjectReference;
  reason?: string;
  message?: string;
  type?: string;
  count?: number;
  firstTimestamp?: string | null;
  lastTimestamp?: string | null;
  eventTime?: string | null;
  series?: { count: number; lastObservedTime: string };
  action?: string;
  reportingComponent?: string;
  reportingInstance?: string;
  source?: { component?: string; host?: string };
}

export interface Node extends ClusterObject {
  spec?: { unschedulable?: boolean; taints?: { key: string; value?: string; effect: string }[] };
  status?: {
    conditions?: (CoreCondition & { lastHeartbeatTime?: string })[];
    addresses?: { type: string; address: string }[];
    allocatable?: Record<string, string>;
    capacity?: Record<string, string>;
    nodeInfo?: {
      architecture: string;
      kubeletVersion: string;
      containerRuntimeVersion: string;
      kernelVersion: string;
      osImage?: string;
      operatingSystem?: string;
    };
    images?: { names?: string[]; sizeBytes?: number }[];
  };
}

export interface StatefulSet extends KubeObject {
  spec?: {
    replicas?: number;
    serviceName?: string;
    selector: LabelSelector;
    podManagementPolicy?: 'OrderedReady' | 'Parallel';
    updateStrategy?: { type: 'OnDelete' | 'RollingUpdate' };
    revisionHistoryLimit?: number;
    minReadySeconds?: number;
    template: PodTemplateSpec;
  };
  status?: { observedGeneration?: number; replicas?: number; readyReplicas?: number; availableReplicas?: number; updatedReplicas?: number };
}

export interface Deployment extends KubeObject {
  spec?: {
    replicas?: number;
    selector: LabelSelector;
    strategy?: { type: 'Recreate' | 'RollingUpdate'; rollingUpdate?: { maxSurge?: number | string; maxUnavailable?: number | string } };
    revisionHistoryLimit?: number;
    progressDeadlineSeconds?: number;
    minReadySeconds?: number;
    template: PodTemplateSpec;
  };
  status?: {
    observedGeneration?: number;
    replicas?: number;
    readyReplicas?: number;
    availableReplicas?: number;
    updatedReplicas?: number;
    unavailableReplicas?: number;
    conditions?: CoreCondition[];
  };
}

export interface Job extends KubeObject {
  spec?: {
    backoffLimit?: number;
    activeDeadlineSeconds?: number;
    ttlSecondsAfterFinished?: number;
    completions?: number;
    parallelism?: number;
    suspend?: boolean;
    selector?: LabelSelector;
    template: PodTemplateSpec;
  };
  status?: {
    active?: number;
    ready?: number;
    succeeded?: number;
    failed?: number;
    startTime?: string;
    completionTime?: string;
    conditions?: CoreCondition[];
  };
}

export interface PodDisruptionBudget extends KubeObject {
  spec?: {
    minAvailable?: number | string;
    maxUnavailable?: number | string;
    selector?: LabelSelector;
    unhealthyPodEvictionPolicy?: 'IfHealthyBudget' | 'AlwaysAllow';
  };
}

export interface Lease extends KubeObject {
  spec?: {
    holderIdentity?: string | null;
    leaseDurationSeconds?: number;
    /** RFC 3339 with microseconds. */
    acquireTime?: string | null;
    renewTime?: string | null;
    leaseTransitions?: number;
  };
}

export interface StorageClass extends ClusterObject {
  provisioner: string;
  reclaimPolicy?: string;
  volumeBindingMode?: string;
}

export interface PolicyRule {
  apiGroups?: string[];
  resources?: string[];
  resourceNames?: string[];
  nonResourceURLs?: string[];
  verbs: string[];
}

/** Role and ClusterRole. */
export interface Role extends KubeObject {
  rules?: PolicyRule[] | null;
  aggregationRule?: { clusterRoleSelectors: LabelSelector[] };
}

export interface Subject {
  kind: 'User' | 'Group' | 'ServiceAccount';
  name: string;
  namespace?: string;
  apiGroup?: string;
}

/** RoleBinding and ClusterRoleBinding. */
export interface RoleBinding extends KubeObject {
  roleRef: { apiGroup: string; kind: 'Role' | 'ClusterRole'; name: string };
  subjects?: Subject[];
}

/** autoscaling/v1 Scale, the answer of the `scale` subresource. */
export interface Scale extends KubeObject {
  metadata: ObjectMeta;
  spec?: { replicas?: number };
  status?: { replicas: number; selector?: string };
}

export const namespaceType = resource<Namespace>('', 'v1', 'Namespace', 'namespaces', false);
export const secretType = resource<Secret>('', 'v1', 'Secret', 'secrets');
export const configMapType = resource<ConfigMap>('', 'v1', 'ConfigMap', 'configmaps');
export const serviceAccountType = resource<ServiceAccount>('', 'v1', 'ServiceAccount', 'serviceaccounts');
export const serviceType = resource<Service>('', 'v1', 'Service', 'services');
export const endpointSliceType = resource<EndpointSlice>('discovery.k8s.io', 'v1', 'EndpointSlice', 'endpointslices');
export const eventType = resource<KubeEvent>('', 'v1', 'Event', 'events');
export const nodeType = resource<Node>('', 'v1', 'Node', 'nodes', false);
export const statefulSetType = resource<StatefulSet>('apps', 'v1', 'StatefulSet', 'statefulsets');
export const deploymentType = resource<Deployment>('apps', 'v1', 'Deployment', 'deployments');
export const jobType = resource<Job>('batch', 'v1', 'Job', 'jobs');
/** core/v1 ResourceQuota: the limits of a namespace. */
export interface ResourceQuota extends KubeObject {
  spec?: { hard?: Record<string, string>; scopes?: string[] };
  /** `hard`: the limits in force. */
  status?: { hard?: Record<string, string>; used?: Record<string, string> };
}
export const resourceQuotaType = resource<ResourceQuota>('', 'v1', 'ResourceQuota', 'resourcequotas');

export const podDisruptionBudgetType = resource<PodDisruptionBudget>('policy', 'v1', 'PodDisruptionBudget', 'poddisruptionbudgets');
export const leaseType = resource<Lease>('coordination.k8s.io', 'v1', 'Lease', 'leases');
export const storageClassType = resource<StorageClass>('storage.k8s.io', 'v1', 'StorageClass', 'storageclasses', false);
export const roleBindingType = resource<RoleBinding>('rbac.authorization.k8s.io', 'v1', 'RoleBinding', 'rolebindings');

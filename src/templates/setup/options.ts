// The input of the objects of `kf setup`; resolved once (flags override the file, which overrides defaults) before any object is made.

import type { HttpsSettings, NetworkSettings } from '../../lib/api/kf-info.ts';

export interface SetupImages {
  /** A stock Node 24 image for controller, gate and source container. */
  node: string;
  /** CNCF distribution, version 3. */
  registry: string;
  /** Traefik 3.6 or later, used only when setup installs the gateway. */
  traefik: string;
  /** CNB builder and its run image. */
  builder: string;
  run: string;
}

/** How outside requests reach setup's gateway. */
export type GatewayExposure = 'hostport' | 'loadbalancer';

export interface SetupGateway {
  /** An existing Gateway; setup then installs none. */
  existing?: { namespace: string; name: string };
  /** An existing GatewayClass; setup then makes only a Gateway of it. */
  className?: string;
  exposure: GatewayExposure;
  /** Left out: yes. Whether setup's own gateway limits the answers and the open requests of each instance. */
  isGuarded?: boolean;
  /** Port for the CLI and browsers, and the address if names do not resolve. */
  port: number;
  address?: string;
  /** Left out: setup manages no certificates. */
  https?: HttpsSettings;
}

/** The input of the NetworkPolicies, for spaces and for kf itself. */
export interface SetupNetwork extends NetworkSettings {
  nodes: NodeNetwork;
}

export interface NodeNetwork {
  /** Addresses of nodes, including the first addresses of each pod range, from which nodes often send. */
  addresses: string[];
  /** Ranges of the pods, if Node objects name them. */
  podRanges: string[];
}

export interface SetupPlan {
  version: string;
  /** The requested settings, with the keys of setup.yaml, which are kept for the next setup; without `buildEnv`, which has its own Secret. */
  settings: Readonly<Record<string, unknown>>;
  images: SetupImages;
  domain: string;
  /** True when setup makes the domain apps.internal, or has made it. */
  internalDomain?: boolean;
  gateway: SetupGateway;
  /** The operator's registry; if left out, one in the cluster. */
  registry?: { host: string; prefix: string; insecure: boolean };
  /** Node port of the pull port. */
  nodePort: number;
  registrySize: string;
  /** Limit in bytes for the images of one space; 0: no limit. */
  registrySpaceQuotaBytes: number;
  /** Default: the cluster's default StorageClass. */
  storageClass?: string;
  /** Registries that builds may read over plain HTTP. */
  insecureRegistries: string[];
  /** Build env for every build, e.g. a mirror. */
  buildEnv: Record<string, string>;
  /** Changes with `buildEnv` and reveals nothing about it; left out when that is empty. */
  buildEnvRevision?: string;
  drainSeconds: number;
  /** How long a stopping instance may take after SIGTERM. */
  graceSeconds: number;
  staging: { memoryMB: number; diskMB: number };
  processDefaults: { memoryMB: number; diskQuotaMB: number };
  /** Limits that override or extend the defaults in the quotas of orgs and spaces. */
  limits: { org: Record<string, string>; space: Record<string, string>; orgTotal: Record<string, string> };
  /** How many finished tasks of an app are kept. */
  tasksKeptPerApp: number;
  /** Memory limit of the controller's container. */
  controllerMemoryMB: number;
  /** An image with the programs, in place of the ConfigMap with the bundle. */
  controllerImage?: string;
  /** Left out: kf makes no NetworkPolicies. */
  network?: SetupNetwork;
  /** Default org and space; GUIDs are kept when they exist. */
  /** The GUIDs are known when the objects exist or are about to be created. */
  org: { name: string; guid?: string };
  space: { name: string; guid?: string };
}

export const systemNamespace = 'kf-system';
export const nodeNamespace = 'kf-node';
export const rootNamespace = 'cf';
export const partOfLabel = 'kf.cloudfoundry.org/part-of';
export const managedByLabel = 'kf.cloudfoundry.org/managed-by';

// What the objects of `kf setup` depend on; resolved once (flags over file over defaults) before anything is built.

import type { NetworkSettings } from '../../lib/api/kf-info.ts';

export interface SetupImages {
  /** A stock Node 24 image: controller, gate and source container run in it. */
  node: string;
  /** CNCF distribution, version 3. */
  registry: string;
  /** Traefik 3.6 or later, used only when setup installs the gateway. */
  traefik: string;
  /** CNB builder and the run image that goes with it. */
  builder: string;
  run: string;
}

/** How requests from outside reach the gateway that setup installs. */
export type GatewayExposure = 'hostport' | 'loadbalancer';

export interface SetupGateway {
  /** Existing Gateway; setup then installs none. */
  existing?: { namespace: string; name: string };
  /** Existing GatewayClass; setup then makes only a Gateway of it. */
  className?: string;
  exposure: GatewayExposure;
  /** Port by which the CLI and browsers reach it, and the address when names do not resolve. */
  port: number;
  address?: string;
}

/** What NetworkPolicies are made of, for spaces and for kf itself. */
export interface SetupNetwork extends NetworkSettings {
  nodes: NodeNetwork;
}

export interface NodeNetwork {
  /** Addresses that nodes have, also at the first of their pods' addresses, which is often the one that they speak from. */
  addresses: string[];
  /** Ranges of the pods, as far as Node objects name them. */
  podRanges: string[];
}

export interface SetupPlan {
  version: string;
  /** What was asked for, under the keys of setup.yaml, to be kept for the next setup; without `buildEnv`, which its Secret keeps. */
  settings: Readonly<Record<string, unknown>>;
  images: SetupImages;
  domain: string;
  gateway: SetupGateway;
  /** Registry of the operator's; left out: one in the cluster. */
  registry?: { host: string; prefix: string; insecure: boolean };
  /** Node port of the pull port. */
  nodePort: number;
  registrySize: string;
  /** Bytes that the images of one space may take; 0: no limit. */
  registrySpaceQuotaBytes: number;
  /** Left out: the cluster's default StorageClass. */
  storageClass?: string;
  /** Registries that builds may read over plain HTTP. */
  insecureRegistries: string[];
  /** Build env for every build, e.g. a mirror. */
  buildEnv: Record<string, string>;
  /** Changes with `buildEnv` and tells nothing of it; left out where that is empty. */
  buildEnvRevision?: string;
  drainSeconds: number;
  staging: { memoryMB: number; diskMB: number };
  processDefaults: { memoryMB: number; diskQuotaMB: number };
  /** What the quotas of orgs and spaces name beside the defaults. */
  limits: { org: Record<string, string>; space: Record<string, string>; orgTotal: Record<string, string> };
  /** How many tasks of an app that have ended are kept. */
  tasksKeptPerApp: number;
  /** Most memory of the controller's container. */
  controllerMemoryMB: number;
  /** An image that holds the programs, instead of the ConfigMap with the bundle. */
  controllerImage?: string;
  /** Left out: kf makes no NetworkPolicies. */
  network?: SetupNetwork;
  /** Default org and space; GUIDs are kept when they exist. */
  /** The GUIDs are known once the objects are there, or are about to be made. */
  org: { name: string; guid?: string };
  space: { name: string; guid?: string };
}

export const systemNamespace = 'kf-system';
export const nodeNamespace = 'kf-node';
export const rootNamespace = 'cf';
export const partOfLabel = 'kf.cloudfoundry.org/part-of';
export const managedByLabel = 'kf.cloudfoundry.org/managed-by';

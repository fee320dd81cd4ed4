// What the operator asks of `kf setup` (flags over setup.yaml over defaults) made into one complete plan.

import { parse } from 'yaml';
import { incorrectUsage } from '../../cf/usage.ts';
import { KfError, messageOf } from '../../errors.ts';
import { readSmallFile } from '../../small-file.ts';
import { resolveNetwork, type NetworkFacts, type NetworkRequest } from './network.ts';
import { defaultTasksKept } from '../../../templates/limits.ts';
import type { SetupImages, SetupPlan } from '../../../templates/setup/options.ts';

/** Flags of the command, and the keys of `setup.yaml`. */
export interface SetupRequest extends NetworkRequest {
  domain?: string;
  registry?: string;
  insecureRegistry?: boolean;
  gateway?: string;
  gatewayClass?: string;
  gatewayExposure?: 'auto' | 'hostport' | 'loadbalancer';
  gatewayPort?: number;
  gatewayAddress?: string;
  imagePrefix?: string;
  images?: Partial<SetupImages>;
  controllerImage?: string;
  nodePort?: number;
  registrySize?: string;
  registrySpaceQuotaMB?: number;
  storageClass?: string;
  insecureRegistries?: string[];
  buildEnv?: Record<string, string>;
  drainSeconds?: number;
  staging?: { memoryMB?: number; diskMB?: number };
  processDefaults?: { memoryMB?: number; diskQuotaMB?: number };
  /** Beside the defaults of src/templates/limits.ts, or instead of them; empty: none. */
  limits?: Partial<Record<'org' | 'space' | 'orgTotal', Record<string, string | number>>>;
  tasksKeptPerApp?: number;
  controllerMemoryMB?: number;
  org?: string;
  space?: string;
}

const defaultImages: SetupImages = {
  node: 'docker.io/library/node:24-slim',
  registry: 'docker.io/library/registry:3',
  traefik: 'docker.io/library/traefik:v3.6',
  builder: 'docker.io/paketobuildpacks/builder-jammy-base:latest',
  run: 'docker.io/paketobuildpacks/run-jammy-base:latest',
};

/** What holds where nothing is asked for. */
export const standard = {
  domain: 'apps.localhost',
  gatewayPort: 80,
  images: defaultImages,
  insecureRegistry: false,
  nodePort: 32500,
  registrySize: '10Gi',
  /** Of the registry's volume, so that one space cannot fill it. */
  registrySpaceQuotaMB: 4096,
  insecureRegistries: [] as string[],
  networkPolicies: 'on',
  appEgress: [] as string[],
  appIngress: [] as string[],
  drainSeconds: 4,
  staging: { memoryMB: 1024, diskMB: 4096 },
  processDefaults: { memoryMB: 256, diskQuotaMB: 1024 },
  tasksKeptPerApp: defaultTasksKept,
  controllerMemoryMB: 768,
  org: 'default',
  space: 'default',
} satisfies SetupRequest;

/** Keys of `setup.yaml`. */
export const knownKeys = [
  'domain',
  'registry',
  'insecureRegistry',
  'gateway',
  'gatewayClass',
  'gatewayExposure',
  'gatewayPort',
  'gatewayAddress',
  'imagePrefix',
  'images',
  'controllerImage',
  'nodePort',
  'registrySize',
  'registrySpaceQuotaMB',
  'storageClass',
  'insecureRegistries',
  'buildEnv',
  'networkPolicies',
  'appEgress',
  'appIngress',
  'drainSeconds',
  'staging',
  'processDefaults',
  'limits',
  'tasksKeptPerApp',
  'controllerMemoryMB',
  'org',
  'space',
];

/** Reads `-f setup.yaml`. @throws KfError usage naming the file and the key that is not known */
export async function readSetupFile(file: string): Promise<SetupRequest> {
  let content: unknown;
  try {
    content = parse(await readSmallFile({ path: file, asGiven: file, what: 'a file of settings' }));
  } catch (error) {
    if (error instanceof KfError) throw error;
    throw new KfError('usage', `Incorrect Usage: The file ${file} cannot be read: ${messageOf(error)}`, { cause: error });
  }
  if (!isMap(content)) {
    throw new KfError('usage', `Incorrect Usage: The file ${file} must hold a map of settings.`, {
      hints: [`Known keys: ${knownKeys.join(', ')}`],
    });
  }
  const unknown = unknownKey(content);
  if (unknown !== undefined) {
    throw new KfError('usage', `Incorrect Usage: ${file} has the unknown key '${unknown}'.`, {
      hints: [`Known keys: ${knownKeys.join(', ')}`],
    });
  }
  assertNumbers(file, content);
  return content;
}

/** A map of YAML or JSON, which may be of settings. */
export function isMap(content: unknown): content is Record<string, unknown> {
  return content !== null && typeof content === 'object' && !Array.isArray(content);
}

/** A key that setup.yaml does not have, if there is one. */
export function unknownKey(content: object): string | undefined {
  return Object.keys(content).find((key) => !knownKeys.includes(key));
}

/** What a number may be, by its key: one that is no port would fail late, in words about an object. */
const numbers: Record<string, { what: string; most: number }> = {
  gatewayPort: { what: 'is a port, from 1 to 65535,', most: 65_535 },
  nodePort: { what: 'is a port, from 1 to 65535,', most: 65_535 },
  tasksKeptPerApp: { what: 'is a whole number from 1', most: Number.MAX_SAFE_INTEGER },
};

function assertNumbers(file: string, content: object): void {
  for (const [key, value] of Object.entries(content)) {
    const number = numbers[key];
    if (number === undefined || (Number.isInteger(value) && value >= 1 && value <= number.most)) continue;
    throw incorrectUsage(`${file}: the key '${key}' ${number.what} and not ${JSON.stringify(value)}.`);
  }
}

/** `docker.io/library/node:24` behind a mirror: host and the rest's folders are kept below the prefix. */
export function withPrefix(prefix: string, reference: string): string {
  const [host = '', ...path] = reference.split('/');
  const rest = path.length > 0 && /[.:]/.test(host) ? path.join('/') : reference;
  return `${prefix.replace(/\/$/, '')}/${rest}`;
}

function resolveImages(request: SetupRequest): SetupImages {
  const entries = Object.entries({ ...defaultImages, ...request.images }).map(([key, reference]) => {
    const isOwn = request.images?.[key as keyof SetupImages] !== undefined;
    return [key, request.imagePrefix === undefined || isOwn || reference === '' ? reference : withPrefix(request.imagePrefix, reference)];
  });
  return Object.fromEntries(entries) as SetupImages;
}

const limitsIn = (given: Record<string, string | number> | undefined): Record<string, string> =>
  Object.fromEntries(Object.entries(given ?? {}).map(([resource, limit]) => [resource, String(limit)]));

function splitRegistry(request: SetupRequest): Pick<SetupPlan, 'registry'> {
  if (request.registry === undefined) return {};
  const [host = '', ...rest] = request.registry.split('/');
  if (host === '') throw new KfError('usage', `Incorrect Usage: --registry takes HOST/PREFIX, not '${request.registry}'.`);
  const prefix = rest.filter((part) => part !== '').join('/');
  return { registry: { host, prefix: prefix === '' ? '' : `${prefix}/`, insecure: request.insecureRegistry ?? false } };
}

function splitGateway(value: string): { namespace: string; name: string } {
  const [namespace = '', name = '', ...more] = value.split('/');
  if (namespace === '' || name === '' || more.length > 0) {
    throw new KfError('usage', `Incorrect Usage: --gateway takes NAMESPACE/NAME, not '${value}'.`, { hints: ['kubectl get gateways -A'] });
  }
  return { namespace, name };
}

/** True for a domain that names this machine itself (RFC 6761). */
export function isLoopbackDomain(domain: string): boolean {
  return domain === 'localhost' || domain.endsWith('.localhost');
}

function sizesIn(
  request: SetupRequest,
): Pick<SetupPlan, 'staging' | 'processDefaults' | 'limits' | 'tasksKeptPerApp' | 'controllerMemoryMB'> {
  return {
    staging: { ...standard.staging, ...request.staging },
    processDefaults: { ...standard.processDefaults, ...request.processDefaults },
    limits: { org: limitsIn(request.limits?.org), space: limitsIn(request.limits?.space), orgTotal: limitsIn(request.limits?.orgTotal) },
    tasksKeptPerApp: request.tasksKeptPerApp ?? standard.tasksKeptPerApp,
    controllerMemoryMB: request.controllerMemoryMB ?? standard.controllerMemoryMB,
  };
}

/** What of a request is kept for the next setup. How its own gateway is reached stays as it was found: `auto` could find another way later. */
function settingsOf(request: SetupRequest, gatewayExposure: SetupPlan['gateway']['exposure']): SetupPlan['settings'] {
  const isOwnGateway = request.gateway === undefined && request.gatewayClass === undefined;
  const all: Record<string, unknown> = { ...request, ...(isOwnGateway ? { gatewayExposure } : {}) };
  const kept = knownKeys.filter((key) => key !== 'buildEnv' && all[key] !== undefined && all[key] !== null);
  return Object.fromEntries(kept.map((key) => [key, all[key]]));
}

/**
 * Completes a request.
 * @param exposure what `auto` means on this cluster
 * @param facts of its network; without them no NetworkPolicies are planned
 */
export function resolvePlan(
  request: SetupRequest,
  version: string,
  exposure: 'hostport' | 'loadbalancer',
  facts?: NetworkFacts,
): SetupPlan {
  const domain = request.domain ?? standard.domain;
  const address = request.gatewayAddress ?? (isLoopbackDomain(domain) ? '127.0.0.1' : undefined);
  const wanted = request.gatewayExposure ?? 'auto';
  const reached = wanted === 'auto' ? exposure : wanted;
  return {
    version,
    settings: settingsOf(request, reached),
    images: resolveImages(request),
    domain,
    gateway: {
      ...(request.gateway === undefined ? {} : { existing: splitGateway(request.gateway) }),
      ...(request.gatewayClass === undefined ? {} : { className: request.gatewayClass }),
      exposure: reached,
      port: request.gatewayPort ?? standard.gatewayPort,
      ...(address === undefined ? {} : { address }),
    },
    ...splitRegistry(request),
    nodePort: request.nodePort ?? standard.nodePort,
    registrySize: request.registrySize ?? standard.registrySize,
    registrySpaceQuotaBytes: (request.registrySpaceQuotaMB ?? standard.registrySpaceQuotaMB) * 1024 * 1024,
    ...(request.storageClass === undefined ? {} : { storageClass: request.storageClass }),
    insecureRegistries: request.insecureRegistries ?? [],
    buildEnv: request.buildEnv ?? {},
    ...resolveNetwork(request, facts),
    drainSeconds: request.drainSeconds ?? standard.drainSeconds,
    ...sizesIn(request),
    ...(request.controllerImage === undefined ? {} : { controllerImage: request.controllerImage }),
    org: { name: request.org ?? standard.org },
    space: { name: request.space ?? standard.space },
  };
}

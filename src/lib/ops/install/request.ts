// Turns the operator's request to `kf setup` (flags override setup.yaml, which overrides defaults) into one complete plan.

import { defaultGraceSeconds } from '../../api/kf-info.ts';
import { incorrectUsage } from '../../cf/usage.ts';
import { defined } from '../../defined.ts';
import { KfError } from '../../errors.ts';
import { resolveHttps, standardHttps } from './https.ts';
import { resolveNetwork, type NetworkFacts } from './network.ts';
import { knownKeys, type SetupRequest } from './settings-schema.ts';
import { defaultTasksKept } from '../../../templates/limits.ts';
import type { SetupImages, SetupPlan } from '../../../templates/setup/options.ts';

export type { SetupRequest };

const defaultImages: SetupImages = {
  node: 'docker.io/library/node:24-slim',
  registry: 'docker.io/library/registry:3',
  traefik: 'docker.io/library/traefik:v3.6',
  builder: 'docker.io/paketobuildpacks/builder-jammy-base:latest',
  run: 'docker.io/paketobuildpacks/run-jammy-base:latest',
};

/** The defaults. */
export const standard = {
  domain: 'apps.localhost',
  gatewayPort: 80,
  gatewayGuard: 'on',
  ...standardHttps,
  images: defaultImages,
  insecureRegistry: false,
  nodePort: 32500,
  registrySize: '10Gi',
  /** A part of the registry's volume, so that one space cannot fill it. */
  registrySpaceQuotaMB: 4096,
  insecureRegistries: [] as string[],
  networkPolicies: 'on',
  appEgress: [] as string[],
  appIngress: [] as string[],
  drainSeconds: 4,
  graceSeconds: defaultGraceSeconds,
  staging: { memoryMB: 1024, diskMB: 4096 },
  processDefaults: { memoryMB: 256, diskQuotaMB: 1024 },
  tasksKeptPerApp: defaultTasksKept,
  controllerMemoryMB: 768,
  org: 'default',
  space: 'default',
} satisfies SetupRequest;

/** Adds the prefix of a mirror to `docker.io/library/node:24`: its host and folders follow the prefix. */
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

/**
 * The part of a request that is kept for the next setup. The exposure of kf's own gateway is kept as it was found, because `auto` could give
 * another one later.
 */
function settingsOf(request: SetupRequest, gatewayExposure: SetupPlan['gateway']['exposure']): SetupPlan['settings'] {
  const isOwnGateway = request.gateway === undefined && request.gatewayClass === undefined;
  const all: Record<string, unknown> = { ...request, ...(isOwnGateway ? { gatewayExposure } : {}) };
  const kept = knownKeys.filter((key) => key !== 'buildEnv' && all[key] !== undefined && all[key] !== null);
  return Object.fromEntries(kept.map((key) => [key, all[key]]));
}

function isGuarded(request: SetupRequest): boolean {
  if (request.gatewayGuard === undefined) return true;
  const other = request.gateway ?? request.gatewayClass;
  if (other !== undefined) throw incorrectUsage(`'gatewayGuard' needs the gateway that kf installs, and '${other}' is another one.`);
  return request.gatewayGuard === 'on' || request.gatewayGuard === true;
}

/**
 * Completes a request.
 * @param exposure the meaning of `auto` on this cluster
 * @param facts about its network; without them no NetworkPolicies are planned
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
      ...defined({ className: request.gatewayClass }),
      exposure: reached,
      isGuarded: isGuarded(request),
      port: request.gatewayPort ?? standard.gatewayPort,
      ...defined({ address, https: resolveHttps(request, domain) }),
    },
    ...splitRegistry(request),
    nodePort: request.nodePort ?? standard.nodePort,
    registrySize: request.registrySize ?? standard.registrySize,
    registrySpaceQuotaBytes: (request.registrySpaceQuotaMB ?? standard.registrySpaceQuotaMB) * 1024 * 1024,
    ...defined({ storageClass: request.storageClass }),
    insecureRegistries: request.insecureRegistries ?? [],
    buildEnv: request.buildEnv ?? {},
    ...resolveNetwork(request, facts),
    drainSeconds: request.drainSeconds ?? standard.drainSeconds,
    graceSeconds: request.graceSeconds ?? standard.graceSeconds,
    ...sizesIn(request),
    ...defined({ controllerImage: request.controllerImage }),
    org: { name: request.org ?? standard.org },
    space: { name: request.space ?? standard.space },
  };
}

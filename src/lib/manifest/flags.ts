// Rules for push's flags, with each other and with the manifest (cf-behaviour 4.7).

import type { RolloutOptions } from '../api/rollout.ts';
import { rolloutOptions } from '../cf/rollout.ts';
import { incorrectUsage } from '../cf/usage.ts';
import type { ManifestApp } from './application.ts';
import type { HealthCheckPlan, ProcessPlan, PushFlags } from './plan.ts';
import { defined } from '../defined.ts';

/** The spellings in cf's messages. */
const names = {
  dockerImage: '--docker-image, -o',
  path: '--path, -p',
  buildpacks: '--buildpack, -b',
  stack: '--stack, -s',
  manifest: '--manifest, -f',
} as const;

const together = (...flags: string[]) => incorrectUsage(`The following arguments cannot be used together: ${flags.join(', ')}`);
const bothNeeded = (one: string, other: string) => incorrectUsage(`'${one}' and '${other}' must be used together.`);

type Flag = keyof PushFlags;
const isGiven = (flags: PushFlags, flag: Flag): boolean => {
  const value = flags[flag];
  return Array.isArray(value) ? value.length > 0 : value !== undefined && value !== false;
};

const exclusive: [Flag, string, Flag, string][] = [
  ['dockerImage', names.dockerImage, 'buildpacks', names.buildpacks],
  ['dockerImage', names.dockerImage, 'path', names.path],
  ['dockerImage', names.dockerImage, 'stack', names.stack],
  ['dockerImage', names.dockerImage, 'droplet', '--droplet'],
  ['droplet', '--droplet', 'path', names.path],
  ['droplet', '--droplet', 'buildpacks', names.buildpacks],
  ['noManifest', '--no-manifest', 'manifest', names.manifest],
  ['noManifest', '--no-manifest', 'varsFiles', '--vars-file'],
  ['noManifest', '--no-manifest', 'vars', '--var'],
  ['noStart', '--no-start', 'noWait', '--no-wait'],
  ['noStart', '--no-start', 'strategy', '--strategy'],
  ['noRoute', '--no-route', 'randomRoute', '--random-route'],
  ['task', '--task', 'strategy', '--strategy'],
];

/** @throws KfError `usage` for flags that exclude or need each other */
export function checkFlags(flags: PushFlags): void {
  for (const [one, oneName, other, otherName] of exclusive) {
    if (isGiven(flags, one) && isGiven(flags, other)) throw together(oneName, otherName);
  }
  if (isGiven(flags, 'dockerUsername') && !isGiven(flags, 'dockerImage')) throw bothNeeded(names.dockerImage, '--docker-username');
  if (flags.healthCheckType === 'http' && flags.endpoint === undefined) throw bothNeeded('--endpoint', '--health-check-type=http, -u=http');
  if (flags.endpoint?.startsWith('/') === false) throw incorrectUsage(`--endpoint must begin with '/', and it is '${flags.endpoint}'.`);
  rolloutOf(flags);
  const buildpacks = flags.buildpacks ?? [];
  if (buildpacks.length > 1 && buildpacks.some((name) => name === 'default' || name === 'null')) {
    throw incorrectUsage('Multiple buildpacks flags cannot have null/default option.');
  }
  checkLifecycle(flags);
}

/** How the instances are replaced. @throws KfError `usage` */
export function rolloutOf({ strategy, maxInFlight, instanceSteps }: PushFlags): RolloutOptions {
  return rolloutOptions({ strategy, 'max-in-flight': maxInFlight, 'instance-steps': instanceSteps });
}

function checkLifecycle({ lifecycle, dockerImage, buildpacks, stack }: PushFlags): void {
  if (lifecycle === undefined) return;
  if (!['buildpack', 'cnb', 'docker'].includes(lifecycle)) {
    throw incorrectUsage(`--lifecycle must be "buildpack" or "cnb" or "docker", not "${lifecycle}"`);
  }
  if (lifecycle !== 'docker' && dockerImage !== undefined) throw together(`--lifecycle ${lifecycle}`, names.dockerImage);
  if (lifecycle === 'docker' && (buildpacks ?? []).length > 0) throw together('--lifecycle docker', names.buildpacks);
  if (lifecycle === 'docker' && stack !== undefined) throw together('--lifecycle docker', names.stack);
}

const several: Flag[] = [
  'path',
  'dockerImage',
  'dockerUsername',
  'droplet',
  'buildpacks',
  'stack',
  'lifecycle',
  'command',
  'instances',
  'memoryMB',
  'diskQuotaMB',
  'logRateLimitBPS',
  'healthCheckType',
  'endpoint',
  'timeoutSeconds',
  'noRoute',
  'randomRoute',
  'task',
  'strategy',
  'maxInFlight',
  'instanceSteps',
];

/** @throws KfError `usage` for a flag that cannot apply to several apps */
export function checkSeveral(flags: PushFlags): void {
  if (!several.some((flag) => isGiven(flags, flag))) return;
  throw incorrectUsage('Command line flags (except -f and --no-start) cannot be applied when pushing multiple apps from a manifest file.');
}

/** @throws KfError `usage` when a flag contradicts the app's manifest */
export function checkAgainst(flags: PushFlags, app: ManifestApp): void {
  const clash = (flag: string, property: string) =>
    incorrectUsage(`The flag option ${flag} cannot be used with the manifest property ${property}`);
  const properties: [string, boolean][] = [
    ['buildpacks', app.buildpacks !== undefined],
    ['path', app.path !== undefined],
    ['docker', app.docker !== undefined],
  ];
  const forbidden: [Flag, string, string[]][] = [
    ['dockerImage', '--docker-image', ['buildpacks', 'path']],
    ['path', '--path', ['docker']],
    ['buildpacks', '--buildpack', ['docker']],
    ['droplet', '--droplet', ['docker', 'path', 'buildpacks']],
  ];
  for (const [flag, name, excluded] of forbidden) {
    const [property] = properties.find(([key, present]) => present && excluded.includes(key)) ?? [];
    if (isGiven(flags, flag) && property !== undefined) throw clash(name, property);
  }
  const type = app.processes.find((process) => process.type === 'web')?.healthCheck?.type;
  if (flags.endpoint !== undefined && flags.healthCheckType === undefined && type !== undefined && type !== 'http') {
    throw clash('--endpoint', `health-check-type set to ${type}`);
  }
}

/** The web process, overridden by the flags. */
function withFlags(web: ProcessPlan, flags: PushFlags): ProcessPlan {
  const command = flags.command === 'default' || flags.command === 'null' ? null : flags.command;
  const healthCheck = healthCheckWith(web.healthCheck, flags);
  const { memoryMB, diskQuotaMB, instances, logRateLimitBPS, timeoutSeconds } = flags;
  const { healthCheck: _before, ...rest } = web;
  return { ...rest, ...defined({ command, memoryMB, diskQuotaMB, instances, logRateLimitBPS, timeoutSeconds, healthCheck }) };
}

/** Another type than http removes the endpoint. */
function healthCheckWith(before: HealthCheckPlan | undefined, { healthCheckType, endpoint }: PushFlags): HealthCheckPlan | undefined {
  if (healthCheckType === undefined && endpoint === undefined) return before;
  const { endpoint: kept, ...rest } = before ?? {};
  const type = healthCheckType ?? before?.type;
  return { ...rest, ...defined({ type, endpoint: type === undefined || type === 'http' ? (endpoint ?? kept) : undefined }) };
}

/** Flags apply to the web process; one is added if only flags name it. */
export function processesWith(processes: ProcessPlan[], flags: PushFlags): ProcessPlan[] {
  const web = processes.find((process) => process.type === 'web');
  const changed = withFlags(web ?? { type: 'web' }, flags);
  if (web !== undefined) return processes.map((process) => (process === web ? changed : process));
  return Object.keys(changed).length > 1 ? [changed, ...processes] : processes;
}

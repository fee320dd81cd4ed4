// The manifest of an app as it is in the cluster: the keys and their order are those of cf. Pure.

import { stringify } from 'yaml';
import { isOfUser } from '../api/metadata.ts';
import { formatMegabytes } from '../api/sizes.ts';
import type { CFApp, CFProcess } from '../api/types.generated.ts';
import { defined } from '../defined.ts';

export interface WrittenApp {
  app: CFApp;
  processes: readonly CFProcess[];
  env: Readonly<Record<string, string>>;
  /** Names of the bound instances; the binding's own name where it has one. */
  services: readonly { name: string; bindingName?: string }[];
  routes: readonly { address: string; protocol: string }[];
  docker?: { image: string; username?: string };
}

const byText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
const unlessEmpty = <T extends object>(value: T): T | undefined => (Object.keys(value).length === 0 ? undefined : value);
const nonEmpty = (text: string | undefined): string | undefined => (text === '' ? undefined : text);

type Check = NonNullable<CFProcess['spec']['readinessHealthCheck']>;

function checkKeys(prefix: string, check: Check | undefined): Record<string, unknown> {
  const { httpEndpoint, invocationTimeoutSeconds, intervalSeconds } = check?.data ?? {};
  return Object.fromEntries(
    Object.entries({
      type: nonEmpty(check?.type),
      'http-endpoint': check?.type === 'http' ? httpEndpoint : undefined,
      'invocation-timeout': invocationTimeoutSeconds,
      interval: intervalSeconds,
    }).flatMap(([key, value]) => (value === undefined || value === 0 ? [] : [[`${prefix}health-check-${key}`, value]])),
  );
}

function processOf({ spec }: CFProcess): Record<string, unknown> {
  return {
    type: spec.processType,
    ...defined({
      command: nonEmpty(spec.command),
      user: nonEmpty(spec.user),
      instances: spec.desiredInstances,
      memory: formatWhole(spec.memoryMB),
      disk_quota: formatWhole(spec.diskQuotaMB),
      'log-rate-limit-per-second': spec.logRateLimitBPS === undefined ? undefined : logRate(spec.logRateLimitBPS),
      timeout: spec.healthCheck.data.timeoutSeconds || undefined,
    }),
    ...checkKeys('', spec.healthCheck),
    ...checkKeys('readiness-', spec.readinessHealthCheck),
  };
}

/** With the types of the processes that have each; equal ones are one entry. */
function sidecarsOf(processes: readonly CFProcess[]): Record<string, unknown>[] {
  const all = processes.flatMap(({ spec }) => (spec.sidecars ?? []).map((sidecar) => ({ type: spec.processType, ...sidecar })));
  const same = Map.groupBy(all, ({ name, command, memoryMB }) => JSON.stringify([name, command, memoryMB]));
  return [...same.values()].flatMap((group) => {
    const [first] = group;
    if (first === undefined) return [];
    const { name, command, memoryMB } = first;
    const memory = memoryMB === undefined ? undefined : formatWhole(memoryMB);
    return [{ name, process_types: group.map(({ type }) => type).toSorted(byText), command, ...defined({ memory }) }];
  });
}

/** `1536M` and not `1.5G`, which cf does not read. */
function formatWhole(megabytes: number): string | undefined {
  const text = formatMegabytes(megabytes);
  return megabytes === 0 ? undefined : /^\d+[A-Z]$/.test(text) ? text : `${megabytes}M`;
}

const logRate = (bytes: number): string | number => (bytes > 0 ? `${bytes}B` : bytes);

/** The names that belong to the user, not to the platform. */
function ownMetadata(values: Readonly<Record<string, string>> = {}): Record<string, string> | undefined {
  const own = Object.entries(values).filter(([name]) => isOfUser(name));
  return unlessEmpty(Object.fromEntries(own.toSorted(([a], [b]) => byText(a, b))));
}

/** The YAML text of a manifest with one app. */
export function manifestText({ app, processes, env, services, routes, docker }: WrittenApp): string {
  const { type, data } = app.spec.lifecycle;
  const entry = {
    name: app.spec.displayName,
    ...defined({
      env: unlessEmpty(env),
      lifecycle: type,
      docker: type === 'docker' ? docker : undefined,
      buildpacks: type === 'docker' || (data.buildpacks ?? []).length === 0 ? undefined : data.buildpacks,
      stack: nonEmpty(data.stack),
      services: unlessEmpty(
        services
          .toSorted((a, b) => byText(a.name, b.name))
          .map(({ name, bindingName }) => (bindingName === undefined || bindingName === name ? name : { name, binding_name: bindingName })),
      ),
      routes: unlessEmpty(
        routes.toSorted((a, b) => byText(a.address, b.address)).map(({ address, protocol }) => ({ route: address, protocol })),
      ),
      metadata: unlessEmpty(defined({ labels: ownMetadata(app.metadata.labels), annotations: ownMetadata(app.metadata.annotations) })),
      sidecars: unlessEmpty(sidecarsOf(processes)),
      processes: unlessEmpty(processes.toSorted((a, b) => byText(a.spec.processType, b.spec.processType)).map(processOf)),
    }),
  };
  // cf reads YAML 1.1, in which an unquoted `yes` is a boolean. A folded text would still be read as the same one, but it is hard to read and to compare.
  return stringify({ applications: [entry] }, { version: '1.1', lineWidth: 0, directives: true }).replace(/^%YAML.*\n/, '');
}

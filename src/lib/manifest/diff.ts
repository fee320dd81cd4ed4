// Compares a manifest with an app, line by line, in the order and with the keys of a manifest. Pure.

import { webProcess } from '../api/app.ts';
import type { Stored } from '../api/object.ts';
import { formatMegabytes } from '../api/sizes.ts';
import type { CFApp, CFProcess, CFRoute } from '../api/types.generated.ts';
import type { AppPlan, HealthCheckPlan, ProcessPlan } from './plan.ts';

/** `+`: added, `-`: the earlier value, blank: unchanged. */
export interface DiffLine {
  sign: '+' | '-' | ' ';
  text: string;
}

/** The existing parts of an app; undefined for a new one. */
export interface Present {
  app: Stored<CFApp>;
  /** Processes, the routes that lead to it, and its environment. */
  facts: { processes: readonly Stored<CFProcess>[]; ownRoutes: readonly Stored<CFRoute>[]; env: Readonly<Record<string, string>> };
  /** The image that it runs, as the user pushed it. */
  image: string | undefined;
}

type Written = string | number | undefined;
/** A key, its wanted value, and its present value. */
type Entry = [key: string, wanted: Written, was: Written];

const redacted = '<redacted>';
const shown = (value: Written): string => {
  const text = String(value);
  return text.includes('\n') ? JSON.stringify(text) : text;
};

const pairLines = (indent: string, [key, wanted, was]: Entry, show = shown): DiffLine[] => {
  if (wanted === undefined) return [];
  const line = (sign: DiffLine['sign'], value: Written): DiffLine => ({ sign, text: `${indent}${key}: ${show(value)}` });
  if (was === wanted) return [line(' ', wanted)];
  return [...(was === undefined ? [] : [line('-', was)]), line('+', wanted)];
};

/** A key with lines below it; it is new when all of them are new. */
function under(indent: string, key: string, lines: DiffLine[]): DiffLine[] {
  if (lines.length === 0) return [];
  const sign = lines.every((line) => line.sign === '+') ? '+' : ' ';
  return [{ sign, text: `${indent}${key}:` }, ...lines];
}

/** The items of a list, both those that exist and those that do not. */
function items(indent: string, wanted: readonly string[], isThere: (item: string) => boolean): DiffLine[] {
  return wanted.map((item) => ({ sign: isThere(item) ? ' ' : '+', text: `${indent}- ${item}` }));
}

function checkEntries(prefix: string, plan: HealthCheckPlan = {}, present: CFProcess['spec']['readinessHealthCheck']): Entry[] {
  return [
    [`${prefix}health-check-type`, plan.type, present?.type],
    [`${prefix}health-check-http-endpoint`, plan.endpoint, present?.data?.httpEndpoint],
    [`${prefix}health-check-interval`, plan.intervalSeconds, present?.data?.intervalSeconds],
    [`${prefix}health-check-invocation-timeout`, plan.invocationTimeoutSeconds, present?.data?.invocationTimeoutSeconds],
  ];
}

const size = (megabytes: number | undefined): Written => (megabytes === undefined ? undefined : formatMegabytes(megabytes));
const command = (text: string | null | undefined): Written => (text === null || text === '' ? 'null' : text);

function processLines(indent: string, plan: ProcessPlan, process: Stored<CFProcess> | undefined): DiffLine[] {
  const spec = process?.spec;
  const entries: Entry[] = [
    ['command', command(plan.command), spec === undefined ? undefined : command(spec.command ?? null)],
    ['user', plan.user, spec?.user],
    ['instances', plan.instances, spec?.desiredInstances],
    ['memory', size(plan.memoryMB), size(spec?.memoryMB)],
    ['disk-quota', size(plan.diskQuotaMB), size(spec?.diskQuotaMB)],
    ['log-rate-limit-per-second', plan.logRateLimitBPS, spec?.logRateLimitBPS],
    ['timeout', plan.timeoutSeconds, spec?.healthCheck.data.timeoutSeconds],
    ...checkEntries('', plan.healthCheck, spec?.healthCheck),
    ...checkEntries('readiness-', plan.readinessHealthCheck, spec?.readinessHealthCheck),
  ];
  return entries.flatMap((entry) => pairLines(indent, entry));
}

/** The keys of the web process alone are at the level of the app, as in most manifests. */
function processesLines({ processes }: AppPlan, present: readonly Stored<CFProcess>[]): DiffLine[] {
  const processOf = ({ type }: ProcessPlan): Stored<CFProcess> | undefined => present.find(({ spec }) => spec.processType === type);
  const [only] = processes;
  if (only?.type === webProcess && processes.length === 1) return processLines('  ', only, processOf(only));
  const lines = processes.flatMap((plan) => {
    const process = processOf(plan);
    const head: DiffLine = { sign: process === undefined ? '+' : ' ', text: `  - type: ${plan.type}` };
    return [head, ...processLines('    ', plan, process)];
  });
  return under('  ', 'processes', lines);
}

function sidecarLines({ sidecars }: AppPlan, present: readonly Stored<CFProcess>[]): DiffLine[] {
  const lines = sidecars.flatMap((plan) => {
    const withIt = present.flatMap(({ spec }) => {
      const sidecar = spec.sidecars?.find(({ name }) => name === plan.name);
      return sidecar === undefined ? [] : [{ type: spec.processType, sidecar }];
    });
    const isWanted = ({ type }: { type: string }): boolean => plan.processTypes.includes(type);
    const found = (withIt.find(isWanted) ?? withIt[0])?.sidecar;
    const entries: Entry[] = [
      ['command', plan.command, found?.command],
      ['memory', size(plan.memoryMB), size(found?.memoryMB)],
    ];
    const head: DiffLine = { sign: found === undefined ? '+' : ' ', text: `  - name: ${plan.name}` };
    const gone = withIt.filter((one) => !isWanted(one)).map(({ type }): DiffLine => ({ sign: '-', text: `    - ${type}` }));
    const ofTypes = items('    ', plan.processTypes, (wanted) => withIt.some(({ type }) => type === wanted));
    return [head, ...under('    ', 'process_types', [...gone, ...ofTypes]), ...entries.flatMap((entry) => pairLines('    ', entry))];
  });
  return under('  ', 'sidecars', lines);
}

function buildpackLines({ buildpacks }: AppPlan, { app }: Partial<Present>): DiffLine[] {
  if (buildpacks === undefined) return [];
  const present = app?.spec.lifecycle.data.buildpacks ?? [];
  const gone = present.filter((name) => !buildpacks.includes(name)).map((name): DiffLine => ({ sign: '-', text: `  - ${name}` }));
  const lines = under('  ', 'buildpacks', [...gone, ...items('  ', buildpacks, (name) => present.includes(name))]);
  return lines.length > 0 ? lines : [{ sign: app === undefined ? '+' : ' ', text: '  buildpacks: []' }];
}

function routeLines(plan: AppPlan, { facts, app }: Partial<Present>): DiffLine[] {
  /** What the gateway speaks to the app, by address. */
  const mapped = new Map(
    (facts?.ownRoutes ?? []).map(({ status, spec }) => {
      const destination = spec.destinations?.find(({ appRef }) => appRef.name === app?.metadata.name);
      return [(status?.uri ?? '').toLowerCase(), destination?.protocol ?? 'http1'];
    }),
  );
  if (plan.noRoute) return pairLines('  ', ['no-route', 'true', facts !== undefined && mapped.size === 0 ? 'true' : undefined]);
  if (plan.routes.length > 0) {
    const protocolAt = ({ hostname, path = '' }: AppPlan['routes'][number]) => mapped.get(`${hostname}${path}`.toLowerCase());
    const lines = plan.routes.flatMap((route): DiffLine[] => [
      { sign: protocolAt(route) === undefined ? '+' : ' ', text: `  - route: ${route.text}` },
      ...pairLines('    ', ['protocol', route.protocol, protocolAt(route)]),
    ]);
    return under('  ', 'routes', lines);
  }
  return plan.randomRoute ? pairLines('  ', ['random-route', 'true', mapped.size > 0 ? 'true' : undefined]) : [];
}

function metadataLines(plan: AppPlan, { app }: Partial<Present>): DiffLine[] {
  const part = (key: 'labels' | 'annotations'): DiffLine[] => {
    const entries = Object.entries(plan[key]).map(([name, value]): Entry => {
      const was = app?.metadata[key]?.[name];
      // A key that is to be removed and does not exist counts as unchanged.
      return [name, value ?? 'null', was ?? (value === null && app !== undefined ? 'null' : undefined)];
    });
    return under(
      '    ',
      key,
      entries.flatMap((entry) => pairLines('      ', entry)),
    );
  };
  return under('  ', 'metadata', [...part('labels'), ...part('annotations')]);
}

function envLines({ env }: AppPlan, { facts }: Partial<Present>, redactEnv: boolean): DiffLine[] {
  const show = redactEnv ? () => redacted : shown;
  return under(
    '  ',
    'env',
    Object.entries(env).flatMap(([name, value]) => pairLines('    ', [name, value, facts?.env[name]], show)),
  );
}

/** The attributes of an app in its manifest and the flags. */
export function manifestDiff(plan: AppPlan, present: Present | undefined, { redactEnv }: { redactEnv: boolean }): DiffLine[] {
  const there: Partial<Present> = present ?? {};
  const { app, image, facts } = there;
  const bound = new Set((app?.status?.serviceBindings ?? []).map(({ name }) => name));
  const named = (key: string, wanted: Written, was: Written): DiffLine[] =>
    pairLines('  ', [key, wanted, app === undefined ? undefined : was]);
  const services = plan.services.map(({ name, bindingName = name }): DiffLine => ({
    sign: bound.has(bindingName) ? ' ' : '+',
    text: `  - ${name}`,
  }));
  const docker = plan.docker === undefined ? [] : pairLines('    ', ['image', plan.docker.image, image]);
  return [
    { sign: ' ', text: '---' },
    { sign: ' ', text: 'applications:' },
    { sign: app === undefined ? '+' : ' ', text: `- name: ${plan.name}` },
    ...(plan.pathAsGiven === '.' ? [] : named('path', plan.pathAsGiven, plan.pathAsGiven)),
    ...under('  ', 'docker', docker),
    ...buildpackLines(plan, there),
    ...named('stack', plan.stack, app?.spec.lifecycle.data.stack === '' ? undefined : app?.spec.lifecycle.data.stack),
    ...envLines(plan, there, redactEnv),
    ...under('  ', 'services', services),
    ...routeLines(plan, there),
    ...metadataLines(plan, there),
    ...sidecarLines(plan, facts?.processes ?? []),
    ...processesLines(plan, facts?.processes ?? []),
  ];
}

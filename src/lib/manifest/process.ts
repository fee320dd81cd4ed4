// Process keys of a manifest: of an app (for its web process) or in `processes` (cf-behaviour 4.4).

import { instanceLimits, mostStartSeconds } from '../api/app.ts';
import { Fields } from './fields.ts';
import type { Problems } from './fields.ts';
import type { HealthCheckPlan, ProcessPlan } from './plan.ts';
import type { LocatedMap } from './tree.ts';
import { defined } from '../defined.ts';

export const processKeys = [
  'command',
  'user',
  'instances',
  'memory',
  'disk-quota',
  'log-rate-limit-per-second',
  'timeout',
  'health-check-type',
  'health-check-http-endpoint',
  'health-check-interval',
  'health-check-invocation-timeout',
  'readiness-health-check-type',
  'readiness-health-check-http-endpoint',
  'readiness-health-check-interval',
  'readiness-health-check-invocation-timeout',
] as const;

function healthCheck(fields: Fields, prefix: '' | 'readiness-'): HealthCheckPlan | undefined {
  const key = <K extends string>(name: K) => `${prefix}health-check-${name}` as const;
  const written = fields.oneOf(key('type'), ['http', 'port', 'process', 'none']);
  const type = written === 'none' ? ('process' as const) : written;
  const endpoint = fields.text(key('http-endpoint'));
  if (endpoint !== undefined && !endpoint.startsWith('/'))
    fields.refuse(key('http-endpoint'), `${key('http-endpoint')} must begin with '/'.`);
  if (endpoint !== undefined && type !== undefined && type !== 'http') {
    fields.refuse(key('http-endpoint'), `${key('http-endpoint')} goes with ${key('type')} http, not ${type}.`);
  }
  const plan = defined({
    type,
    endpoint,
    intervalSeconds: fields.wholeNumber(key('interval'), 1),
    invocationTimeoutSeconds: fields.wholeNumber(key('invocation-timeout'), 1),
  });
  return Object.keys(plan).length === 0 ? undefined : plan;
}

function commandOf(fields: Fields): string | null | undefined {
  if (fields.isNull('command')) return null;
  const command = fields.text('command');
  if (command === undefined || (command.length >= 1 && command.length <= 4096)) return command;
  return fields.refuse('command', `command must have 1 to 4096 characters; it has ${command.length}.`);
}

/** The plan of one process; `fields` must include `processKeys`. */
function readProcess(type: string, fields: Fields): ProcessPlan {
  return {
    type,
    ...defined({
      command: commandOf(fields),
      user: fields.text('user'),
      instances: fields.wholeNumber('instances', 0, instanceLimits.most),
      memoryMB: fields.megabytes('memory'),
      diskQuotaMB: fields.megabytes('disk-quota'),
      logRateLimitBPS: fields.logRate('log-rate-limit-per-second'),
      timeoutSeconds: fields.wholeNumber('timeout', 1, mostStartSeconds),
      healthCheck: healthCheck(fields, ''),
      readinessHealthCheck: healthCheck(fields, 'readiness-'),
    }),
  };
}

/** All processes of an app. An entry of type web completely replaces the app-level keys, as in cf. */
export function readProcesses(app: Fields, problems: Problems): ProcessPlan[] {
  const listed: ProcessPlan[] = [];
  for (const item of app.list('processes')) {
    if (item.kind !== 'map') {
      problems.add(item.at, 'An entry of processes is a map with at least a type.');
      continue;
    }
    const process = readListed(item, problems);
    if (process === undefined) continue;
    if (listed.some((other) => other.type === process.type)) problems.add(item.at, `Process type '${process.type}' is listed twice.`);
    listed.push(process);
  }
  const web = readProcess('web', app);
  const says = Object.keys(web).length > 1;
  return says && !listed.some((process) => process.type === 'web') ? [web, ...listed] : listed;
}

function readListed(map: LocatedMap, problems: Problems): ProcessPlan | undefined {
  const fields = new Fields(map, { noun: 'a process', keys: ['type', ...processKeys], lenient: true }, problems);
  const type = fields.required('type', 'A process');
  return type === undefined ? undefined : readProcess(type, fields);
}

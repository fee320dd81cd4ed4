// `apps` and the block of one app, as cf prints them.

import type { AppDetails, AppSummary, InstanceDetails, ProcessDetails } from '../api/results.ts';
import { formatBytes, formatMegabytes } from '../api/sizes.ts';
import { line, pairs, table, type Block, type Cell } from './block.ts';
import { longDate } from './dates.ts';

const counts = (app: AppSummary): string =>
  app.processes.map(({ type, running, instances }) => `${type}:${running}/${instances}`).join(', ');

/** @param stats false drops the processes column (`--no-stats`) */
export function renderApps(apps: readonly AppSummary[], { stats = true }: { stats?: boolean } = {}): Block[] {
  if (apps.length === 0) return [line('No apps found')];
  const header = ['name', 'requested state', ...(stats ? ['processes'] : []), 'routes'];
  const rows = apps.map((app): Cell[] => [app.name, app.state, ...(stats ? [counts(app)] : []), app.routes.join(', ')]);
  return [table(header, rows)];
}

function instanceRow(process: ProcessDetails, instance: InstanceDetails): Cell[] {
  const bad = instance.state === 'crashed' || instance.state === 'down';
  const limit = process.logRateLimit === undefined ? 'unlimited' : `${formatBytes(process.logRateLimit)}/s`;
  return [
    `#${instance.index}`,
    bad ? { text: instance.state, style: 'bad' } : instance.state,
    instance.since === undefined ? '' : `${new Date(instance.since).toISOString().slice(0, 19)}Z`,
    instance.cpu === undefined ? '-' : `${(instance.cpu * 100).toFixed(1)}%`,
    `${instance.memoryBytes === undefined ? '-' : formatBytes(instance.memoryBytes)} of ${formatMegabytes(process.memoryMB)}`,
    `- of ${formatMegabytes(process.diskMB)}`,
    `- of ${limit}`,
    '',
    instance.details ?? '',
    instance.ready === undefined ? '-' : String(instance.ready),
  ];
}

const instanceHeader = ['', 'state', 'since', 'cpu', 'memory', 'disk', 'logging', 'cpu entitlement', 'details', 'ready'];

function renderProcess(process: ProcessDetails, withCommand: boolean): Block[] {
  const rows: [string, string][] = [
    ['type:', process.type],
    ['sidecars:', ''],
    ['instances:', `${process.running}/${process.instances}`],
    ['memory usage:', formatMegabytes(process.memoryMB)],
  ];
  if (withCommand) rows.push(['start command:', process.command ?? '']);
  if (process.instanceDetails.length === 0) return [pairs(...rows), line('There are no running instances of this process.')];
  return [
    pairs(...rows),
    table(
      instanceHeader,
      process.instanceDetails.map((instance) => instanceRow(process, instance)),
    ),
  ];
}

function renderDeployment({ deployment }: AppDetails): Block[] {
  if (deployment === undefined || (deployment.phase !== 'Pending' && deployment.phase !== 'Starting')) return [];
  const since = deployment.since === undefined ? '' : ` (since ${longDate(deployment.since)})`;
  const waiting: [string, string][] = deployment.message === undefined ? [] : [['waiting for:', deployment.message]];
  return [line(), line(`Active deployment with status DEPLOYING${since}`), pairs(['strategy:', 'rolling'], ...waiting)];
}

/** The last deployment failed: why, in one sentence. */
function renderFailure({ deployment }: AppDetails): Block[] {
  if (deployment?.phase !== 'Failed' || deployment.message === undefined) return [];
  return [line(), pairs(['last deployment:', { text: 'failed', style: 'bad' }], ['reason:', deployment.message])];
}

/** The block that `app`, `push`, `start`, `restart`, `restage` and `scale` end with. @param commands start commands too (push) */
export function renderApp(app: AppDetails, { commands = false }: { commands?: boolean } = {}): Block[] {
  const rows: [string, string][] = [
    ['name:', app.name],
    ['requested state:', app.state],
    ['routes:', app.routes.join(', ')],
    ['last uploaded:', app.lastUploaded === undefined ? '' : longDate(app.lastUploaded)],
    ['stack:', app.stack ?? ''],
  ];
  rows.push(app.lifecycle === 'docker' ? ['docker image:', app.dockerImage ?? ''] : ['buildpacks:', '']);
  const buildpacks = app.buildpacks.map(({ name, version = '' }): Cell[] => [name, version, '', name]);
  return [
    pairs(...rows),
    ...(buildpacks.length === 0 || app.lifecycle === 'docker'
      ? []
      : [{ ...table(['name', 'version', 'detect output', 'buildpack name'], buildpacks), indent: '\t' } as Block]),
    ...app.processes.flatMap((process) => [line(), ...renderProcess(process, commands)]),
    ...renderDeployment(app),
    ...renderFailure(app),
  ];
}

/** One line on whether the app's URL answers from here. */
export function renderAnswer({ url, status, problem }: { url: string; status?: number; problem?: string }): string {
  return status === undefined ? `${url} does not answer from here: ${problem ?? 'unknown cause'}` : `${url} answers ${status} from here`;
}

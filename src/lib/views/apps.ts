// `apps` and the block of one app, as cf prints them.

import { awaitedIn } from '../api/awaited.ts';
import type { AppDetails, AppSummary, InstanceDetails, LastEnd, ProcessDetails } from '../api/results.ts';
import { isActive } from '../api/rollout.ts';
import { counted, formatBytes, formatMegabytes } from '../api/sizes.ts';
import { line, message, pairs, table, type Block, type Cell } from './block.ts';
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

/** Longer ones are printed below the table, because they would push its last column out of sight. */
const longestCell = 24;
/** A sum is clearer than more rows than this. */
const mostRows = 50;

const isBad = ({ state }: InstanceDetails): boolean => state === 'crashed' || state === 'down';
const second = (time: string): string => `${new Date(time).toISOString().slice(0, 19)}Z`;

function instanceRow(process: ProcessDetails, instance: InstanceDetails): Cell[] {
  const limit = process.logRateLimit === undefined ? 'unlimited' : `${formatBytes(process.logRateLimit)}/s`;
  const { details = '', memoryMB = process.memoryMB, diskMB = process.diskMB } = instance;
  return [
    `#${instance.index}`,
    isBad(instance) ? { text: instance.state, style: 'bad' } : instance.state,
    instance.since === undefined ? '' : second(instance.since),
    instance.cpu === undefined ? '-' : `${(instance.cpu * 100).toFixed(1)}%`,
    `${instance.memoryBytes === undefined ? '-' : formatBytes(instance.memoryBytes)} of ${formatMegabytes(memoryMB)}`,
    `- of ${formatMegabytes(diskMB)}`,
    `- of ${limit}`,
    '',
    details.length > longestCell ? '' : details,
    instance.ready === undefined ? '-' : String(instance.ready),
  ];
}

const instanceHeader = ['', 'state', 'since', 'cpu', 'memory', 'disk', 'logging', 'cpu entitlement', 'details', 'ready'];
/** The columns that a narrow terminal loses, the least useful first: kf does not measure entitlement, logging and disk. */
const lessImportant = [7, 6, 5, 2];

function howItEnded({ exitCode, reason }: LastEnd, memoryMB: number): string {
  const code = exitCode === undefined ? '' : `exit code ${exitCode}`;
  if (reason === 'OOMKilled') return `ran out of memory (limit ${formatMegabytes(memoryMB)})`;
  return code === '' ? `ended (${reason ?? 'cause unknown'})` : `ended with ${code}`;
}

/** Notes that do not fit into the table: a long cause, and how often and why an instance was restarted. */
function notesOf(process: ProcessDetails, instance: InstanceDetails): Block[] {
  const { index, details = '', restarts = 0, lastEnd, memoryMB = process.memoryMB } = instance;
  const notes: Block[] = details.length > longestCell ? [pairs([`#${index}:`, message(details)])] : [];
  if (restarts === 0) return notes;
  const times = restarts === 1 ? 'once' : `${restarts} times`;
  const at = lastEnd?.at === undefined ? '' : ` at ${second(lastEnd.at)}`;
  const why = lastEnd === undefined ? '' : `; the last time it ${howItEnded(lastEnd, memoryMB)}${at}`;
  return [...notes, pairs([`#${index}:`, `restarted ${times}${why}`])];
}

/** A number is clearer than more names than this. */
const mostNames = 3;

/** The sizes of an instance that differ from the present ones of its process. */
function formerSizes(process: ProcessDetails, { memoryMB, diskMB }: InstanceDetails): string {
  const told = (mine: number | undefined, set: number, what: string): string[] =>
    mine === undefined || mine === set ? [] : [`${formatMegabytes(mine)} of ${what}`];
  return [...told(memoryMB, process.memoryMB, 'memory'), ...told(diskMB, process.diskMB, 'disk')].join(' and ');
}

/** One line for all instances with the same earlier sizes. The table itself stays as in cf. */
function formerSizeLines(process: ProcessDetails): Block[] {
  const alike = Map.groupBy(process.instanceDetails, (instance) => formerSizes(process, instance));
  alike.delete('');
  return [...alike].map(([sizes, those]) => {
    const who = those.length > mostNames ? counted(those.length, 'instance') : those.map(({ index }) => `#${index}`).join(', ');
    return pairs([`${who}:`, `running with ${sizes} until ${those.length === 1 ? 'it is' : 'they are'} restarted`]);
  });
}

const stateRank: Record<InstanceDetails['state'], number> = { crashed: 0, down: 1, starting: 2, running: 3 };

/** All instances; of very many only those in the worst state, and the others as a sum. */
function shownOf({ instanceDetails: instances, instances: wanted, running }: ProcessDetails): {
  shown: readonly InstanceDetails[];
  sum: Block[];
} {
  if (instances.length <= mostRows) return { shown: instances, sum: [] };
  const worstFirst = instances.toSorted((a, b) => stateRank[a.state] - stateRank[b.state] || a.index - b.index);
  const shown = worstFirst.slice(0, mostRows).toSorted((a, b) => a.index - b.index);
  const rest = Map.groupBy(worstFirst.slice(mostRows), ({ state }) => state);
  const sums = [...rest].map(([state, those]) => `${those.length} ${state}`).join(', ');
  // A status describes only the first instances.
  const isWhole = instances.length >= wanted;
  const more = isWhole ? `${sums} (--json lists all)` : `${running} of ${wanted} run in all`;
  return { shown, sum: [line(`... and ${Math.max(instances.length, wanted) - mostRows} more: ${more}`)] };
}

function renderInstances(process: ProcessDetails): Block[] {
  const { shown, sum } = shownOf(process);
  const rows = shown.map((instance) => instanceRow(process, instance));
  return [
    { ...table(instanceHeader, rows), optional: lessImportant } as Block,
    ...sum,
    ...shown.flatMap((instance) => notesOf(process, instance)),
    ...formerSizeLines(process),
  ];
}

function renderProcess(process: ProcessDetails, withCommand: boolean): Block[] {
  const rows: [string, string][] = [
    ['type:', process.type],
    ['sidecars:', process.sidecars.join(', ')],
    ['instances:', `${process.running}/${process.instances}`],
    ['memory usage:', formatMegabytes(process.memoryMB)],
  ];
  if (withCommand) rows.push(['start command:', process.command ?? '']);
  if (process.instanceDetails.length === 0) return [pairs(...rows), line('There are no running instances of this process.')];
  return [pairs(...rows), ...renderInstances(process)];
}

/** One for each version of a process while a deployment replaces its instances, as in cf. */
const blocksOf = (process: ProcessDetails): ProcessDetails[] =>
  process.versions === undefined ? [process] : process.versions.map((version) => ({ ...process, ...version }));

function renderDeployment({ deployment }: AppDetails): Block[] {
  if (deployment === undefined || !isActive(deployment.status)) return [];
  const { status, strategy, maxInFlight, canary, next, standsStill } = deployment;
  const since = deployment.since === undefined ? '' : ` (since ${longDate(deployment.since)})`;
  const rows: [string, Cell][] = [
    ['strategy:', strategy],
    ['max-in-flight:', String(maxInFlight)],
    ...(canary === undefined ? [] : [['canary-steps:', `${String(canary.step)}/${String(canary.steps)}`] satisfies [string, Cell]]),
    ...(next !== undefined || deployment.message === undefined
      ? []
      : [['waiting for:', message(awaitedIn(deployment.message))] satisfies [string, Cell]]),
  ];
  const how =
    next === undefined
      ? []
      : [
          line(),
          line(
            `Please run \`${next.continue}\` to promote the canary deployment, or \`${next.cancel}\` to rollback to the original version.`,
          ),
        ];
  const still =
    standsStill === true ? [line(), line('The controller does not answer: the deployment stands still until it runs again.')] : [];
  return [line(), line(`Active deployment with status ${status}${since}`), pairs(...rows), ...how, ...still];
}

/** Why the last deployment failed, in one sentence. */
function renderFailure({ deployment }: AppDetails): Block[] {
  if (deployment?.phase !== 'Failed' || deployment.message === undefined) return [];
  return [line(), pairs(['last deployment:', { text: 'failed', style: 'bad' }], ['reason:', message(deployment.message)])];
}

/** The lines before the app's block when the app was just started. @param deployed the app, if the user has asked for a strategy */
export function renderWait(deployed?: string): Block[] {
  if (deployed !== undefined) return deploymentLines(deployed).map((text) => line(text));
  return [line(), line('Waiting for app to start...'), line()];
}

/** The same for a deployment, in cf's words. */
export function deploymentLines(name: string): string[] {
  return ['', `Starting deployment for app ${name}...`, '', 'Waiting for app to deploy...', ''];
}

/** What remains to be done after `--no-wait`, in cf's words; empty when nothing remains. */
export function renderRest({ deployment }: AppDetails, done: string, going: string): Block[] {
  if (deployment?.phase !== 'Pending' && deployment?.phase !== 'Starting') return [];
  return [line(`First instance ${done} correctly, ${going} remaining in the background`), line()];
}

/** The block at the end of `app`, `push`, `start`, `restart`, `restage` and `scale`. @param commands also print start commands (push) */
export function renderApp(app: AppDetails, { commands = false }: { commands?: boolean } = {}): Block[] {
  const rows: [string, string][] = [
    ['name:', app.name],
    ['requested state:', app.state],
    ['routes:', app.routes.join(', ')],
    ['last uploaded:', app.lastUploaded === undefined ? '' : longDate(app.lastUploaded)],
    ['stack:', app.stack ?? ''],
  ];
  const { defaultStrategy: usual } = app;
  if (usual !== undefined) rows.push(['strategy:', `${usual.strategy} (default of the ${usual.of})`]);
  rows.push(app.lifecycle === 'docker' ? ['docker image:', app.dockerImage ?? ''] : ['buildpacks:', '']);
  const buildpacks = app.buildpacks.map(({ name, version = '' }): Cell[] => [name, version, '', name]);
  return [
    pairs(...rows),
    ...(buildpacks.length === 0 || app.lifecycle === 'docker'
      ? []
      : [{ ...table(['name', 'version', 'detect output', 'buildpack name'], buildpacks), indent: '\t' } as Block]),
    ...app.processes.flatMap(blocksOf).flatMap((process) => [line(), ...renderProcess(process, commands)]),
    ...renderDeployment(app),
    ...renderFailure(app),
  ];
}

/** One line on whether the app's URL answers from here. */
export function renderAnswer({
  url,
  reachable,
  unchecked,
  status,
  problem,
}: {
  url: string;
  reachable: boolean;
  unchecked?: true;
  status?: number;
  problem?: string;
}): string {
  if (reachable && unchecked === true)
    return `${url} leads to the app from here; whether it answers is not known: its health check is 'process'`;
  if (reachable) return `${url} answers from here`;
  if (status === undefined) return `${url} does not answer from here: ${problem ?? 'unknown cause'}`;
  return `${url} does not lead to the app from here: something answers with ${status}`;
}

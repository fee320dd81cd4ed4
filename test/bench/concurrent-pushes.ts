// Many pushes of a ready image at the same time, and how much of their time is the controller's own, by the audit log of the API server. The
// pushes leave the processor to the cluster: developers push from machines of their own.

import { auditEnd, auditFrom, type AuditEntry } from '../support/audit.ts';
import { kubectlJson, type Kf, type Ran } from '../support/kf.ts';
import type { Scene } from './scene.ts';
import { seconds, type Row } from './table.ts';
import { apiServerUsage, controllerUsage } from './usage.ts';

const controller = 'system:serviceaccount:kf-system:kf-controller';
const writes = ['create', 'update', 'patch'];

interface Owned {
  metadata: { name: string; labels?: Record<string, string> };
}

interface OwnTimes {
  /** From the build that the push made to the droplet, for an image that is only looked up. */
  build: number;
  /** From the push's last write of the app to its StatefulSet. */
  start: number;
  /** From the ready pod to what the controller says of the app. */
  report: number;
}

const endOf = (entry: AuditEntry): number => Date.parse(entry.stageTimestamp ?? entry.requestReceivedTimestamp);

/** The writes of one object since a position of the audit log. */
class Writes {
  readonly #entries: AuditEntry[];

  constructor(entries: readonly AuditEntry[]) {
    this.#entries = entries.filter(({ verb }) => writes.includes(verb));
  }

  of(resource: string, name: string, isOurs: boolean, subresource?: string): number[] {
    return this.#entries
      .filter(
        ({ objectRef, user }) =>
          objectRef?.resource === resource &&
          objectRef.name === name &&
          objectRef.subresource === subresource &&
          (user.username === controller) === isOurs,
      )
      .map(endOf);
  }
}

const between = (from: number | undefined, to: number | undefined, what: string): number => {
  if (from === undefined || to === undefined) throw new Error(`The audit log does not tell ${what}.`);
  return Math.max(0, to - from);
};

function ownTimes(seen: Writes, { app, build, set }: { app: string; build: string; set: string }): OwnTimes {
  const pushed = seen.of('cfapps', app, false).at(-1);
  const made = seen.of('statefulsets', set, true)[0];
  const ready = seen.of('pods', `${set}-0`, false, 'status').at(-1);
  return {
    build: between(seen.of('cfbuilds', build, false)[0], seen.of('cfbuilds', build, true, 'status').at(-1), `the build of ${app}`),
    start: between(pushed, made, `the start of ${app}`),
    report: between(ready, seen.of('cfapps', app, true, 'status').at(-1), `the status of ${app}`),
  };
}

/** @param values not empty */
const percentile95 = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[Math.ceil(values.length * 0.95) - 1] ?? NaN;

const sources = ['kf', 'controller', 'others'] as const;

function sourceOf({ user, userAgent }: AuditEntry): (typeof sources)[number] {
  if (user.username === controller) return 'controller';
  return userAgent?.startsWith('kf/') === true ? 'kf' : 'others';
}

const cpuSeconds = async (): Promise<number[]> =>
  (await Promise.all([apiServerUsage(), controllerUsage()])).map((usage) => usage.cpuSeconds);

/** What one of the pushes costs the cluster: requests for objects of their space, and all processor time. Those of others are the kubelets', the scheduler's and Kubernetes' own controllers'. */
function costRow(entries: readonly AuditEntry[], used: readonly number[], { howMany, space }: Pushes): Row {
  const own = entries.filter(({ objectRef }) => objectRef?.namespace === space);
  const counts = Map.groupBy(own, sourceOf);
  const requests = sources.map((source) => `${source} ${((counts.get(source)?.length ?? 0) / howMany).toFixed(1)}`);
  const [apiServer = NaN, controllerMs = NaN] = used.map((spent) => ((spent / howMany) * 1000).toFixed(0));
  return {
    what: 'requests for each of them, and processor time',
    reach: '',
    measured: `API server ${apiServer} ms, controller ${controllerMs} ms`,
    beside: `requests: ${requests.join(', ')}`,
  };
}

export interface Pushes {
  kf: Kf;
  /** The GUID of the target of `kf`. */
  space: string;
  image: string;
  howMany: number;
  /** Kubelets run the instances, so they get routes and answer. Nodes that are played run nothing. */
  isReal: boolean;
}

/** Pushes that failed, each with its end. */
export const faultsOfPushes = (ran: readonly Pick<Ran, 'code' | 'stderr'>[]): string[] => {
  const failed = ran.filter(({ code }) => code !== 0);
  const ends = failed.slice(0, 3).map(({ code, stderr }) => `${String(code)} ${stderr.trim().split('\n')[0] ?? ''}`);
  return failed.length === 0 ? [] : [`${String(failed.length)} of ${String(ran.length)} pushes failed: ${ends.join('; ')}`];
};

export async function concurrentPushes(pushes: Pushes): Promise<Row[]> {
  const { kf, space, image, howMany, isReal } = pushes;
  const before = await cpuSeconds();
  const start = await auditEnd();
  const names = Array.from({ length: howMany }, (_, index) => `push-${String(index)}`);
  const args = ['-o', image, '-m', '64M', ...(isReal ? [] : ['--no-route', '-u', 'process'])];
  const ran = await Promise.all(names.map((name) => kf.run(['push', name, ...args], { timeoutMs: 900_000, niceness: 19 })));
  const failed = ran.filter(({ code }) => code !== 0);
  for (const { stdout, stderr } of failed.slice(0, 3)) console.log(stdout, stderr);
  const used = (await cpuSeconds()).map((now, index) => now - (before[index] ?? NaN));
  const entries = await auditFrom(start);
  const seen = new Writes(entries);
  const of = async <T extends Owned>(kind: string): Promise<T[]> => (await kubectlJson<{ items: T[] }>('get', kind, '-n', space)).items;
  const apps = (await of<Owned & { spec: { displayName: string } }>('cfapps')).filter(({ spec }) => names.includes(spec.displayName));
  const builds = await of<Owned & { spec: { appRef: { name: string } } }>('cfbuilds');
  const sets = await of('statefulsets');
  const times = apps.map(({ metadata: { name: app } }) => {
    const build = builds.find(({ spec }) => spec.appRef.name === app)?.metadata.name ?? '';
    const set = sets.find(({ metadata }) => metadata.labels?.['korifi.cloudfoundry.org/app-guid'] === app)?.metadata.name ?? '';
    return ownTimes(seen, { app, build, set });
  });
  const sums = times.map(({ build, start: begin, report }) => build + begin + report);
  const parts = (['build', 'start', 'report'] as const).map(
    (part) => `${part} ${seconds([percentile95(times.map((time) => time[part]))])}`,
  );
  return [
    {
      what: `${String(howMany)} pushes of a ready image at once (${isReal ? 'a real node' : 'fake nodes'})`,
      reach: '0 failures',
      measured: `${String(failed.length)} failures`,
      beside: `each ${seconds(ran.map(({ milliseconds }) => milliseconds))}`,
      faults: faultsOfPushes(ran),
    },
    {
      what: `the controller's own time for each of these ${String(howMany)}`,
      reach: isReal ? '' : 'p95 ≤ 5 s',
      measured: `p95 ${seconds([percentile95(sums)])}`,
      beside: `p95 of each part: ${parts.join(', ')}`,
    },
    costRow(entries, used, pushes),
  ];
}

const onRealNode = 20;

/** On the bench's own node, with routes. */
export async function benchPushes({ developer: kf, space, sample }: Scene): Promise<Row[]> {
  const rows = await concurrentPushes({ kf, space, image: sample(1), howMany: onRealNode, isReal: true });
  for (let index = 0; index < onRealNode; index += 1) await kf.ok('delete', `push-${String(index)}`, '-r', '-f');
  return rows;
}

// What the tests and the bench of releases do: changes of an app under load, and the times of a start beside those of a repair and a rollback.

import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Load, totalOf, type Loaded } from './load.ts';
import { get } from './http.ts';
import type { Kf, Ran } from './kf.ts';
import { pushTarget, roll, startTarget } from './load-target.ts';
import { currentPodsOf } from './pods.ts';
import { startRegistry, stopRegistry } from './registry-absence.ts';
import { until } from './until.ts';

const hostOf = (app: string): string => `${app}.apps.localhost`;

export interface RollRun {
  /** What the users saw. */
  loaded: Loaded;
  /** The versions that they should have seen. */
  expected: string[];
  /** Of each change. */
  times: number[];
}

/** Rolls one instance under load. @param more further changes, each of which returns the version that serves then */
export async function rollUnderLoad(
  kf: Kf,
  app: string,
  ca: string,
  rounds: number,
  more: readonly (() => Promise<string>)[] = [],
): Promise<RollRun> {
  await startTarget(kf, app);
  const load = new Load(hostOf(app), ca);
  const [expected, times]: [string[], number[]] = [['1.0'], []];
  let loaded: Loaded;
  try {
    await until('the first version to be seen', async () => load.versions.length > 0);
    const rolls = Array.from({ length: rounds }, (_, index) => () => roll(kf, app, index + 1));
    for (const change of [...rolls, ...more]) {
      const began = performance.now();
      expected.push(await change());
      times.push(performance.now() - began);
    }
    const last = expected.at(-1) ?? '';
    // A rollback returns to a version that was seen before.
    const before = load.outcomes.length;
    await until(`version ${last} to answer after the last change`, async () => load.outcomes.slice(before).includes(last));
  } finally {
    loaded = await load.end();
  }
  return { loaded, expected, times };
}

/** What a roll did not keep: whatever the machine, no request fails, and each version answers. */
export function faultsOfRoll({ loaded, expected }: Pick<RollRun, 'loaded' | 'expected'>): string[] {
  const { asked, failures, versions } = loaded;
  const unasked = Object.entries(asked).filter(([, count]) => count === 0);
  return [
    ...(failures.length === 0
      ? []
      : [`${String(failures.length)} of ${String(totalOf(loaded))} requests failed: ${failures.slice(0, 3).join('; ')}`]),
    ...expected.filter((version) => !versions.includes(version)).map((version) => `no user has seen version ${version}`),
    ...unasked.map(([kind]) => `nobody has sent a request of the kind '${kind}'`),
  ];
}

interface App {
  deployment: { phase: string };
}

/** Requests that have ended, without the messages of WebSockets: these stay with one instance. */
interface Counted {
  asked: number;
  failed: number;
  /** Good answers of the canary. */
  byCanary: number;
}

export interface CanaryRun {
  /** From the begin of the deployment until the canary answers for the first time. */
  before: Counted;
  /** From the canary's first answer until its last one, or the last failure before its return. */
  during: Counted;
  after: Counted;
  /** Of WebSockets, which the version before holds all the time. */
  socketFailures: number;
}

const sharePercent = 10;

/** How many of so many requests can reach the canary: the gateway draws for each. More than four standard deviations above the mean are no chance. */
const mostOf = (asked: number): number => {
  const share = sharePercent / 100;
  return asked * share + 4 * Math.sqrt(asked * share * (1 - share));
};

/**
 * What a canary that breaks did not keep: whatever the machine, no more than its share of the requests fails, all while it has requests. What fails is an
 * answer of the gateway, and names no version: but all that the version before has not answered well must be the canary's.
 */
export function faultsOfCanary({ before, during, after, socketFailures }: CanaryRun): string[] {
  const of = ({ failed, asked }: Counted): string => `${String(failed)} of ${String(asked)} requests failed`;
  const notBefore = during.failed + during.byCanary;
  const shared = `while the canary had ${String(sharePercent)} % of them`;
  return [
    ...(during.byCanary === 0 ? ['no user has seen the canary'] : []),
    ...(before.failed === 0 ? [] : [`${of(before)} before the canary had answered any`]),
    ...(during.failed * 100 > during.asked * sharePercent ? [`${of(during)} ${shared}`] : []),
    ...(notBefore > mostOf(during.asked)
      ? [`the version before has not answered ${String(notBefore)} of ${String(during.asked)} requests ${shared}`]
      : []),
    ...(socketFailures === 0 ? [] : [`${String(socketFailures)} WebSockets of the version before failed`]),
    ...(after.failed === 0 ? [] : [`${of(after)} after the canary was taken back`]),
    ...(after.byCanary === 0 ? [] : [`the canary answered ${String(after.byCanary)} requests after it was taken back`]),
  ];
}

/**
 * Divides what users saw.
 *
 * @param outcomes see {@link Load.outcomes}
 * @param begin how many there were at the begin of the deployment
 * @param back how many there were when the gateway had left the canary
 */
export function partsOf(
  outcomes: readonly (string | undefined)[],
  begin: number,
  back: number,
  canary: string,
): Omit<CanaryRun, 'socketFailures'> {
  const first = outcomes.indexOf(canary, begin);
  const from = first < 0 ? back : Math.min(first, back);
  const last = outcomes.slice(from, back).findLastIndex((outcome) => outcome === undefined || outcome === canary);
  const counted = (some: readonly (string | undefined)[]): Counted => ({
    asked: some.length,
    failed: some.filter((outcome) => outcome === undefined).length,
    byCanary: some.filter((outcome) => outcome === canary).length,
  });
  return {
    before: counted(outcomes.slice(begin, from)),
    during: counted(outcomes.slice(from, from + last + 1)),
    after: counted(outcomes.slice(back)),
  };
}

/** The canary ends by itself after some requests, again and again. @throws Error when it is not taken back */
export async function canaryUnderLoad(kf: Kf, app: string, ca: string): Promise<CanaryRun> {
  await startTarget(kf, app);
  await kf.ok('set-env', app, 'VERSION', '1');
  await kf.ok('set-env', app, 'ENDS_AFTER', '30');
  const load = new Load(hostOf(app), ca);
  const afterMore = async (requests: number): Promise<number> => {
    const enough = load.total + requests;
    await until(`${String(requests)} more requests`, async () => load.total >= enough);
    return load.outcomes.length;
  };
  try {
    await until('the first version to be seen', async () => load.versions.length > 0);
    const begin = load.outcomes.length;
    await kf.ok('restart', app, '--strategy', 'canary', '--instance-steps', String(sharePercent));
    await until('the canary to be taken back', async () => (await kf.json<App>('app', app)).deployment.phase === 'Failed', 180_000);
    // The failure may be written before the gateway has left the canary, and a request that was sent before lasts 2 s. 60 are sent in a second.
    const back = await afterMore(180);
    await afterMore(300);
    // A request without an answer fails late.
    await load.end();
    return { ...partsOf(load.outcomes, begin, back, '1.1'), socketFailures: load.socketFailures };
  } finally {
    await load.end();
  }
}

interface Instances {
  processes: { instanceDetails: { restarts?: number }[] }[];
}

/** The time of a new app's start, and of the same start over a version that ends again and again. */
export async function repairTimes(kf: Kf, app: string, broken: string): Promise<{ own: number; repair: number }> {
  const own = await timedStart(kf, `${app}-own`);
  const failed = await kf.run(['push', app, '-o', broken, '-m', '64M']);
  if (failed.code !== 1) throw new Error(`the push of the broken version ended with ${String(failed.code)}`);
  const restarts = async (): Promise<number> => {
    const { processes } = await kf.json<Instances>('app', app);
    return Math.max(...processes.flatMap(({ instanceDetails }) => instanceDetails.map((instance) => instance.restarts ?? 0)));
  };
  // The kubelet waits 20 s and more before the next start of such a container.
  await until('the version to end again and again', async () => (await restarts()) >= 2, 120_000);
  return { own, repair: await timedStart(kf, app) };
}

/** A push of a ready image until the app answers at its URL. */
async function timedStart(kf: Kf, app: string): Promise<number> {
  const began = performance.now();
  const { code, stderr }: Ran = await pushTarget(kf, app, 1);
  if (code !== 0) throw new Error(`the push of ${app} ended with ${String(code)}: ${stderr}`);
  await until(`${app} to answer`, async () => (await get(hostOf(app))).status === 200);
  return performance.now() - began;
}

/**
 * Returns an app of source, of which the cluster has built two versions, to the first one while its registry is away: then nothing can be pushed, built or
 * pulled.
 * @returns the times of a restart of the second version and of the rollback, each until the version answers, and the image of the first version when it was
 * pushed and after the rollback
 */
export async function rollbackTimes(
  kf: Kf,
  app: string,
): Promise<{ restart: number; rollback: number; images: [pushed: string, after: string] }> {
  await kf.run(['delete', app, '-f', '-r']);
  const folder = await mkdtemp(path.join(tmpdir(), 'kf-rollback-'));
  await cp('test/fixtures/apps/static-site', folder, { recursive: true });
  const pushed = async (version: number): Promise<string> => {
    await writeFile(path.join(folder, 'docs/index.html'), `version ${String(version)}`);
    await kf.ok('push', app, '-p', folder, '-m', '64M');
    return imageThatServes(kf, app);
  };
  const timed = async (act: () => Promise<unknown>, version: number): Promise<number> => {
    const began = performance.now();
    await act();
    const wanted = `version ${String(version)}`;
    await until(`${wanted} of ${app}`, async () => (await get(hostOf(app))).body.trim() === wanted);
    return performance.now() - began;
  };
  const first = await pushed(1);
  await pushed(2);
  await rm(folder, { recursive: true, force: true });
  const restart = await timed(() => kf.ok('restart', app), 2);
  await stopRegistry();
  try {
    const rollback = await timed(() => kf.ok('rollback', app, '--version', '1', '-f'), 1);
    return { restart, rollback, images: [first, await imageThatServes(kf, app)] };
  } finally {
    await startRegistry();
  }
}

async function imageThatServes(kf: Kf, app: string): Promise<string> {
  const [pod] = await currentPodsOf((await kf.ok('app', app, '--guid')).stdout.trim());
  return pod?.spec.containers[0]?.image ?? '';
}

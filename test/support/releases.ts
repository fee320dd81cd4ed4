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

/** Rolls one instance under load. */
export async function rollUnderLoad(kf: Kf, app: string, ca: string, rounds: number): Promise<RollRun> {
  await startTarget(kf, app);
  const load = new Load(hostOf(app), ca);
  const [expected, times]: [string[], number[]] = [['1.0'], []];
  let loaded: Loaded;
  try {
    await until('the first version to be seen', async () => load.versions.length > 0);
    for (let round = 1; round <= rounds; round += 1) {
      const began = performance.now();
      expected.push(await roll(kf, app, round));
      times.push(performance.now() - began);
    }
    await until('the last version to be seen', async () => load.versions.includes(expected.at(-1) ?? ''));
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

interface Counted {
  asked: number;
  failed: number;
  /** Good answers of the canary. */
  byCanary: number;
}

export interface CanaryRun {
  /** From the begin of the canary until the gateway has left it. */
  during: Counted;
  after: Counted;
}

const sharePercent = 10;

/** What a canary that breaks did not keep: whatever the machine, no more than its share of the requests fails, and none after its return. */
export function faultsOfCanary({ during, after }: CanaryRun): string[] {
  const of = ({ failed, asked }: Counted): string => `${String(failed)} of ${String(asked)} requests failed`;
  return [
    ...(during.byCanary === 0 ? ['no user has seen the canary'] : []),
    ...(during.failed * 100 > during.asked * sharePercent ? [`${of(during)} while the canary had ${String(sharePercent)} % of them`] : []),
    ...(after.failed === 0 ? [] : [`${of(after)} after the canary was taken back`]),
    ...(after.byCanary === 0 ? [] : [`the canary answered ${String(after.byCanary)} requests after it was taken back`]),
  ];
}

/** The canary ends by itself after some requests, again and again. @throws Error when it is not taken back */
export async function canaryUnderLoad(kf: Kf, app: string, ca: string): Promise<CanaryRun> {
  await startTarget(kf, app);
  await kf.ok('set-env', app, 'VERSION', '1');
  await kf.ok('set-env', app, 'ENDS_AFTER', '30');
  const load = new Load(hostOf(app), ca);
  const counted = (): Counted => ({ asked: load.total, failed: load.failures.length, byCanary: load.answersOf('1.1') });
  const afterMore = async (requests: number): Promise<Counted> => {
    const enough = load.total + requests;
    await until(`${String(requests)} more requests`, async () => load.total >= enough);
    return counted();
  };
  try {
    await until('the first version to be seen', async () => load.versions.length > 0);
    const begin = counted();
    await kf.ok('restart', app, '--strategy', 'canary', '--instance-steps', String(sharePercent));
    await until('the canary to be taken back', async () => (await kf.json<App>('app', app)).deployment.phase === 'Failed', 180_000);
    // The failure may be written before the gateway has left the canary, and a request that was sent before lasts 2 s. 60 are sent in a second.
    const back = await afterMore(180);
    await afterMore(300);
    // A request without an answer fails late.
    await load.end();
    return { during: between(begin, back), after: between(back, counted()) };
  } finally {
    await load.end();
  }
}

const between = (one: Counted, other: Counted): Counted => ({
  asked: other.asked - one.asked,
  failed: other.failed - one.failed,
  byCanary: other.byCanary - one.byCanary,
});

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

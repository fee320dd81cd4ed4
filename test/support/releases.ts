// What the tests and the bench of releases do: changes of an app under load, and the times of a start beside those of a repair and a rollback.

import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Load, type Loaded } from './load.ts';
import { get } from './http.ts';
import type { Kf, Ran } from './kf.ts';
import { pushTarget, roll, startTarget } from './load-target.ts';
import { currentPodsOf } from './pods.ts';
import { startRegistry, stopRegistry } from './registry-absence.ts';
import { until } from './until.ts';

const hostOf = (app: string): string => `${app}.apps.localhost`;

/** Rolls one instance under load. @returns what the users saw, the versions that they should have seen, and the time of each change */
export async function rollUnderLoad(
  kf: Kf,
  app: string,
  ca: string,
  rounds: number,
): Promise<{ loaded: Loaded; expected: string[]; times: number[] }> {
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

interface App {
  deployment: { phase: string };
}

export interface CanaryRun {
  /** Requests from the begin of the canary until it was taken back, and after that. */
  during: { asked: number; failed: number };
  after: { asked: number; failed: number };
  versions: readonly string[];
}

/** The canary of 10 % ends by itself after some requests, again and again. */
export async function canaryUnderLoad(kf: Kf, app: string, ca: string): Promise<CanaryRun> {
  await startTarget(kf, app);
  await kf.ok('set-env', app, 'VERSION', '1');
  await kf.ok('set-env', app, 'ENDS_AFTER', '30');
  const load = new Load(hostOf(app), ca);
  try {
    await until('the first version to be seen', async () => load.versions.length > 0);
    const begin = counted(load);
    await kf.ok('restart', app, '--strategy', 'canary', '--instance-steps', '10');
    await until('the canary to be taken back', async () => (await kf.json<App>('app', app)).deployment.phase === 'Failed', 180_000);
    // The gateway has loaded the weights of the return when the controller says Failed; requests that last are answered 2 s later.
    const back = counted(load);
    await until('many requests after it', async () => counted(load).asked > back.asked + 300);
    const end = counted(load);
    const between = (one: Counted, other: Counted): Counted => ({ asked: other.asked - one.asked, failed: other.failed - one.failed });
    return { during: between(begin, back), after: between(back, end), versions: load.versions };
  } finally {
    await load.end();
  }
}

interface Counted {
  asked: number;
  failed: number;
}
const counted = (load: Load): Counted => ({ asked: load.total, failed: load.failures.length });

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
export async function rollbackTimes(kf: Kf, app: string): Promise<{ restart: number; rollback: number; images: [pushed: string, after: string] }> {
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

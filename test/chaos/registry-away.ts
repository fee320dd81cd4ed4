// The registry is away for minutes while apps crash, start again and are restarted: what a node has once pulled needs no registry.

import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { get } from '../support/http.ts';
import { Kf } from '../support/kf.ts';
import { startRegistry, stopRegistry } from '../support/registry-absence.ts';
import { until } from '../support/until.ts';
import { signalAll } from './faults.ts';

const crashing = Array.from({ length: 5 }, (_, index) => `away-${String(index)}`);
/** Restarted again and again, which makes new pods. */
const restarting = 'away-restarts';
const apps = [...crashing, restarting];
const source = path.resolve('test/fixtures/apps/node-hello');

/** The kubelet waits for at most five minutes before it starts a container again. */
const startAgainMs = 360_000;

const serves = async (app: string): Promise<boolean> => (await get(`${app}.apps.localhost`).catch(() => undefined))?.status === 200;

/** Its name is in its command line, so that its processes are found. */
const pushArgs = (app: string): string[] => ['push', app, '-p', source, '-m', '64M', '-c', `node server.js ${app}`];

/** Kills an app until the time is over, each time that it serves. @returns how often, and the longest time until it served again */
async function crashUntil(app: string, deadline: number): Promise<{ crashes: number; longestMs: number }> {
  let [crashes, longestMs] = [0, 0];
  while (Date.now() < deadline) {
    signalAll(`node server.js ${app}`, 'SIGKILL');
    crashes += 1;
    const began = Date.now();
    await until(`the end of ${app}`, async () => !(await serves(app)), 30_000);
    await until(`${app} to serve again`, () => serves(app), startAgainMs);
    longestMs = Math.max(longestMs, Date.now() - began);
  }
  return { crashes, longestMs };
}

/** @returns what did not hold */
export async function registryAway(minutes: number, log: (line: string) => void): Promise<string[]> {
  const kf = await Kf.create();
  const wrong: string[] = [];
  const note = (error: unknown): void => void wrong.push(error instanceof Error ? error.message : String(error));
  for (const app of apps) await kf.ok(...pushArgs(app));
  await stopRegistry();
  log(`the registry is away for ${String(minutes)} minutes`);
  const deadline = Date.now() + minutes * 60_000;
  const crashed = crashing.map(async (app) => {
    const { crashes, longestMs } = await crashUntil(app, deadline);
    log(`${app} was killed ${String(crashes)} times, and served again after at most ${(longestMs / 1000).toFixed(1)} s`);
  });
  let restarts = 0;
  const restarted = async (): Promise<void> => {
    for (; Date.now() < deadline; restarts += 1) {
      await kf.ok('restart', restarting);
      await sleep(10_000);
    }
  };
  const refused = kf.run(['push', 'away-new', '-p', source, '-m', '64M']).then(({ code, stderr }) => {
    if (code === 0 || !stderr.includes("The registry 'kf-registry'")) note(`A push ended with ${String(code)}: ${stderr}`);
  });
  for (const result of await Promise.allSettled([...crashed, restarted(), refused])) if (result.status === 'rejected') note(result.reason);
  log(`${restarting} was restarted ${String(restarts)} times`);
  await startRegistry();
  for (const app of apps) if (!(await serves(app))) note(`${app} does not serve.`);
  for (const app of [...apps, 'away-new']) await kf.ok(...pushArgs(app)).catch(note);
  for (const app of [...apps, 'away-new']) await kf.ok('delete', app, '-r', '-f');
  await kf.remove();
  return wrong;
}

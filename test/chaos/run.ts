// `npm run chaos`: kf with faults, on a cluster of its own.
//   npm run chaos -- [--minutes N] [--seed S]   a session of commands while programs are killed at random (30 minutes)
//   npm run chaos -- binds [--pushes N] [--binds N] [--seed S]
//                                               pushes and binds of several apps while the controller is killed (50 pushes, 200 binds and their unbinds)
//   npm run chaos -- takeover [--rounds N]      the leader of two controllers is cut off or frozen (test/api/takeover.test.ts; 50 rounds)
//   npm run chaos -- registry [--minutes N]     the registry is away while apps crash and start again (10 minutes)
//   npm run chaos -- break-glass [--minutes N]  the controller is away before somebody works without it (test/cluster/break-glass.test.ts; 60 minutes)
//   npm run chaos -- rounds [N] [--seed S]      repeats the tests of test/cluster/chaos.test.ts, each round with its own seed

import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { removesClusters, runProgram, unlessInterrupted } from '../support/interruption.ts';
import { Kf } from '../support/kf.ts';
import { withCluster, withControlPlane } from '../support/rings.ts';
import { BindsSession } from './binds.ts';
import { controllerReady } from './faults.ts';
import { registryAway } from './registry-away.ts';
import { chance, seedOfRun } from './seed.ts';
import { ChaosSession, leastCommands } from './session.ts';
import type { Declared } from './steps.ts';
import { asDeclared, baseline, boundAsDeclared, leavesNothing, noOrphans } from './verify.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    minutes: { type: 'string' },
    seed: { type: 'string' },
    rounds: { type: 'string', default: '50' },
    pushes: { type: 'string', default: '50' },
    binds: { type: 'string', default: '200' },
  },
});
const seed = values.seed === undefined ? seedOfRun() : Number(values.seed);
const meanMs = 20_000;

/** Runs a test file of a ring. @returns its exit code */
const vitest = (project: string, file: string, env: Record<string, string>): Promise<number> =>
  runProgram('vitest', ['run', '--project', project, file], env);

const round = (roundSeed: number, env: Record<string, string>): Promise<number> =>
  vitest('cluster', 'test/cluster/chaos.test.ts', { ...env, KF_CHAOS_SEED: String(roundSeed) });

/** @returns what did not hold */
async function takeover(count: string): Promise<string[]> {
  if (spawnSync(process.execPath, ['tools/bundle.mjs'], { stdio: 'inherit' }).status !== 0) return ['the bundle cannot be built'];
  const code = await withControlPlane((env) => vitest('api', 'test/api/takeover.test.ts', { ...env, KF_TAKEOVER_ROUNDS: count }));
  return code === 0 ? [] : ['a round failed'];
}

/** @returns what did not hold */
async function registry(minutes: number): Promise<string[]> {
  return withCluster(async (env) => {
    Object.assign(process.env, env);
    const wrong = await unlessInterrupted(() => registryAway(minutes, (line) => console.log(line)));
    console.log(wrong.join('\n'));
    return wrong;
  });
}

/** @returns what did not hold */
async function breakGlass(minutes: string): Promise<string[]> {
  const file = 'test/cluster/break-glass.test.ts';
  const code = await withCluster((env) => vitest('cluster', file, { ...env, KF_TEST_STOPPED_MINUTES: minutes }));
  return code === 0 ? [] : ['a command failed'];
}

/** @returns the seeds of the rounds that failed */
async function rounds(count: number): Promise<string[]> {
  const next = chance(seed);
  const bad: string[] = [];
  await withCluster(async (env) => {
    for (let n = 0, own = seed; n < count; n += 1, own = 1 + Math.floor(next() * 999_999)) {
      console.log(`\n== round ${n + 1} of ${count}, KF_CHAOS_SEED=${own} ==`);
      if ((await round(own, env)) !== 0) bad.push(`failed with KF_CHAOS_SEED=${own}`);
    }
  });
  return bad;
}

/** @returns what did not hold */
async function session(minutes: number): Promise<string[]> {
  return withCluster((env) => {
    Object.assign(process.env, env);
    return unlessInterrupted(() => play(minutes));
  });
}

/** @returns what did not hold */
async function play(minutes: number): Promise<string[]> {
  const kf = await Kf.create();
  const before = await baseline();
  const log = (line: string): void => console.log(line);
  const apps = ['chaos-a', 'chaos-b', 'chaos-c'];
  console.log(`seed ${seed}, ${minutes} minutes`);
  const started = Date.now();
  const { declared, tally, findings } = await new ChaosSession(kf, { seed, apps, minutes, meanMs, log }).play();
  const missed = [...tally.missedSteps, ...tally.missedFaults].map((what) => `never hit: ${what}`);
  const least = leastCommands(minutes);
  const few = tally.done < least ? [`only ${tally.done} of ${least} commands were made`] : [];
  const wrong = [...findings, ...(await verified(kf, declared, before)), ...missed, ...few];
  report('chaos.md', `Seed ${seed}, ${minutesSince(started)} minutes.\n\n${tally.render()}`, wrong);
  await kf.remove();
  return wrong;
}

/** @returns what did not hold */
async function binds(): Promise<string[]> {
  return withCluster((env) => {
    Object.assign(process.env, env);
    return unlessInterrupted(playBinds);
  });
}

/** @returns what did not hold */
async function playBinds(): Promise<string[]> {
  const kf = await Kf.create();
  const before = await baseline();
  const log = (line: string): void => console.log(line);
  const [pushes, bindings] = [Number(values.pushes), Number(values.binds)];
  console.log(`seed ${seed}, ${pushes} pushes, ${bindings} binds`);
  const started = Date.now();
  const session = new BindsSession(kf, { seed, pushes, binds: bindings, meanMs, log });
  const { declared, tally, kills, findings } = await session.play();
  const minutes = minutesSince(started);
  await controllerReady();
  const wrong = [...findings, ...(await verified(kf, declared, before))];
  const ends = [...kills].map(([kill, count]) => `${kill} ${count} times`).join(', ');
  report('chaos-binds.md', `Seed ${seed}, ${minutes} minutes; ${ends}.\n\n${tally.render()}`, wrong);
  await kf.remove();
  return wrong;
}

const minutesSince = (started: number): number => Math.round((Date.now() - started) / 60_000);

/** Compares the apps and their bindings with what was declared, and deletes them. @returns what did not hold */
async function verified(kf: Kf, declared: ReadonlyMap<string, Declared | undefined>, before: ReadonlySet<string>): Promise<string[]> {
  const wrong: string[] = [];
  const note = (error: unknown): void => void wrong.push(error instanceof Error ? error.message : String(error));
  for (const [name, app] of declared) {
    await asDeclared(kf, name, app).catch(note);
    if (app !== undefined) await boundAsDeclared(kf, name, app).catch(note);
  }
  await noOrphans().catch(note);
  await leavesNothing(kf, declared.keys(), before).catch(note);
  return wrong;
}

/** Prints what a session has come to, and writes it into a file of test-results. */
function report(file: string, told: string, wrong: readonly string[]): void {
  const text = `${told}\n\n${wrong.length === 0 ? 'All apps are as declared; nothing is left over.' : wrong.join('\n')}\n`;
  mkdirSync('test-results', { recursive: true });
  writeFileSync(`test-results/${file}`, text);
  console.log(text);
}

const [mode = 'session', count = '10'] = positionals;
const modes: Record<string, () => Promise<string[]>> = {
  session: () => session(Number(values.minutes ?? '30')),
  binds,
  takeover: () => takeover(values.rounds),
  registry: () => registry(Number(values.minutes ?? '10')),
  'break-glass': () => breakGlass(values.minutes ?? '60'),
  rounds: () => rounds(Number(count)),
};
const chosen = modes[mode];
if (chosen === undefined) throw new Error(`There is no mode '${mode}'; there are ${Object.keys(modes).join(', ')}.`);
await removesClusters(async () => {
  const bad = await chosen();
  console.log(bad.length === 0 ? 'passed' : `${bad.length} failures`);
  process.exitCode = bad.length === 0 ? 0 : 1;
});

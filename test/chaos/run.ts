// `npm run chaos`: kf with faults, on a cluster of its own.
//   npm run chaos -- [--minutes N] [--seed S]   a session of commands while programs are killed at random (30 minutes)
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
import { registryAway } from './registry-away.ts';
import { chance, seedOfRun } from './seed.ts';
import { ChaosSession } from './session.ts';
import { asDeclared, baseline, leavesNothing, noOrphans } from './verify.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { minutes: { type: 'string' }, seed: { type: 'string' }, rounds: { type: 'string', default: '50' } },
});
const seed = values.seed === undefined ? seedOfRun() : Number(values.seed);
const meanMs = 20_000;
const reportFile = 'test-results/chaos.md';

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
  const wrong = [...findings];
  const note = (error: unknown): void => void wrong.push(error instanceof Error ? error.message : String(error));
  for (const [name, app] of declared) await asDeclared(kf, name, app).catch(note);
  await noOrphans().catch(note);
  await leavesNothing(kf, apps, before).catch(note);
  wrong.push(...[...tally.missedSteps, ...tally.missedFaults].map((what) => `never hit: ${what}`));
  const head = `Seed ${seed}, ${Math.round((Date.now() - started) / 60_000)} minutes.`;
  const text = `${head}\n\n${tally.render()}\n\n${wrong.length === 0 ? 'All apps are as declared; nothing is left over.' : wrong.join('\n')}\n`;
  mkdirSync('test-results', { recursive: true });
  writeFileSync(reportFile, text);
  console.log(text);
  await kf.remove();
  return wrong;
}

const [mode = 'session', count = '10'] = positionals;
const modes: Record<string, () => Promise<string[]>> = {
  session: () => session(Number(values.minutes ?? '30')),
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

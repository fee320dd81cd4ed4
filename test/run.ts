// `npm test [RING…] [FILE…]`: the checks and the four rings. Starts what each needs and stops it afterwards; ends with one line about all.

import { mkdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { messageOf } from '../src/lib/errors.ts';
import { prepareRings } from '../tools/cluster/prepare.ts';
import { bundleForTests, sharedBundle } from './support/cli.ts';
import { isBuilt } from './support/installed-kf.ts';
import { isInterrupted, removesClusters, runProgram } from './support/interruption.ts';
import { lanesFor, sessionFile, startOfNodeMs } from './support/lanes.ts';
import { everydayFiles, hasTimeForPart, longForms, partOfRing, seedOfParts } from './support/ring-parts.ts';
import { joinReports, readRingReport, renderFailures, unhandledFile } from './support/ring-report.ts';
import type { Counts, RingReport } from './support/ring-report.ts';
import { withControlPlane, withLanes } from './support/rings.ts';

const resultsDir = 'test-results';
const isCI = process.env['CI'] === 'true';
const args = process.argv.slice(2);
const update = args.includes('--update');
const all = args.includes('--all');
const positional = args.filter((arg) => !arg.startsWith('-'));
const named = positional.filter((arg) => !arg.includes('/'));
/** Test files to run alone, by path; without any all files of a ring. */
const files = positional.filter((arg) => arg.includes('/'));

/** @param name of the report, when a ring runs in several turns */
async function vitest(ring: string, env: Record<string, string> = {}, wanted = files, name = ring): Promise<RingReport> {
  const report = path.join(resultsDir, `${name}.json`);
  for (const file of [report, unhandledFile(report)]) rmSync(file, { force: true });
  const flags = [
    'run',
    '--project',
    ring,
    '--reporter',
    'default',
    '--reporter',
    'json',
    '--outputFile.json',
    report,
    '--reporter',
    './test/support/unhandled-reporter.ts',
    ...wanted,
  ];
  const exitCode = await runProgram('vitest', update ? [...flags, '--update'] : flags, {
    ...env,
    KF_TEST_UNHANDLED: unhandledFile(report),
  });
  return readRingReport(report, exitCode, process.cwd());
}

/** Some fifty files run the bundled CLI, and a bundle takes two seconds. */
async function withBundle(ring: (env: Record<string, string>) => Promise<RingReport>): Promise<RingReport> {
  const bundle = bundleForTests();
  try {
    return await ring({ [sharedBundle]: bundle.folder });
  } finally {
    bundle.remove();
  }
}

async function check(): Promise<RingReport> {
  const exitCode = await runProgram('node', ['tools/check.ts']);
  if (exitCode === 0) return { passed: 1, failed: 0, skipped: 0, failures: [] };
  return {
    passed: 0,
    failed: 1,
    skipped: 0,
    failures: [{ file: 'tools/check.ts', name: '', message: `ended with exit code ${exitCode}` }],
  };
}

/** No test waits for a compiler. A failed build is reported here, and again by the ring that needs it. */
async function prepare(wanted: readonly string[]): Promise<void> {
  const started = Date.now();
  console.log('\n== prepare ==');
  await prepareRings(wanted, (line) => console.log(line)).catch((error: unknown) => console.error(error));
  console.log(`== prepare: ${Math.round((Date.now() - started) / 1000)} s ==`);
}

const longForm = (ring: keyof typeof longForms): Record<string, string> => (all ? longForms[ring] : {});

const rings: Record<string, () => Promise<RingReport>> = {
  check,
  unit: () => vitest('unit'),
  api: () => withControlPlane((env) => vitest('api', { ...env, ...longForm('api') })),
  contract: () => withBundle((env) => vitest('contract', env)),
  cluster: () =>
    withLanes(lanes(), (env) => (all || files.length > 0 ? vitest('cluster', { ...env, ...longForm('cluster') }) : everydayAndPart(env))),
  session: () => withLanes(1, (env) => vitest('cluster', env, [sessionFile])),
};

/** Files of the cluster ring that run at a time, each on a cluster of its own: one file needs no second cluster. */
function lanes(): number {
  if (files.length === 1 && files[0]?.endsWith('.ts') === true) return 1;
  const given = process.env['KF_TEST_LANES'];
  if (given !== undefined) return Number(given);
  const startMs = startOfNodeMs();
  const count = lanesFor(startMs);
  console.log(
    `files at a time: ${count} (a start of Node takes ${Math.round(startMs)} ms here; KF_TEST_LANES=${count === 1 ? 2 : 1} overrides it)`,
  );
  return count;
}

/** The files of the cluster ring that each run has, and then one part of the others, for which CI needs time. */
async function everydayAndPart(env: Record<string, string>): Promise<RingReport> {
  const part = partOfRing(seedOfParts());
  const begun = performance.now();
  const everyday = await vitest('cluster', env, everydayFiles());
  const now = performance.now();
  // The clock of this process began with it.
  if (isCI && !hasTimeForPart(now, now - begun)) {
    console.log(`after ${Math.round(now / 60_000)} minutes no time is left for ${part.name}; ${part.others}`);
    return everyday;
  }
  console.log(`${part.name}; ${part.others}`);
  return joinReports(everyday, await vitest('cluster', env, part.files, 'cluster-part'));
}

/** A part of the cluster ring, which runs by itself only when it is named. */
const alone = new Set(['session']);

const usage = `usage: npm test [-- [RING…] [FILE…] [--all] [--update]]

  RING      ${Object.keys(rings).join(', ')}; without one, all of them (${[...alone].join(', ')} is a part of cluster)
  FILE      path of a test file; without one, all files of the rings
  --all     runs all files of the cluster ring; without it what each run has, and one of six parts, by the commit or KF_TEST_PART=1 to 6;
            and the long form of tests that are shorter without it (docs/testing.md)
  --update  writes the stored results anew`;

/** What is wrong with the command line: a mistyped word must not start everything. */
function wrongArgument(): string | undefined {
  const flag = args.find((arg) => arg.startsWith('-') && arg !== '--update' && arg !== '--all');
  if (flag !== undefined) return `Unknown option '${flag}'.`;
  const ring = named.find((name) => rings[name] === undefined);
  if (ring !== undefined) return `There is no ring '${ring}'.`;
  try {
    partOfRing(seedOfParts());
    return undefined;
  } catch (error) {
    return messageOf(error);
  }
}

/** It mostly waits and needs no node, so it runs beside those that come after it. */
const beside = 'api';

/** Runs one ring. A ring that cannot run counts as one failure. */
async function runRing(name: string): Promise<{ name: string; counts: RingReport }> {
  const ring = rings[name];
  if (ring === undefined) throw new Error(`There is no ring '${name}'.`);
  const started = Date.now();
  console.log(`\n== ${name} ==`);
  const counts = await ring().catch((error: unknown) => {
    console.error(error);
    return { passed: 0, failed: 1, skipped: 0, failures: [{ file: 'test/run.ts', name: '', message: String(error) }] };
  });
  const seconds = Math.round((Date.now() - started) / 1000);
  console.log(`== ${name}: ${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped (${seconds} s) ==`);
  return { name, counts };
}

async function main(): Promise<void> {
  mkdirSync(resultsDir, { recursive: true });
  const wanted = Object.keys(rings).filter((name) => (named.length > 0 ? named.includes(name) : !alone.has(name)));
  const sum: Counts = { passed: 0, failed: 0, skipped: 0 };
  const failures: string[] = [];
  if ((await runProgram('node', ['tools/bundle.mjs'])) !== 0) throw new Error('The bundle that the rings run cannot be built.');
  process.env[isBuilt] = '1';
  await prepare(wanted.map((name) => (alone.has(name) ? 'cluster' : name)));
  const begun: ReturnType<typeof runRing>[] = [];
  for (const name of wanted) {
    if (isInterrupted()) break;
    const ran = runRing(name);
    begun.push(ran);
    if (name !== beside) await ran;
  }
  for (const { name, counts } of await Promise.all(begun)) {
    sum.passed += counts.passed;
    sum.failed += counts.failed;
    sum.skipped += counts.skipped;
    failures.push(...renderFailures(name, counts.failures));
  }
  if (isCI && sum.skipped > 0) {
    console.error('A skipped test is a failure in CI.');
    process.exitCode = 1;
  }
  if (sum.failed > 0 || sum.passed === 0) process.exitCode = 1;
  if (failures.length > 0) console.log(`\n${failures.join('\n')}`);
  console.log(`\n${sum.passed} passed, ${sum.failed} failed${sum.skipped > 0 ? `, ${sum.skipped} skipped` : ''}`);
}

const wrong = wrongArgument();
if (args.includes('--help')) console.log(usage);
else if (wrong === undefined) await removesClusters(main);
else {
  console.error(`${wrong}\n\n${usage}`);
  process.exitCode = 2;
}

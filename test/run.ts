// `npm test [RING…] [FILE…]`: the checks and the four rings, with whatever each needs started before and stopped after; ends with one line over all.

import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { toolsEnv } from '../tools/environment.ts';
import { prepareRings } from '../tools/cluster/prepare.ts';
import { withCluster, withControlPlane } from './support/rings.ts';

interface Counts {
  passed: number;
  failed: number;
  skipped: number;
}

const resultsDir = 'test-results';
const isCI = process.env['CI'] === 'true';
const args = process.argv.slice(2);
const update = args.includes('--update');
const positional = args.filter((arg) => !arg.startsWith('-'));
const named = positional.filter((arg) => !arg.includes('/'));
/** Test files to run alone, by path; all of a ring without any. */
const files = positional.filter((arg) => arg.includes('/'));

function run(command: string, commandArgs: string[], env: Record<string, string> = {}): Promise<number> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, commandArgs, { stdio: ['ignore', 'inherit', 'inherit'], env: toolsEnv(env) });
    child.on('error', reject);
    child.on('exit', (code) => resolve(code ?? 1));
  });
}

/** Counts of vitest's JSON report; a file that could not even load counts as one failure. */
function readCounts(file: string, exitCode: number): Counts {
  const counts: Counts = { passed: 0, failed: 0, skipped: 0 };
  try {
    const report = JSON.parse(readFileSync(file, 'utf8')) as {
      numPassedTests: number;
      numFailedTests: number;
      numPendingTests: number;
      numTodoTests: number;
    };
    counts.passed = report.numPassedTests;
    counts.failed = report.numFailedTests;
    counts.skipped = report.numPendingTests + report.numTodoTests;
  } catch (error) {
    console.error(`no report of this ring: ${String(error)}`);
  }
  if (exitCode !== 0 && counts.failed === 0) counts.failed = 1;
  return counts;
}

async function vitest(ring: string, env: Record<string, string> = {}): Promise<Counts> {
  const report = path.join(resultsDir, `${ring}.json`);
  rmSync(report, { force: true });
  const flags = ['run', '--project', ring, '--reporter', 'default', '--reporter', 'json', '--outputFile.json', report, ...files];
  const exitCode = await run('vitest', update ? [...flags, '--update'] : flags, env);
  return readCounts(report, exitCode);
}

async function check(): Promise<Counts> {
  const exitCode = await run('node', ['tools/check.ts']);
  return { passed: exitCode === 0 ? 1 : 0, failed: exitCode === 0 ? 0 : 1, skipped: 0 };
}

/** No test waits for a compiler. What cannot be built is told here, and again by the ring that needs it. */
async function prepare(wanted: readonly string[]): Promise<void> {
  const started = Date.now();
  console.log('\n== prepare ==');
  await prepareRings(wanted, (line) => console.log(line)).catch((error: unknown) => console.error(error));
  console.log(`== prepare: ${Math.round((Date.now() - started) / 1000)} s ==`);
}

const rings: Record<string, () => Promise<Counts>> = {
  check,
  unit: () => vitest('unit'),
  contract: () => vitest('contract'),
  api: () => withControlPlane((env) => vitest('api', env)),
  cluster: () => withCluster((env) => vitest('cluster', env)),
};

async function main(): Promise<void> {
  mkdirSync(resultsDir, { recursive: true });
  const wanted = named.length > 0 ? named : Object.keys(rings);
  const sum: Counts = { passed: 0, failed: 0, skipped: 0 };
  if ((await run('node', ['tools/bundle.mjs'])) !== 0) throw new Error('The bundle that the rings run cannot be built.');
  await prepare(wanted);
  for (const name of wanted) {
    const ring = rings[name];
    if (ring === undefined) throw new Error(`There is no ring '${name}'. Known: ${Object.keys(rings).join(', ')}.`);
    const started = Date.now();
    console.log(`\n== ${name} ==`);
    const counts = await ring().catch((error: unknown) => {
      console.error(error);
      return { passed: 0, failed: 1, skipped: 0 };
    });
    console.log(
      `== ${name}: ${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped (${Math.round((Date.now() - started) / 1000)} s) ==`,
    );
    sum.passed += counts.passed;
    sum.failed += counts.failed;
    sum.skipped += counts.skipped;
  }
  if (isCI && sum.skipped > 0) {
    console.error('A skipped test is a failure in CI.');
    process.exitCode = 1;
  }
  if (sum.failed > 0 || sum.passed === 0) process.exitCode = 1;
  console.log(`\n${sum.passed} passed, ${sum.failed} failed${sum.skipped > 0 ? `, ${sum.skipped} skipped` : ''}`);
}

await main();

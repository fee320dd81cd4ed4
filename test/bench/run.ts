// `npm run bench [-- NAME…]`: measures what kf promises, on its own real cluster, and writes test-results/bench.md. Rows of benches that did
// not run stay.
// Times and sizes are reported and never fail the run; errors do, and counts that were promised (`faults` of a row). KF_BENCH_QUICK=1 shortens the idle time.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { isInterrupted, removesClusters, unlessInterrupted } from '../support/interruption.ts';
import { withCluster } from '../support/rings.ts';
import { benchCauses } from './causes.ts';
import { benchPushes } from './concurrent-pushes.ts';
import { benchDemo, benchSuite } from './demo.ts';
import { benchIdle } from './idle.ts';
import { benchListing, benchStart } from './listing.ts';
import { benchPack } from './pack.ts';
import { benchImage, benchSource } from './push.ts';
import { benchReleases } from './releases.ts';
import { benchRoles } from './roles.ts';
import { benchScale, scaleShape } from './scale.ts';
import { openScene, type Scene } from './scene.ts';
import { benchSetup } from './setup.ts';
import { faultsOf, mergeResults, renderTable, rowLine, type Results, type Row } from './table.ts';

const idleMinutes = process.env['KF_BENCH_QUICK'] === '1' ? 1 : 5;

async function packRows(): Promise<Row[]> {
  const { KF_CLUSTER_CRANE: crane, KF_CLUSTER_REGISTRY: registry } = process.env;
  const figures = await benchPack({ ...process.env, KF_BENCH_CRANE: crane, KF_BENCH_REGISTRY: registry });
  return figures.map(({ name, wallMs, peakMiB, bytes }) => ({
    what: `pack and upload of 10,000 files, 300 MB: ${name}`,
    reach: name.startsWith('kf') ? 'RSS ≤ 150 MiB' : '',
    measured: `${(wallMs / 1000).toFixed(1)} s, ${peakMiB} MiB`,
    beside: `${(bytes / 1e6).toFixed(1)} MB compressed`,
  }));
}

/** Each needs kf in the bench's own cluster. */
const onCluster: Record<string, (scene: Scene) => Promise<Row[]>> = {
  setup: benchSetup,
  start: benchStart,
  image: benchImage,
  source: benchSource,
  pushes: benchPushes,
  releases: benchReleases,
  causes: benchCauses,
  roles: benchRoles,
  idle: (scene) => benchIdle(scene, idleMinutes),
  pack: packRows,
  listing: benchListing,
};

/** On a cluster with played nodes. */
async function scaleRows(): Promise<Row[]> {
  return withCluster(
    (env) => {
      Object.assign(process.env, env);
      return unlessInterrupted(benchScale);
    },
    process.env['KF_TEST_CLUSTER'] ?? 'bench-scale',
    scaleShape,
  );
}

/** Each creates what it needs itself. */
const alone: Record<string, () => Promise<Row[]>> = { demo: benchDemo, suite: benchSuite, scale: scaleRows };
/** They take long, and run only if they are named. */
const onlyNamed = ['suite', 'scale'];

const resultsDir = 'test-results';
/** The content of the table: rows by bench. */
const resultsFile = path.join(resultsDir, 'bench.json');
const results: Results = {};

async function measure(name: string, bench: () => Promise<Row[]>): Promise<void> {
  console.log(`\n== ${name} ==`);
  const when = new Date().toISOString().slice(0, 16).replace('T', ' ');
  try {
    results[name] = { when, rows: await bench() };
    for (const row of results[name].rows) console.log(rowLine(row));
  } catch (error) {
    if (isInterrupted()) throw error;
    console.error(error);
    const beside = error instanceof Error ? (error.message.split('\n')[0] ?? '') : '';
    results[name] = { when, rows: [{ what: name, reach: '', measured: 'failed', beside }] };
    process.exitCode = 1;
  }
}

async function main(): Promise<void> {
  const known = [...Object.keys(onCluster), ...Object.keys(alone)];
  const named = process.argv.slice(2);
  const wanted = named.length > 0 ? named : known.filter((name) => !onlyNamed.includes(name));
  const unknown = wanted.find((name) => !known.includes(name));
  if (unknown !== undefined) throw new Error(`There is no bench '${unknown}'. Known: ${known.join(', ')}.`);
  const inCluster = Object.entries(onCluster).filter(([name]) => wanted.includes(name));
  if (inCluster.length > 0) {
    const measureAll = async (): Promise<void> => {
      const scene = await openScene();
      for (const [name, bench] of inCluster) await measure(name, () => bench(scene));
      await scene.remove();
    };
    await withCluster((env) => {
      Object.assign(process.env, env);
      return unlessInterrupted(measureAll);
    }, process.env['KF_TEST_CLUSTER'] ?? 'bench');
  }
  for (const [name, bench] of Object.entries(alone)) if (wanted.includes(name)) await measure(name, bench);
  const before = existsSync(resultsFile) ? (JSON.parse(readFileSync(resultsFile, 'utf8')) as Results) : {};
  const merged = mergeResults(known, before, results);
  const table = renderTable(merged);
  mkdirSync(resultsDir, { recursive: true });
  writeFileSync(resultsFile, JSON.stringify(merged, undefined, 2));
  writeFileSync(path.join(resultsDir, 'bench.md'), table);
  console.log(`\n${table}`);
  const faults = faultsOf(results);
  if (faults.length === 0) return;
  console.error(`not kept:\n${faults.map((fault) => `  ${fault}`).join('\n')}`);
  process.exitCode = 1;
}

await removesClusters(main);

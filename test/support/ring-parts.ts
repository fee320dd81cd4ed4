// Which files of the cluster ring a run has, so that it ends while somebody waits for it: what each run has, and one of six parts of the rest.

import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { sessionFile } from './lanes.ts';

const folder = 'test/cluster';

/** What people use every day, and what must hold for each commit. */
const everyday = [
  'build', 'contract', 'controller-rights', 'default-strategy', 'exec', 'failed-process', 'failed-update', 'failures', 'isolation', 'json', 'push-image',
  'push-manifest', 'push-new-app', 'push-source', 'routes', 'tasks-once', 'tenancy', 'terminal', 'verbs', 'why-later',
]; // prettier-ignore

/** The other files that take a minute and more, in six parts that take about the same time. */
const longOnes: readonly (readonly string[])[] = [
  ['nodes', 'scripts', 'gateway-guard', 'setup', 'kubectl'],
  ['logs', 'chaos', 'transport', 'load'],
  ['route-destinations', 'backup', 'cert-manager'],
  ['upgrade', 'break-glass', 'images/builder'],
  ['cluster', 'registry-lost', 'uninstall', 'slow-gateway', 'shared-routes', 'https-switch'],
  ['retention', 'push-flags', 'causes', 'interrupted'],
];

const fileOf = (name: string): string => `${folder}/${name}.test.ts`;

/** The files that each run has. */
export function everydayFiles(): string[] {
  return [sessionFile, ...everyday.map((name) => fileOf(name))];
}

/** The rest, in parts: a new file comes into one by itself. */
export function partsOfRing(): string[][] {
  const named = new Set([...everydayFiles(), ...longOnes.flat().map((name) => fileOf(name))]);
  const others = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => `${folder}/${name}`)
    .filter((file) => !named.has(file))
    .toSorted();
  return longOnes.map((names, index) => [
    ...names.map((name) => fileOf(name)),
    ...others.filter((_file, at) => at % longOnes.length === index),
  ]);
}

/** One of {@link partsOfRing}. */
export interface PartOfRing {
  /** Which it is, of how many, and with which files. */
  name: string;
  files: string[];
  /** How the others run. */
  others: string;
}

/** What `--all` gives to tests that are shorter in other runs, by their ring: the times and numbers that an operator fears. */
export const longForms: Readonly<Record<'api' | 'cluster', Record<string, string>>> = {
  api: { KF_TEST_OUTAGE_MS: '60000', KF_TEST_STORM_EVENTS: '10000' },
  cluster: { KF_TEST_RELEASES: 'all' },
};

/**
 * The part that a run has. The same commit has the same one.
 *
 * @param seed the commit, in hexadecimal digits, or the number of a part from 1 (`KF_TEST_PART`)
 * @throws Error when there is no such part
 */
export function partOfRing(seed: string): PartOfRing {
  const parts = partsOfRing();
  const wanted = /^[\da-f]{40,64}$/.test(seed) ? Number.parseInt(seed.slice(-7), 16) % parts.length : Number(seed) - 1;
  const files = parts[wanted];
  if (files === undefined) throw new Error(`There is no part '${seed}' of the cluster ring.`);
  const others = parts.flatMap((_part, index) => (index === wanted ? [] : [index + 1]));
  return {
    name: `part ${wanted + 1} of ${parts.length} (${files.map((file) => path.basename(file, '.test.ts')).join(', ')})`,
    files,
    others: `KF_TEST_PART=${others.join(' or ')} runs another one, npm test -- cluster --all all`,
  };
}

/** `KF_TEST_PART`, or the commit of the working copy. Without git it is the first part. */
export function seedOfParts(): string {
  const given = process.env['KF_TEST_PART'];
  if (given !== undefined && given !== '') return given;
  try {
    return execFileSync('git', ['rev-parse', 'HEAD'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  } catch {
    return '1';
  }
}

/** How long a run of CI may take before its part of the ring ends. `.ci/run` has 75 minutes. */
const mostMs = 65 * 60_000;

/**
 * Whether CI has time for a part. It takes about as long as what each run has, also on a machine on which everything takes three times as long.
 *
 * @param sinceMs since the start of the run
 * @param everydayMs that the files of each run took
 */
export const hasTimeForPart = (sinceMs: number, everydayMs: number): boolean => sinceMs + everydayMs <= mostMs;

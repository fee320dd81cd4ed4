// The files of the cluster ring that a run has a third of, so that it ends while somebody waits for it: the longest ones, and the attacks.

import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import path from 'node:path';

/** The files that take minutes each, in three parts. Over three runs with different parts all of them run. */
const longParts: readonly (readonly string[])[] = [
  ['test/cluster/nodes.test.ts', 'test/cluster/cluster.test.ts', 'test/cluster/registry-lost.test.ts'],
  ['test/cluster/chaos.test.ts', 'test/cluster/backup.test.ts', 'test/cluster/https-switch.test.ts'],
  ['test/cluster/upgrade.test.ts', 'test/cluster/uninstall.test.ts', 'test/cluster/retention.test.ts', 'test/cluster/slow-gateway.test.ts'],
];

const attacksFolder = 'test/cluster/attacks';

/** The attacks, in the same number of parts: a new one comes into a part by itself. */
function attackParts(): string[][] {
  const files = readdirSync(attacksFolder)
    .filter((name) => name.endsWith('.test.ts'))
    .toSorted();
  return longParts.map((_part, index) =>
    files.filter((_file, at) => at % longParts.length === index).map((name) => path.posix.join(attacksFolder, name)),
  );
}

/** The files of each part. */
export function partsOfRing(): string[][] {
  const attacks = attackParts();
  return longParts.map((files, index) => [...files, ...(attacks[index] ?? [])]);
}

/** What a run has of {@link partsOfRing}. */
export interface PartOfRing {
  /** Says which files run, and how the others do. */
  line: string;
  /** Paths of the files that do not run. */
  excluded: string[];
}

/**
 * The files of one part. The same commit has the same part.
 *
 * @param seed the commit, in hexadecimal digits, or the number of a part from 1 (`KF_TEST_PART`)
 * @throws Error when there is no such part
 */
export function partOfRing(seed: string): PartOfRing {
  const wanted = /^[\da-f]{40,64}$/.test(seed) ? Number.parseInt(seed.slice(-7), 16) % longParts.length : Number(seed) - 1;
  const parts = partsOfRing();
  const part = parts[wanted];
  if (part === undefined) throw new Error(`There is no part '${seed}' of the long files.`);
  const others = parts.flatMap((_part, index) => (index === wanted ? [] : [index + 1]));
  return {
    line:
      `long files and attacks, part ${wanted + 1} of ${parts.length}: ${part.map((file) => path.basename(file, '.test.ts')).join(', ')} ` +
      `(the others: KF_TEST_PART=${others.join(' or ')}; all: npm test -- cluster --all)`,
    excluded: parts.flatMap((files, index) => (index === wanted ? [] : files)),
  };
}

/** The variable by which the test runner knows the files that do not run. */
const variable = 'KF_TEST_EXCLUDED';

/** That variable with the files. */
export const excludedEnv = (files: readonly string[]): Record<string, string> => ({ [variable]: JSON.stringify(files) });

/** The files that do not run, in the test runner's own process. */
export const excludedFiles = (): string[] => JSON.parse(process.env[variable] ?? '[]') as string[];

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

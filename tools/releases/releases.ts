// Earlier builds of kf: which commits they are, their files, and the installed program of each in the cache.
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';

import { cacheFolder } from '../cluster/cache.ts';
import { run, tryRun } from '../cluster/process.ts';
import { withLock } from '../cluster/state.ts';

/** An earlier build of kf from which an upgrade must work. */
export interface Release {
  name: string;
  /** What git calls it: a commit, or a tag. */
  commit: string;
  /** Of the commit. */
  date: string;
}

const file = join(import.meta.dirname, 'releases.json');
const repository = join(import.meta.dirname, '..', '..');

/** The earlier builds, the oldest first. */
export function earlierReleases(): Release[] {
  return JSON.parse(readFileSync(file, 'utf8')) as Release[];
}

/**
 * The builds whose upgrade each run tests: the last release, which is what people have, and the newest build, which has the most of the present one.
 *
 * @param builds the oldest first
 */
export function latestOf(builds: readonly Release[]): Release[] {
  const release = builds.findLast(({ name }) => /^\d+\.\d+\.\d+$/.test(name));
  const newest = builds.at(-1);
  return [...new Set([release, newest])].filter((build) => build !== undefined);
}

/** @throws Error saying how a clone without its history gets it */
async function commitOf({ name, commit }: Release, folder = repository): Promise<string> {
  const found = await tryRun('git', ['rev-parse', '--verify', '--quiet', `${commit}^{commit}`], { cwd: folder });
  if (found.code === 0) return found.stdout.trim();
  const shallow = await tryRun('git', ['rev-parse', '--is-shallow-repository'], { cwd: folder });
  const why =
    shallow.code !== 0
      ? `${folder} is no clone of kf's repository: clone it with git.`
      : shallow.stdout.trim() === 'true'
        ? 'This clone has no history. Get it with: git fetch --unshallow --tags'
        : 'Get it with: git fetch --tags origin';
  throw new Error(`The earlier build ${name} of kf needs the commit ${commit} (${file}), which is not here. ${why}`);
}

/** The text of each file below a folder, as the release had it. @throws Error when the clone lacks the commit */
export async function filesOfRelease(release: Release, folder: string, root = repository): Promise<Record<string, string>> {
  const commit = await commitOf(release, root);
  const list = await run('git', ['ls-tree', '-r', '--name-only', commit, folder], { cwd: root });
  const names = list.split('\n').filter((name) => name !== '');
  const texts = await Promise.all(names.map((name) => run('git', ['show', `${commit}:${name}`], { cwd: root })));
  return Object.fromEntries(names.map((name, index) => [name, texts[index] ?? '']));
}

/** npm as it was found when this run began, with the present Node. */
function npm(args: string[], cwd: string): Promise<string> {
  const cli = process.env['npm_execpath'];
  return cli?.endsWith('.js') === true ? run(process.execPath, [cli, ...args], { cwd }) : run('npm', args, { cwd });
}

/** Builds the release in a folder of its own as its users would: from its sources, with the dependencies that its lockfile names. */
async function build(commit: string, prefix: string): Promise<void> {
  const source = `${prefix}.source`;
  const archive = `${prefix}.tar`;
  for (const path of [source, prefix]) {
    rmSync(path, { recursive: true, force: true });
    mkdirSync(path, { recursive: true });
  }
  try {
    await run('git', ['archive', '--output', archive, commit], { cwd: repository });
    await run('tar', ['-xf', archive, '-C', source]);
    // `prepack` installs the dependencies of the lockfile (`npm ci`) and bundles.
    const printed = await npm(['pack', '--pack-destination', source, '--json'], source);
    const [packed] = JSON.parse(printed.slice(printed.indexOf('['))) as { filename: string }[];
    if (packed === undefined) throw new Error(`npm pack of ${commit} named no file: ${printed}`);
    await npm(['install', '-g', '--prefix', prefix, '--offline', '--ignore-scripts', join(source, packed.filename)], source);
  } finally {
    for (const path of [source, archive]) rmSync(path, { recursive: true, force: true });
  }
}

/** Returns the path of the installed `kf` of an earlier build, and builds it if the cache lacks it: that takes about half a minute. */
export async function installedRelease(release: Release, log: (line: string) => void): Promise<string> {
  const commit = await commitOf(release);
  const folder = join(cacheFolder(), 'releases', commit.slice(0, 12));
  const program = join(folder, 'bin', 'kf');
  if (existsSync(program)) return program;
  await withLock(
    'releases',
    async () => {
      // Another process has built it in the meantime.
      if (existsSync(program)) return;
      const started = Date.now();
      log(`building the earlier kf ${release.name} of ${release.date} (${commit.slice(0, 8)})`);
      const temporary = `${folder}.${String(process.pid)}.tmp`;
      try {
        await build(commit, temporary);
        renameSync(temporary, folder);
      } finally {
        rmSync(temporary, { recursive: true, force: true });
      }
      log(`kf ${release.name}: built in ${String(Math.round((Date.now() - started) / 1000))} s`);
    },
    cacheFolder(),
  );
  return program;
}

/** Builds every earlier kf that the cache lacks. */
export async function prepareReleases(log: (line: string) => void): Promise<void> {
  for (const release of earlierReleases()) await installedRelease(release, log);
}

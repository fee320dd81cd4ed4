// The earlier builds of kf: their commits are in the history, and a clone without it says how to get it.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { earlierReleases, filesOfRelease, latestOf, type Release } from '../../../tools/releases/releases.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'kf-releases-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const git = (cwd: string, ...args: string[]): string =>
  execFileSync('git', ['-c', 'user.name=kf', '-c', 'user.email=kf@example.com', ...args], { cwd, encoding: 'utf8' }).trim();

function repository(): { origin: string; first: string } {
  const origin = path.join(folder, 'origin');
  git(folder, 'init', '--quiet', origin);
  for (const text of ['one', 'two']) {
    writeFileSync(path.join(origin, 'file'), text);
    git(origin, 'add', 'file');
    git(origin, 'commit', '--quiet', '--message', text);
  }
  return { origin, first: git(origin, 'rev-parse', 'HEAD~1') };
}

test('a release is read from the history, and a clone that lacks it says how to get it', async () => {
  const { origin, first } = repository();
  const release = { name: '9.9.9', commit: first, date: '2026-01-01' };
  expect(await filesOfRelease(release, 'file', origin)).toEqual({ file: 'one' });

  const shallow = path.join(folder, 'shallow');
  git(folder, 'clone', '--quiet', '--depth', '1', pathToFileURL(origin).href, shallow);
  await expect(filesOfRelease(release, 'file', shallow)).rejects.toThrow(
    /9\.9\.9.*has no history. Get it with: git fetch --unshallow --tags$/,
  );

  const unknown = { ...release, commit: 'v9.9.9' };
  await expect(filesOfRelease(unknown, 'file', origin)).rejects.toThrow(/Get it with: git fetch --tags origin$/);
  await expect(filesOfRelease(unknown, 'file', folder)).rejects.toThrow(/is no clone of kf's repository/);
});

test('each earlier build names a commit of its date, the oldest first', async () => {
  const releases = earlierReleases();
  for (const release of releases) {
    expect(git('.', 'show', '--no-patch', '--format=%cs', release.commit)).toBe(release.date);
    expect(Object.keys(await filesOfRelease(release, 'manifests/crds'))).toContain('manifests/crds/cfapps.yaml');
  }
  expect(releases.map(({ date }) => date)).toEqual(releases.map(({ date }) => date).toSorted());
});

test('an upgrade is tested from the last release and from the newest build, whatever else there is', () => {
  const named = (...names: string[]): Release[] => names.map((name) => ({ name, commit: name, date: '2026-01-01' }));
  const latest = (...names: string[]): string[] => latestOf(named(...names)).map(({ name }) => name);
  expect(latest('0.1.0', 'before-deployments')).toEqual(['0.1.0', 'before-deployments']);
  expect(latest('0.1.0', 'before-deployments', '0.2.0')).toEqual(['0.2.0']);
  expect(latest('0.1.0', '0.2.0', 'one', 'two')).toEqual(['0.2.0', 'two']);
  expect(latest('one')).toEqual(['one']);
  expect(latestOf(earlierReleases())).toContainEqual(earlierReleases().at(-1));
});

// Where a push comes from: git and the variables of CI systems.

import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readOrigin } from '../../../src/lib/source/origin.ts';

const sha = 'a'.repeat(40);
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'kf-origin-'));
  mkdirSync(path.join(folder, 'app'));
  writeFileSync(path.join(folder, 'app', 'server.js'), '1');
});
afterEach(() => rmSync(folder, { recursive: true }));

const git = (...argv: string[]): string =>
  execFileSync('git', ['-C', folder, '-c', 'user.name=alice', '-c', 'user.email=alice@example.com', ...argv], { encoding: 'utf8' }).trim();

function commit(): string {
  git('init', '-q');
  git('add', '.');
  git('commit', '-q', '-m', 'x');
  git('tag', 'v1');
  return git('rev-parse', 'HEAD');
}

describe('the commit', () => {
  it('is the one that is checked out around the source, dirty when files differ', async () => {
    const head = commit();
    expect(await readOrigin(path.join(folder, 'app'), {})).toEqual({ commit: head });
    expect(await readOrigin(path.join(folder, 'app', 'server.js'), {})).toEqual({ commit: head });
    writeFileSync(path.join(folder, 'app', 'server.js'), '2');
    expect(await readOrigin(folder, { GITHUB_SHA: sha })).toEqual({ commit: `${head}-dirty` });
  });

  it('is none outside git, before a first commit and for an image', async () => {
    expect(await readOrigin(folder, {})).toEqual({});
    git('init', '-q');
    expect(await readOrigin(folder, {})).toEqual({});
    expect(await readOrigin(undefined, {})).toEqual({});
  });
});

describe('the run', () => {
  const runs: [string, Record<string, string>, string][] = [
    [
      'GitHub Actions',
      { GITHUB_SHA: sha, GITHUB_SERVER_URL: 'https://git.example.com', GITHUB_REPOSITORY: 'bank/shop', GITHUB_RUN_ID: '12' },
      'https://git.example.com/bank/shop/actions/runs/12',
    ],
    ['GitLab', { CI_COMMIT_SHA: sha, CI_JOB_URL: 'https://ci.example.com/jobs/1', CI_PIPELINE_URL: 'x' }, 'https://ci.example.com/jobs/1'],
    [
      'Azure Pipelines',
      { BUILD_SOURCEVERSION: sha, SYSTEM_COLLECTIONURI: 'https://ci.example.com/bank/', SYSTEM_TEAMPROJECT: 'shop', BUILD_BUILDID: '7' },
      'https://ci.example.com/bank/shop/_build/results?buildId=7',
    ],
    ['Jenkins', { GIT_COMMIT: sha, JENKINS_URL: 'https://ci.example.com', BUILD_URL: 'https://ci.example.com/job/1/' }, 'https://ci.example.com/job/1/'], // prettier-ignore
  ];
  it.each(runs)('of %s is read from its variables, with the commit', async (_name, env, ciRun) => {
    expect(await readOrigin(undefined, env)).toEqual({ commit: sha, ciRun });
  });

  it('is left out when a variable is missing, or when it is no URL or too long', async () => {
    expect(await readOrigin(undefined, { GITHUB_SHA: sha, GITHUB_RUN_ID: '12' })).toEqual({});
    expect(await readOrigin(undefined, { CI_COMMIT_SHA: 'HEAD', CI_JOB_URL: 'no url' })).toEqual({});
    expect(await readOrigin(undefined, { CI_JOB_URL: `https://ci.example.com/${'x'.repeat(400)}` })).toEqual({});
  });
});

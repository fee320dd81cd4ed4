// Where a push comes from: the git commit of its folder, and the run of a CI system. Shown by `kf releases`.

import { execFile } from 'node:child_process';
import { stat } from 'node:fs/promises';
import path from 'node:path';
import { defined } from '../defined.ts';

type Env = Readonly<Record<string, string | undefined>>;

export interface Origin {
  /** The commit's hash; ends with `-dirty` when files differ from it. */
  commit?: string;
  /** URL of the run. */
  ciRun?: string;
}

/** The longest URL of a run that is recorded, in characters. */
const longestRun = 400;
const gitTimeoutMs = 2000;

/** The variables of CI systems, as their manuals name them. */
const systems: readonly { commit: string; run: (env: Env) => string | undefined }[] = [
  { commit: 'GITHUB_SHA', run: (env) => joined(env, ['GITHUB_SERVER_URL', '/', 'GITHUB_REPOSITORY', '/actions/runs/', 'GITHUB_RUN_ID']) },
  { commit: 'CI_COMMIT_SHA', run: ({ CI_JOB_URL: job, CI_PIPELINE_URL: pipeline }) => job ?? pipeline },
  {
    commit: 'BUILD_SOURCEVERSION',
    run: (env) => joined(env, ['SYSTEM_COLLECTIONURI', '', 'SYSTEM_TEAMPROJECT', '/_build/results?buildId=', 'BUILD_BUILDID']),
  },
  { commit: 'CIRCLE_SHA1', run: ({ CIRCLE_BUILD_URL: url }) => url },
  { commit: 'BUILDKITE_COMMIT', run: ({ BUILDKITE_BUILD_URL: url }) => url },
  { commit: 'GIT_COMMIT', run: ({ JENKINS_URL: server, BUILD_URL: url }) => (server === undefined ? undefined : url) },
];

/** Variables and texts in turn; undefined when a variable is not set. */
function joined(env: Env, parts: readonly string[]): string | undefined {
  const values = parts.map((part, index) => (index % 2 === 0 ? env[part] : part));
  return values.some((value, index) => index % 2 === 0 && (value ?? '') === '') ? undefined : values.join('');
}

const isCommit = (text: string): boolean => /^[0-9a-f]{40,64}(-dirty)?$/.test(text);

/** The commit that is checked out where the folder or archive is; undefined where there is none, or no git. */
async function commitOf(source: string): Promise<string | undefined> {
  const folder = (await stat(source)).isDirectory() ? source : path.dirname(source);
  const argv = ['-C', folder, '-c', 'core.fsmonitor=false', 'describe', '--always', '--dirty', '--abbrev=64', '--exclude=*'];
  return new Promise((resolve) => {
    execFile('git', argv, { timeout: gitTimeoutMs }, (error, stdout) => {
      const text = stdout.trim();
      resolve(error === null && isCommit(text) ? text : undefined);
    });
  });
}

/** @param source path of the folder or archive; left out for an image */
export async function readOrigin(source: string | undefined, env: Env): Promise<Origin> {
  const system = systems.map(({ commit, run }) => ({ commit: env[commit], run: run(env) })).find(({ run }) => run !== undefined);
  const found = source === undefined ? undefined : await commitOf(source);
  const commit = found ?? (system?.commit !== undefined && isCommit(system.commit) ? system.commit : undefined);
  const ciRun = system?.run !== undefined && system.run.length <= longestRun && URL.canParse(system.run) ? system.run : undefined;
  return defined({ commit, ciRun });
}

// Runs the scripts of test/fixtures/scripts unchanged: bash, with a `cf` on the PATH that is kf.

import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parse } from 'yaml';
import { scriptsOf } from '../../src/lib/migration/scripts.ts';
import { ringEnv } from './kf.ts';

export const scriptsFolder = path.resolve('test/fixtures/scripts');

export interface ScriptRun {
  code: number;
  stdout: string;
  stderr: string;
}

interface GithubJob {
  steps: { run?: string }[];
}
interface GitlabJob {
  before_script?: string[];
  script: string[];
}

/** What a runner of GitHub or GitLab gives to the shell for one job. */
function jobOf(source: string, job: string): string {
  const file = parse(source, { merge: true }) as { jobs?: Record<string, GithubJob>; variables?: Record<string, string> };
  const github = file.jobs?.[job];
  if (github !== undefined) return github.steps.flatMap(({ run }) => run ?? []).join('\n');
  const { before_script: before = [], script } = (file as unknown as Record<string, GitlabJob>)[job] ?? { script: [] };
  const variables = Object.entries(file.variables ?? {}).map(([name, value]) => `export ${name}="${value}"`);
  return [...variables, ...before, ...script].join('\n');
}

/** `${{ secrets.NAME }}` of GitHub is a variable of the pipeline. */
const withSecrets = (text: string): string => text.replace(/\$\{\{ *secrets\.(\w+) *\}\}/g, (_, name: string) => `$${name}`);

async function textOf(file: string, job: string | undefined): Promise<string> {
  const source = await readFile(path.join(scriptsFolder, file), 'utf8');
  if (job !== undefined) return withSecrets(jobOf(source, job));
  if (!file.startsWith('Jenkinsfile')) return source;
  // What Groovy hands over: in its strings a dollar is written with a backslash.
  return scriptsOf(file, source)
    .scripts.map(({ text }) => text.replaceAll('\\$', '$'))
    .join('\n');
}

/** One pipeline's machine: a working folder, a home with its own target, and its variables. */
export class Pipeline {
  readonly folder: string;
  readonly #env: NodeJS.ProcessEnv;

  private constructor(folder: string, env: NodeJS.ProcessEnv) {
    this.folder = folder;
    this.#env = env;
  }

  /** @param variables the settings of the pipeline, as CI systems have them */
  static async create(variables: Record<string, string>): Promise<Pipeline> {
    const root = await mkdtemp(path.join(tmpdir(), 'kf-pipeline-'));
    const [bin, home, folder] = ['bin', 'home', 'work'].map((name) => path.join(root, name)) as [string, string, string];
    await Promise.all([bin, home, folder].map((one) => mkdir(one)));
    await symlink(ringEnv('KF_TEST_BIN'), path.join(bin, 'cf'));
    // Requests to apps arrive at the gateway of the ring's cluster, wherever it listens.
    const ports = { 80: process.env['KF_CLUSTER_HTTP_PORT'] ?? '80', 443: process.env['KF_CLUSTER_HTTPS_PORT'] ?? '443' };
    const reach = Object.entries(ports).map(([port, at]) => `connect-to = ":${port}:127.0.0.1:${at}"\n`);
    await writeFile(path.join(home, '.curlrc'), reach.join(''));
    const { PATH = '' } = process.env;
    const own = { PATH: `${bin}:${PATH}`, HOME: home, CF_HOME: home, LANG: 'C.UTF-8', RUNNER_TEMP: home };
    return new Pipeline(folder, { ...own, ...variables });
  }

  remove(): Promise<void> {
    return rm(path.dirname(this.folder), { recursive: true, force: true });
  }

  async write(name: string, text: string): Promise<void> {
    const file = path.join(this.folder, name);
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(file, text);
  }

  /** Runs a script, or a job of a CI file, which ends at the first failure. */
  async run(file: string, options: { args?: string[]; job?: string; env?: Record<string, string> } = {}): Promise<ScriptRun> {
    const text = await textOf(file, options.job);
    const isScript = text.startsWith('#!');
    const start = isScript ? [path.join(scriptsFolder, file)] : ['-eo', 'pipefail', '-c', text];
    return this.#bash([...start, ...(options.args ?? [])], options.env);
  }

  /** Runs a line of a shell. */
  shell(line: string): Promise<ScriptRun> {
    return this.#bash(['-o', 'pipefail', '-c', line]);
  }

  /** Runs commands that are no script of a fixture: what was there before. */
  async prepare(commands: string): Promise<void> {
    const ran = await this.#bash(['-euo', 'pipefail', '-c', commands]);
    if (ran.code !== 0) throw new Error(`${commands}\nended with ${ran.code}\n${ran.stdout}\n${ran.stderr}`);
  }

  #bash(args: string[], env: Record<string, string> = {}): Promise<ScriptRun> {
    return new Promise((resolve) => {
      const options = { cwd: this.folder, env: { ...this.#env, ...env }, timeout: 400_000, maxBuffer: 16 * 1024 * 1024 };
      const child = execFile('bash', args, options, (error, stdout, stderr) => {
        resolve({ code: error === null ? 0 : typeof error.code === 'number' ? error.code : 255, stdout, stderr });
      });
      // As in CI: nobody answers a question.
      child.stdin?.end();
    });
  }
}

// Runs the installed kf as a user would: a child process in an empty folder, with a home that nobody, not even root, can write.

import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { setPriority, tmpdir } from 'node:os';
import path from 'node:path';
import { feed } from './feed.ts';
import { reportIfSlow } from './figures.ts';
import { tracked } from './interruption.ts';

export interface Ran {
  code: number;
  stdout: string;
  stderr: string;
  milliseconds: number;
}

export interface KfOptions {
  env?: Record<string, string>;
  cwd?: string;
  /** Given to the command through a pipe. */
  stdin?: string;
  /** Ends the command after this time; otherwise the test fails by its own timeout. */
  timeoutMs?: number;
  /** Of the process, as `nice` has it: 19 leaves the processor to everything else, as a command on another machine does. */
  niceness?: number;
}

/** A variable of the ring. @throws Error when the ring was not started by its runner: a cluster that was not named is never touched */
export function ringEnv(name: string): string {
  const value = process.env[name];
  if (value === undefined || value === '') throw new Error(`${name} is not set: run this ring by \`npm run test:cluster\`.`);
  return value;
}

/** More than any command prints. */
const mostScreen = 4 * 1024 * 1024;

export class Kf {
  readonly #base: Record<string, string>;
  readonly #home: string;
  readonly #cwd: string;
  readonly #program: string | undefined;

  private constructor(home: string, cwd: string, base: Record<string, string>, program?: string) {
    this.#home = home;
    this.#cwd = cwd;
    this.#base = base;
    this.#program = program;
  }

  /** A user with a home that cannot be written. Developers and auditors work in the ring's space. */
  static async create(who: 'developer' | 'auditor' | 'admin' = 'developer', extra: Record<string, string> = {}): Promise<Kf> {
    const files = { developer: 'KF_TEST_DEVELOPER', auditor: 'KF_TEST_AUDITOR', admin: 'KF_TEST_KUBECONFIG' };
    return Kf.as(ringEnv(files[who]), { KF_ORG: ringEnv('KF_TEST_ORG'), KF_SPACE: ringEnv('KF_TEST_SPACE'), ...extra });
  }

  /** The user of a kubeconfig; `extra` is the environment, including the target. @param program another kf than the ring's */
  static async as(kubeconfig: string, extra: Record<string, string>, program?: string): Promise<Kf> {
    const env = { KUBECONFIG: kubeconfig, ...extra };
    const folder = await mkdtemp(path.join(tmpdir(), 'kf-home-'));
    const cwd = await mkdtemp(path.join(tmpdir(), 'kf-cwd-'));
    // A file: nothing can be created below it, not even by root, for whom a folder's mode has no effect.
    const home = path.join(folder, 'home');
    await writeFile(home, '');
    return new Kf(home, cwd, env, program);
  }

  async remove(): Promise<void> {
    await rm(path.dirname(this.#home), { recursive: true, force: true });
    await rm(this.#cwd, { recursive: true, force: true });
  }

  /** The environment of a command: only the PATH and the cluster from the test runner's. */
  #env(extra: Record<string, string> = {}): NodeJS.ProcessEnv {
    const { PATH } = process.env;
    return { PATH, HOME: this.#home, LANG: 'C.UTF-8', ...this.#base, ...extra };
  }

  #bin(): string {
    return this.#program ?? ringEnv('KF_TEST_BIN');
  }

  run(args: string[], options: KfOptions = {}): Promise<Ran> {
    const started = performance.now();
    const timeout = options.timeoutMs ?? 240_000;
    return new Promise((resolve) => {
      const child = execFile(
        this.#bin(),
        args,
        { env: this.#env(options.env), cwd: options.cwd ?? this.#cwd, timeout, maxBuffer: 64 * 1024 * 1024 },
        (error, stdout, stderr) => {
          const code = error === null ? 0 : typeof error.code === 'number' ? error.code : 255;
          const milliseconds = performance.now() - started;
          reportIfSlow(`kf ${args.join(' ')}`, milliseconds);
          resolve({ code, stdout, stderr, milliseconds });
        },
      );
      tracked(child);
      if (options.niceness !== undefined && child.pid !== undefined) setPriority(child.pid, options.niceness);
      feed(child, options.stdin);
    });
  }

  /** Runs a command that must succeed. */
  async ok(...args: string[]): Promise<Ran> {
    const ran = await this.run(args);
    if (ran.code !== 0)
      throw new Error(`kf ${args.join(' ')} ended with ${ran.code}\n--- stdout\n${ran.stdout}\n--- stderr\n${ran.stderr}`);
    return ran;
  }

  /** The result of a successful `--json` run: stdout must be one document. */
  async json<T>(...args: string[]): Promise<T> {
    const { stdout } = await this.ok(...args, '--json');
    return (JSON.parse(stdout) as { result: T }).result;
  }

  /**
   * Runs a command on its own terminal, made by `script`, which every Debian has, and returns everything that a user would see, including control
   * characters. `columns` 0: a terminal without a size.
   */
  onTerminal(args: string[], columns: number): Promise<{ code: number; screen: string }> {
    const kf = [this.#bin(), ...args].map((word) => `'${word.replaceAll("'", String.raw`'\''`)}'`).join(' ');
    const command = `stty rows 40 cols ${columns}; exec ${kf}`;
    const env = { ...this.#env(), TERM: 'xterm-256color' };
    const child = spawn('script', ['-qec', command, '/dev/null'], { env, cwd: this.#cwd, stdio: ['ignore', 'pipe', 'inherit'] });
    let screen = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      screen += text;
      if (screen.length > mostScreen) child.kill('SIGKILL');
    });
    return new Promise((resolve, reject) => {
      child.on('error', reject);
      child.on('close', (code) => resolve({ code: code ?? 255, screen }));
    });
  }

  /** Starts a command and leaves it running. */
  start(args: string[], options: KfOptions = {}): ChildProcess {
    return spawn(this.#bin(), args, {
      env: this.#env(options.env),
      cwd: options.cwd ?? this.#cwd,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  }
}

/** kubectl with the ring's admin rights: the independent client for assertions. */
export function kubectl(...args: string[]): Promise<string> {
  const started = performance.now();
  return new Promise((resolve, reject) => {
    const env = { ...process.env, KUBECONFIG: ringEnv('KF_TEST_KUBECONFIG') };
    execFile('kubectl', args, { env, maxBuffer: 64 * 1024 * 1024 }, (error, stdout, stderr) => {
      reportIfSlow(`kubectl ${args.join(' ')}`, performance.now() - started);
      if (error === null) resolve(stdout);
      else reject(new Error(`kubectl ${args.join(' ')}: ${stderr}`));
    });
  });
}

export async function kubectlJson<T>(...args: string[]): Promise<T> {
  return JSON.parse(await kubectl(...args, '-o', 'json')) as T;
}

// Runs the bundled kf as a child process with its own home, and with nothing of this machine except the PATH.

import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { feed } from './feed.ts';

export interface CliRun {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
  milliseconds: number;
}

export interface CliOptions {
  env?: Record<string, string>;
  stdin?: string;
  /** Runs in this folder, which is created, and removed when the shell is in it. */
  removedFolder?: string;
  /** A script of bash that runs the command as `"$@"`. */
  script?: string;
  /** Sent as soon as this text has appeared on stdout or stderr. */
  kill?: { after: string; signal: NodeJS.Signals };
  /** Gets the process as soon as it runs. */
  started?: (child: ChildProcess) => void;
}

const bundler = fileURLToPath(new URL('../../tools/bundle.mjs', import.meta.url));

interface TestBundle {
  folder: string;
  program: string;
  meta: string;
  remove: () => void;
}

/** The variable with the folder of a bundle that all files of a ring share. */
export const sharedBundle = 'KF_TEST_BUNDLE';

/** A new bundle of the CLI in its own folder, or the one of the ring. Call `remove` after the tests. */
export function bundleForTests(): TestBundle {
  const shared = process.env[sharedBundle];
  const folder = shared ?? mkdtempSync(path.join(tmpdir(), 'kf-bundle-'));
  if (shared === undefined) execFileSync(process.execPath, [bundler, '--cli', folder]);
  const remove = (): void => {
    if (shared === undefined) rmSync(folder, { recursive: true, force: true });
  };
  return { folder, program: path.join(folder, 'bin', 'run.js'), meta: path.join(folder, 'meta.json'), remove };
}

function wrapped(command: readonly string[], { removedFolder, script }: CliOptions): readonly string[] {
  if (script !== undefined) return ['bash', '-c', script, 'bash', ...command];
  return removedFolder === undefined ? command : inRemoved(removedFolder, command);
}

const inRemoved = (folder: string, command: readonly string[]): string[] => [
  ...['sh', '-c', 'mkdir "$0" && cd "$0" && rmdir "$0" && exec "$@"', folder],
  ...command,
];

/** One user: a home folder, a kubeconfig, and the saved target. */
export class Cli {
  readonly home = mkdtempSync(path.join(tmpdir(), 'kf-cli-'));
  /** The environment of this user's commands, without PATH and home. */
  readonly env: Readonly<Record<string, string>>;
  readonly #program: string;

  constructor(program: string, env: Record<string, string> = {}) {
    this.env = env;
    this.#program = program;
  }

  remove(): void {
    rmSync(this.home, { recursive: true, force: true });
  }

  get stateFile(): string {
    return path.join(this.home, '.cf', 'config.json');
  }

  state(): Record<string, unknown> {
    return JSON.parse(readFileSync(this.stateFile, 'utf8')) as Record<string, unknown>;
  }

  run(args: string[], options: CliOptions = {}): Promise<CliRun> {
    const started = performance.now();
    const env = { PATH: process.env['PATH'] ?? '', HOME: this.home, CF_HOME: this.home, TZ: 'UTC', ...this.env, ...options.env };
    const command = [process.execPath, this.#program, ...args];
    const [file = '', ...rest] = wrapped(command, options);
    const child = spawn(file, rest, { env, cwd: this.home, stdio: ['pipe', 'pipe', 'pipe'] });
    options.started?.(child);
    const out = { stdout: '', stderr: '' };
    let isKilled = false;
    for (const stream of ['stdout', 'stderr'] as const) {
      child[stream].setEncoding('utf8').on('data', (text: string) => {
        out[stream] += text;
        if (options.kill === undefined || isKilled || !(out.stdout + out.stderr).includes(options.kill.after)) return;
        isKilled = true;
        child.kill(options.kill.signal);
      });
    }
    feed(child, options.stdin);
    return new Promise((resolve) => {
      child.once('close', (code, signal) => resolve({ code, signal, ...out, milliseconds: performance.now() - started }));
    });
  }
}

// Child processes: run until the end, start in the background, check whether one still runs, end it.
import { spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

/** A process that cannot be confused with a later one of the same pid, because the kernel's start time (clock ticks since boot) is stored too. */
export interface ProcessMark {
  pid: number;
  startTime: string;
}

export interface RunOptions {
  cwd?: string;
  env?: NodeJS.ProcessEnv;
  input?: string;
}

export interface RunResult {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** Runs a program until it ends and returns its output, whatever its exit code. Throws only if it cannot be started. */
export function tryRun(command: string, args: string[], options: RunOptions = {}): Promise<RunResult> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: options.cwd, env: options.env ?? process.env, stdio: 'pipe' });
    const out: Buffer[] = [];
    const err: Buffer[] = [];
    child.stdout.on('data', (chunk: Buffer) => out.push(chunk));
    child.stderr.on('data', (chunk: Buffer) => err.push(chunk));
    child.on('error', reject);
    // A program that ends before it has read its input closes the pipe; its exit code is enough.
    child.stdin.on('error', () => undefined);
    child.stdin.end(options.input ?? '');
    child.on('close', (code) => {
      resolve({ code, stdout: Buffer.concat(out).toString(), stderr: Buffer.concat(err).toString() });
    });
  });
}

/** Runs a program until it ends and returns its stdout. Throws with the end of its stderr if it fails. */
export async function run(command: string, args: string[], options: RunOptions = {}): Promise<string> {
  const result = await tryRun(command, args, options);
  if (result.code === 0) return result.stdout;
  const tail = (result.stderr.trim() || result.stdout.trim()).split('\n').slice(-15).join('\n');
  throw new Error(`${[command, ...args].join(' ').slice(0, 300)} ended with ${String(result.code)}:\n${tail}`);
}

/** Starts a program in its own session, with its output appended to `log`, and returns its pid without waiting for it. */
export function startDetached(command: string, args: string[], log: string, env: NodeJS.ProcessEnv = process.env): number {
  const fd = openSync(log, 'a');
  try {
    const child = spawn(command, args, { detached: true, stdio: ['ignore', fd, fd], env });
    // Without a listener a failed start would end this process; the missing pid below reports it.
    child.on('error', () => undefined);
    child.unref();
    if (child.pid === undefined) throw new Error(`${command} could not be started.`);
    return child.pid;
  } finally {
    closeSync(fd);
  }
}

/** The identity of a running process; undefined if there is none, or only its zombie. */
export function markOf(pid: number): ProcessMark | undefined {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${String(pid)}/stat`, 'utf8');
  } catch {
    return undefined;
  }
  // The command name (field 2) may contain spaces and brackets: count from its end.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [state, startTime] = [fields[0], fields[19]];
  if (state === undefined || startTime === undefined || state === 'Z' || state === 'X') return undefined;
  return { pid, startTime };
}

/** Whether exactly this process still runs. */
export function isRunning(mark: ProcessMark | undefined): mark is ProcessMark {
  return mark !== undefined && markOf(mark.pid)?.startTime === mark.startTime;
}

/** Ends a process: SIGTERM, then SIGKILL after `graceMs`. Returns when it is gone. */
export async function endProcess(mark: ProcessMark | undefined, graceMs: number): Promise<void> {
  if (!isRunning(mark)) return;
  if (graceMs > 0) {
    sendSignal(mark, 'SIGTERM');
    if (await waitGone(mark, graceMs)) return;
  }
  sendSignal(mark, 'SIGKILL');
  if (!(await waitGone(mark, 15_000))) throw new Error(`Process ${String(mark.pid)} does not end, even after SIGKILL.`);
}

function sendSignal(mark: ProcessMark, signal: NodeJS.Signals): void {
  try {
    process.kill(mark.pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

async function waitGone(mark: ProcessMark, timeoutMs: number): Promise<boolean> {
  const end = Date.now() + timeoutMs;
  while (isRunning(mark)) {
    if (Date.now() > end) return false;
    await sleep(20);
  }
  return true;
}

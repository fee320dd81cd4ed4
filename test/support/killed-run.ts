// Runs kf against a scripted API server until it sends a chosen write, and kills it there, as `kill -9` does.

import type { ChildProcess } from 'node:child_process';
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import type { Call, ScriptedApiServer } from './apiserver.ts';
import type { Cli, CliRun } from './cli.ts';

/** Where a process dies. */
export interface Death {
  /** One of the names that {@link writesOf} gives. */
  write: string;
  /** Whether the write takes effect. Its answer is never read. */
  isDone: boolean;
}

interface Place {
  cli: Cli;
  server: ScriptedApiServer;
}

/** Of a command in this process, writes that are sent together arrive within this time, also on a machine with other work. */
const aloneMs = 50;
/** Of one in another process, each within this time after the one before. */
const togetherMs = 60;

const isWrite = ({ method, path }: Call): boolean => method !== 'GET' && method !== 'HEAD' && !/\/selfsubject\w*reviews$/.test(path);

function kindOf(path: string): string {
  const ofRegistry = /\/proxy\/v2\/.+\/(blobs|manifests)\//.exec(path)?.[1];
  if (ofRegistry !== undefined) return ofRegistry;
  const [, plural = '', subresource = ''] = /^\/apis?\/(?:[^/]+\/)?v[^/]+\/namespaces\/[^/]+\/([^/]+)(?:\/[^/]+(\/.+)?)?$/.exec(path) ?? [];
  return plural + subresource;
}

/** Names each write of a process: `POST cfroutes`, and the next one `POST cfroutes 2`. */
function namesOfWrites(): (call: Call) => string {
  const counts = new Map<string, number>();
  return (call) => {
    const name = `${call.method} ${kindOf(call.path)}`;
    const count = (counts.get(name) ?? 0) + 1;
    counts.set(name, count);
    return count === 1 ? name : `${name} ${count}`;
  };
}

/** The writes of a command. */
export interface Written {
  /** Their names, in their order. */
  all: string[];
  /** Those that were sent while another one had no answer yet. */
  together: ReadonlySet<string>;
}

/** What has been sent by then is there after the pause. */
async function untilSent(): Promise<void> {
  await sleep(aloneMs);
  await setImmediate();
}

/** Notes the writes to Kubernetes and to the registry while a command runs in this process. */
export async function writesOf(server: ScriptedApiServer, run: () => Promise<void>): Promise<Written> {
  const named = namesOfWrites();
  const all: string[] = [];
  const together = new Set<string>();
  const open = new Set<string>();
  server.around = async (call, answer) => {
    if (!isWrite(call)) return answer();
    const name = named(call);
    all.push(name);
    open.add(name);
    if (open.size > 1) for (const one of open) together.add(one);
    await untilSent();
    open.delete(name);
    return answer();
  };
  await run();
  server.around = (_call, answer) => answer();
  return { all, together };
}

/**
 * Runs a command and kills it at a write. One that is not done is the only one: what is sent at the same time takes effect. When one is done, nothing
 * that arrives after it is.
 * @throws Error when the command ends before
 */
export async function killedRun({ cli, server }: Place, argv: string[], { write, isDone }: Death): Promise<CliRun> {
  const named = namesOfWrites();
  const written = Promise.withResolvers<void>();
  let child: ChildProcess | undefined;
  let isDead = false;
  let timer: NodeJS.Timeout | undefined;
  const kill = (): Promise<void> => {
    isDead = true;
    const exited = new Promise<void>((resolve) => (child?.exitCode === null ? child.once('exit', () => resolve()) : resolve()));
    child?.kill('SIGKILL');
    return exited;
  };
  server.around = async (call, answer) => {
    if (isDead) return;
    if (!isWrite(call)) return answer();
    timer?.refresh();
    if (named(call) !== write) return answer();
    if (!isDone) return void (timer = setTimeout(() => void kill().then(written.resolve), togetherMs));
    await kill();
    await answer();
    written.resolve();
  };
  const run = await cli.run(argv, { started: (started) => (child = started) });
  if (run.signal !== 'SIGKILL') throw new Error(`kf ${argv.join(' ')} ended before ${write}: ${run.stdout}${run.stderr}`);
  await written.promise;
  server.around = (_call, answer) => answer();
  return run;
}

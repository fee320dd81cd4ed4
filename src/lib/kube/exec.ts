// Runs commands in containers, with input, output and exit code. Source: https://kubernetes.io/docs/reference/using-api/api-concepts/ and
// staging/src/k8s.io/client-go/tools/remotecommand

import type { Readable, Writable } from 'node:stream';
import { abortError } from '../wait.ts';
import { channelProtocols, type Channels } from './channels.ts';
import type { Cluster } from './cluster.ts';
import { KubeError, unreachableError, type StatusBody } from './errors.ts';
import { queryString } from './paths.ts';
import { defined } from '../defined.ts';

const channel = { stdin: 0, stdout: 1, stderr: 2, error: 3, resize: 4 } as const;

export interface AttachOptions {
  ns: string;
  pod: string;
  /** Default: the pod's only container, or its default one. */
  container?: string;
  /** Whether its input will be written to. */
  stdin?: boolean;
  /** With a terminal all output is on stdout. */
  tty?: boolean;
  signal?: AbortSignal;
  /** Interval between pings; default 20,000. */
  pingMs?: number;
}

export interface ExecOptions extends AttachOptions {
  command: readonly string[];
}

/** A connected program in a container. Its output has to be read: unread output blocks everything. */
export interface RemoteProcess {
  /** Undefined unless requested. */
  stdin: Writable | undefined;
  stdout: Readable;
  /** Empty with a terminal. */
  stderr: Readable;
  /** How the program ended. Rejects with a KubeError when it could not be started, or when the connection was cut and its end is unknown. */
  exitCode: Promise<number>;
  /** Reports a new size of the terminal. */
  resize: (size: { columns: number; rows: number }) => Promise<void>;
  /** Disconnects from the program. Kubernetes does not end the program for that. */
  close: () => void;
}

function pathOf(
  verb: 'exec' | 'attach',
  { ns, pod, container, stdin = false, tty = false }: AttachOptions,
  command: readonly string[],
): string {
  const query = queryString({ container, stdin, stdout: true, stderr: !tty, tty });
  const argv = command.map((word) => `&command=${encodeURIComponent(word)}`).join('');
  return `/api/v1/namespaces/${encodeURIComponent(ns)}/pods/${encodeURIComponent(pod)}/${verb}${query}${argv}`;
}

/** Runs a command in a container. @throws KubeError when that is forbidden, or when pod or container do not exist */
export function exec(cluster: Cluster, options: ExecOptions): Promise<RemoteProcess> {
  return connect(cluster, pathOf('exec', options, options.command), options);
}

/** Connects to the main program of a container. @throws KubeError as {@link exec} */
export function attach(cluster: Cluster, options: AttachOptions): Promise<RemoteProcess> {
  return connect(cluster, pathOf('attach', options, []), options);
}

async function connect(cluster: Cluster, path: string, { stdin = false, signal, pingMs }: AttachOptions): Promise<RemoteProcess> {
  const request = { path, protocols: channelProtocols, signal, ...defined({ pingMs }) };
  const channels = await cluster.openChannels(request);
  const [stdout, stderr] = [channels.readable(channel.stdout), channels.readable(channel.stderr)];
  const exitCode = exitOf(cluster, channels, signal);
  // A caller that disconnects may not await the exit code.
  exitCode.catch(() => undefined);
  return {
    stdin: stdin ? channels.writable(channel.stdin) : undefined,
    stdout,
    stderr,
    exitCode,
    resize: ({ columns, rows }) => channels.send(channel.resize, Buffer.from(JSON.stringify({ Width: columns, Height: rows }))),
    close: () => channels.close(),
  };
}

/** The Status on the error channel comes last. */
async function exitOf(cluster: Cluster, channels: Channels, signal: AbortSignal | undefined): Promise<number> {
  const chunks: Buffer[] = [];
  const status = channels.readable(channel.error);
  status.on('data', (chunk: Buffer) => chunks.push(chunk));
  // `closed` reports why the connection was cut.
  status.on('error', () => undefined);
  try {
    await channels.closed;
  } catch (error) {
    if (chunks.length === 0) throw error;
  }
  if (chunks.length > 0) return exitCodeOf(Buffer.concat(chunks).toString('utf8'));
  if (signal?.aborted === true) throw abortError(signal);
  const cause = Object.assign(new Error('the connection ended before the command did'), { code: 'ECONNRESET' });
  throw unreachableError(cause, cluster.identity);
}

/** @throws KubeError when the command could not be run */
function exitCodeOf(text: string): number {
  let status: StatusBody;
  try {
    status = JSON.parse(text) as StatusBody;
  } catch {
    // Some runtimes send a plain sentence here.
    status = { status: 'Failure', message: text };
  }
  if (status.status === 'Success') return 0;
  const code = status.details?.causes?.find(({ reason }) => reason === 'ExitCode')?.message;
  if (status.reason === 'NonZeroExitCode' && code !== undefined && /^\d+$/.test(code)) return Number(code);
  const message = `Error from Kubernetes: ${status.message ?? 'the command could not be run'}`;
  throw new KubeError('failed', message, { status: status.code ?? 500, reason: status.reason ?? '', body: status });
}

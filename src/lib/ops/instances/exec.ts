// Programs in the container of an instance, and connections to its ports.

import { Duplex } from 'node:stream';
import { text } from 'node:stream/consumers';
import { labels } from '../../api/group.ts';
import type { Stored } from '../../api/object.ts';
import { podType, type Pod } from '../../api/pod-kind.ts';
import type { CFApp } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import { exec, type RemoteProcess } from '../../kube/exec.ts';
import { portForward } from '../../kube/port-forward.ts';
import type { SpaceSession } from '../../session/session.ts';

const container = 'application';

/** A running instance of a process. */
export interface RunningInstance {
  app: string;
  pod: string;
  /** Its image was built by buildpacks, so it has their launcher. */
  hasLauncher: boolean;
  /** Ports of its own version, which can be an earlier one than the app's droplet. */
  ports: number[];
}

export interface InstanceKey {
  process: string;
  index: number;
}

const runs = ({ status }: Stored<Pod>): boolean =>
  status?.containerStatuses?.some(({ name, state }) => name === container && state?.running !== undefined) === true;
const isReady = ({ status }: Stored<Pod>): boolean =>
  status?.containerStatuses?.some(({ name, ready }) => name === container && ready) === true;

/** The instance with that index; during a rollout the one that serves, else the newer one. Undefined when none runs. */
export async function findRunning(session: SpaceSession, app: Stored<CFApp>, key: InstanceKey): Promise<RunningInstance | undefined> {
  const { cluster, space, signal } = session;
  const labelSelector = `${labels.appGuid}=${app.metadata.name},${labels.processType}=${key.process},${labels.podIndex}=${key.index}`;
  const { items } = await cluster.list(podType, { ns: space.guid, labelSelector, signal });
  const age = ({ metadata }: Stored<Pod>): string => metadata.creationTimestamp ?? '';
  const [pod] = items
    .filter((item) => item.metadata.deletionTimestamp === undefined && runs(item))
    .toSorted((a, b) => Number(isReady(b)) - Number(isReady(a)) || age(b).localeCompare(age(a)));
  if (pod === undefined) return undefined;
  const ports = pod.spec?.containers.find(({ name }) => name === container)?.ports?.map(({ containerPort }) => containerPort) ?? [];
  return { app: app.spec.displayName, pod: pod.metadata.name, hasLauncher: app.spec.lifecycle.type !== 'docker', ports };
}

/** Bash where the image has it, else its plain shell. */
const shell = 'command -v bash >/dev/null && exec bash; exec sh';

/** Tells a program on a terminal the kind of the user's one. */
const terminalKind = ({ tty, term }: RunOptions): string =>
  tty && term !== undefined && /^[\w.+-]+$/.test(term) ? `export TERM=${term}; ` : '';

export interface RunOptions {
  /** Text for a shell; without it an interactive shell is started. */
  command?: string | undefined;
  tty: boolean;
  term?: string | undefined;
  signal: AbortSignal;
}

/**
 * Runs a command or a shell with the environment of the app: in an image of buildpacks their launcher sets it.
 * @throws KfError `forbidden` without the right for it
 */
export async function runIn(session: SpaceSession, instance: RunningInstance, options: RunOptions): Promise<RemoteProcess> {
  const { cluster, space } = session;
  const script = `${terminalKind(options)}${options.command ?? shell}`;
  // The line end tells the launcher that a single word is a command, and not the name of a process type.
  const command = instance.hasLauncher ? ['/cnb/lifecycle/launcher', `${script}\n`] : ['/bin/sh', '-c', script];
  const place = { ns: space.guid, pod: instance.pod, container, tty: options.tty, stdin: true, signal: options.signal };
  const remote = await exec(cluster, { ...place, command });
  const exitCode = remote.exitCode.catch((error: unknown) => {
    throw lacksProgram(error) ? noShell(instance, error) : error;
  });
  exitCode.catch(() => undefined);
  return { ...remote, exitCode };
}

const lacksProgram = (error: unknown): boolean =>
  error instanceof KfError && /executable file not found|no such file or directory/.test(error.message);

const noShell = ({ app }: RunningInstance, cause: unknown): KfError =>
  new KfError('failed', `The image of app '${app}' has no shell, so no command can be run in it.`, { cause });

export interface Address {
  host: string;
  port: number;
}

const isInstanceItself = (host: string): boolean => /^(localhost|127(\.\d+){3}|::1)$/i.test(host);

/** Connects its input and output to a TCP port. Bash cannot end one direction alone, so the answer has a minute after the end of the input. */
const relay = [
  'exec 3<>"/dev/tcp/$0/$1" || exit 1',
  'cat <&3 & reader=$!',
  '{ cat >&3; sleep 60; kill $reader; } <&0 >/dev/null 2>&1 & writer=$!',
  'wait $reader; kill $writer',
].join('\n');

/**
 * Connects to an address as the instance sees it: its own ports through Kubernetes, all others through a program in the instance, since Kubernetes
 * forwards only to the instance itself. If the connection fails, the stream ends with a KfError.
 */
export async function connectFrom(
  session: SpaceSession,
  { pod, app }: RunningInstance,
  { host, port }: Address,
  signal: AbortSignal,
): Promise<Duplex> {
  const { cluster, space } = session;
  const place = { ns: space.guid, pod, signal };
  if (isInstanceItself(host)) return portForward(cluster, { ...place, port });
  const remote = await exec(cluster, { ...place, container, stdin: true, command: ['bash', '-c', relay, host, String(port)] });
  const said = text(remote.stderr).catch(() => '');
  const stream = Duplex.from({ readable: remote.stdout, writable: remote.stdin });
  stream.once('close', remote.close);
  remote.exitCode.then(
    async (code) =>
      code !== 0 && stream.destroy(new KfError('failed', `The instance cannot connect to ${host}:${port}: ${(await said).trim()}`)),
    (error: unknown) => stream.destroy(lacksProgram(error) ? noBash(app, host) : (error as Error)),
  );
  return stream;
}

const noBash = (app: string, host: string): KfError =>
  new KfError(
    'failed',
    `The image of app '${app}' has no bash, which forwards connections to ${host}. Ports of the instance itself work: localhost.`,
  );

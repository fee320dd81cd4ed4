// Waits until the controller reports the result of a change of an app (`kf/deploy-id`), and says why it did not start.

import { adviceOn } from '../../api/advice.ts';
import { hasServed, isBuilt, servesVersionBefore } from '../../api/app.ts';
import { awaitedIn } from '../../api/awaited.ts';
import { causeOfDeployment } from '../../api/causes.ts';
import { annotations, kinds, labels } from '../../api/group.ts';
import type { Stored } from '../../api/object.ts';
import { hasPaused, isCanceled } from '../../api/rollout.ts';
import type { CFApp, CFProcess, DeploymentStatus } from '../../api/types.generated.ts';
import { askedMs, minutesOf, timeoutFrom, twiceAsLong } from '../../cf/timeouts.ts';
import { KfError } from '../../errors.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { KubeError } from '../../kube/errors.ts';
import { exceedsWhole } from '../../kube/refusals.ts';
import { watchObject, type WatchUntilOptions } from '../../kube/watch-list.ts';
import type { LogEnds } from '../../kube/lines.ts';
import type { SpaceSession } from '../../session/session.ts';
import { appGone } from './changes.ts';
import { hasFirstInstance } from './first-instance.ts';
import { logOfFailure } from './last-lines.ts';
import { memoryAskedFor } from './process-memory.ts';
import { absentAfterMs, nobodyTookUp, unlessAbsent } from '../controller-wait.ts';
import type { OpEvent, Report } from '../../events.ts';

/** Added for the steps before and after the app's own time. */
const roundSeconds = 30;

export interface RolloutWaitOptions {
  timeoutMs: number;
  report: Report;
  signal: AbortSignal;
  /** Name of the program in the commands of hints. */
  bin?: string;
  /** How long the controller may take to report anything about the change; default {@link absentAfterMs}. */
  patienceMs?: number | undefined;
  /** `--no-wait`: the first new instance of web is enough. */
  firstInstance?: boolean;
  /** Replaces the watch, for a caller that follows the app already. */
  watch?: (check: (app: Stored<CFApp>) => RolloutOutcome | undefined, options: WatchUntilOptions) => Promise<RolloutOutcome>;
}

export interface RolloutOutcome {
  app: Stored<CFApp>;
  deployment: DeploymentStatus;
}

/**
 * How long to wait for a start, in milliseconds: CF_STARTUP_TIMEOUT if it is set; otherwise 5 minutes, or longer if the app's own time is longer.
 * @param ownSeconds the time that the app may take to become healthy
 */
export function startTimeoutMs(env: Readonly<Record<string, string | undefined>>, ownSeconds = 0): number {
  const standard = timeoutFrom({}, 'CF_STARTUP_TIMEOUT');
  return askedMs(env, 'CF_STARTUP_TIMEOUT') ?? Math.max(standard, (ownSeconds + roundSeconds) * 1000);
}

/** The longest time that one of the processes may take to become healthy, in seconds. */
export const ownSecondsOf = (processes: readonly Stored<CFProcess>[]): number =>
  Math.max(0, ...processes.map(({ spec }) => spec.healthCheck.data.timeoutSeconds));

/** {@link startTimeoutMs} of an app in the cluster: its slowest process counts. */
export async function startTimeoutOf(session: SpaceSession, app: Stored<CFApp>): Promise<number> {
  const { cluster, space, signal, env } = session;
  const asked = askedMs(env, 'CF_STARTUP_TIMEOUT');
  if (asked !== undefined) return asked;
  const { items } = await cluster.list(kinds.process, { ns: space.guid, labelSelector: `${labels.appGuid}=${app.metadata.name}`, signal });
  return startTimeoutMs(env, ownSecondsOf(items));
}

/** The controller's status of this change; undefined while the status is about an earlier one, or about the pause at an earlier step. */
function deploymentOf(app: Stored<CFApp>, deployId: string): DeploymentStatus | undefined {
  const deployment = app.status?.deployment;
  const isEarlierPause = deployment?.phase === 'Paused' && !hasPaused(app);
  return deployment?.id === deployId && !isEarlierPause ? deployment : undefined;
}

/** The error of a command about a change that a later one has replaced. */
export function overtaken(app: Stored<CFApp>): KfError {
  const by = app.metadata.annotations?.[annotations.changedBy] ?? 'somebody';
  return new KfError('conflict', `A later change of app '${app.spec.displayName}' (by ${by}) has overtaken this one.`, {
    hints: [`kf app ${app.spec.displayName}`],
    details: { reason: 'superseded', by },
  });
}

/** True for the error of {@link overtaken}. */
export const isOvertaken = (error: unknown): boolean => error instanceof KfError && error.details['reason'] === 'superseded';

/** In cf's words. */
function wasCanceled({ spec: { displayName } }: Stored<CFApp>, bin = 'kf'): KfError {
  return new KfError('conflict', 'Deployment has been canceled', { hints: [`${bin} app ${displayName}`], details: { reason: 'canceled' } });
}

const isUnderWay = ({ phase }: DeploymentStatus): boolean => phase === 'Pending' || phase === 'Starting';

function progressOf({ phase, message, generations = [] }: DeploymentStatus): OpEvent {
  const current = generations.filter((generation) => generation.state === 'Current');
  const ready = current.reduce((sum, generation) => sum + generation.ready, 0);
  const wanted = current.reduce((sum, generation) => sum + generation.instances, 0);
  if (message === undefined || message === '')
    return { type: phase === 'Pending' ? 'instances-pending' : 'instances-starting', ready, wanted };
  const reason = awaitedIn(message);
  return /\d of \d/.test(message) ? { type: 'waiting', reason } : { type: 'waiting', reason, ready, wanted };
}

/** Facts about the failure, for `error.details`. */
function facts(deployment: DeploymentStatus, log: LogEnds): Record<string, unknown> {
  const { id, reason, process, pod, container, exitCode, restarts } = deployment;
  const cause = deployment.phase === 'Failed' ? causeOfDeployment(deployment) : undefined;
  const head = log.head.length === 0 ? {} : { logHead: log.head, logOmitted: log.omitted };
  return { deployId: id, reason, cause, process, pod, container, exitCode, restarts, ...head, logTail: log.tail };
}

async function failure(cluster: Cluster, app: Stored<CFApp>, deployment: DeploymentStatus, options: RolloutWaitOptions): Promise<KfError> {
  const name = app.spec.displayName;
  const log = await logOfFailure(cluster, app, deployment, options.signal);
  const why = deployment.message ?? 'the cause is unknown.';
  const bin = options.bin ?? 'kf';
  const code = causeOfDeployment(deployment);
  const { process, container } = deployment;
  const memoryMB = await memoryAskedFor(cluster, app, code, process, options.signal);
  return new KfError(code === 'quota' ? 'quota' : 'start', `Start unsuccessful: ${why}`, {
    hints: [
      ...adviceOn(code, {
        bin,
        app: name,
        ns: app.metadata.namespace,
        process,
        container,
        memoryMB,
        isBuilt: isBuilt(app),
        isBesideServing: servesVersionBefore(app),
        exceedsQuota: exceedsWhole(why),
      }),
      `${bin} why ${name}`,
    ],
    details: facts(deployment, log),
  });
}

/** The last known state when the time was up. */
interface LastView {
  app: Stored<CFApp> | undefined;
  /** The last request to the API server failed. */
  outage: KubeError | undefined;
}

async function timedOut(cluster: Cluster, { app, outage }: LastView, deployId: string, options: RolloutWaitOptions): Promise<KfError> {
  const minutes = minutesOf(options.timeoutMs);
  const deployment = app === undefined ? undefined : deploymentOf(app, deployId);
  const name = app?.spec.displayName ?? '';
  const awaited = awaitedIn(deployment?.message ?? 'the controller to take up the change');
  if (outage !== undefined) {
    return new KfError(
      'timeout',
      `Start app timeout: after ${minutes} min the API server does not answer; the last that is known of app '${name}': ${awaited}`,
      { hints: [...outage.hints, `${options.bin ?? 'kf'} app ${name}`], cause: outage },
    );
  }
  const goesOn = app === undefined ? [] : whileGoingOn(app, options.bin);
  return new KfError('timeout', `Start app timeout: after ${minutes} min app '${name}' still waits for: ${awaited}`, {
    hints: [...goesOn, `${options.bin ?? 'kf'} logs ${name} --recent`, twiceAsLong('CF_STARTUP_TIMEOUT', options.timeoutMs)],
    details:
      app === undefined || deployment === undefined ? {} : facts(deployment, await logOfFailure(cluster, app, deployment, options.signal)),
  });
}

/** What to do about a change for whose end nobody waits any more. */
function whileGoingOn(app: Stored<CFApp>, bin = 'kf'): string[] {
  const { displayName } = app.spec;
  return [
    `The change of app '${displayName}' goes on in the cluster:`,
    `${bin} app ${displayName}`,
    ...(hasServed(app) ? [`${bin} cancel-deployment ${displayName}`] : []),
  ];
}

/** The usual advice after an interruption, to run the command again, would make a second change. */
export function interruptedRollout(app: Stored<CFApp>, bin = 'kf'): KfError {
  return new KfError('interrupted', 'Interrupted.', { exitCode: 130, hints: whileGoingOn(app, bin) });
}

/**
 * Waits for the end of the change with `deployId`: its app serves (or is stopped, if that was the change).
 * @param app as the API server returned it with the change
 * @throws KfError `start` (cause, last lines), `timeout` (what was awaited), `conflict` (overtaken), `accepted` (no controller)
 */
export async function waitForRollout(
  cluster: Cluster,
  app: Stored<CFApp>,
  deployId: string,
  options: RolloutWaitOptions,
): Promise<RolloutOutcome> {
  const { report, signal, timeoutMs } = options;
  const { namespace, name } = app.metadata;
  const last: LastView = { app, outage: undefined };
  const check = (seen: Stored<CFApp> | undefined, alive: () => void): RolloutOutcome | undefined => {
    Object.assign(last, { app: seen, outage: undefined });
    if (seen === undefined) throw appGone(app);
    if (seen.metadata.annotations?.[annotations.deployId] !== deployId) throw overtaken(seen);
    if (isCanceled(seen)) throw wasCanceled(seen, options.bin);
    const deployment = deploymentOf(seen, deployId);
    if (deployment === undefined) return undefined;
    alive();
    const enough = options.firstInstance === true && hasFirstInstance(deployment);
    if (!enough && isUnderWay(deployment)) {
      report(progressOf(deployment));
      return undefined;
    }
    return { app: seen, deployment };
  };
  const watch = (until: AbortSignal, alive: () => void): Promise<RolloutOutcome> => {
    const how: WatchUntilOptions = {
      timeoutMs,
      signal: until,
      describe: `app '${app.spec.displayName}' to start`,
      onInterruption: (error) => {
        last.outage = error;
        report({ type: 'api-server-away' });
      },
    };
    const target = { ns: namespace, name, known: app };
    const look = (seen: Stored<CFApp> | undefined): RolloutOutcome | undefined => check(seen, alive);
    return options.watch?.(look, how) ?? watchObject(cluster, kinds.app, target, look, how);
  };
  try {
    const verdict = await unlessAbsent({ cluster, signal }, watch, Math.min(options.patienceMs ?? absentAfterMs, timeoutMs));
    if (verdict === undefined) throw nobodyTookUp(`The change of app '${app.spec.displayName}'`);
    if (verdict.deployment.phase === 'Failed') throw await failure(cluster, verdict.app, verdict.deployment, options);
    return verdict;
  } catch (error) {
    if (signal.aborted) throw interruptedRollout(last.app ?? app, options.bin);
    if (error instanceof KfError && error.code === 'timeout') throw await timedOut(cluster, last, deployId, options);
    throw error;
  } finally {
    report({ type: 'done' });
  }
}

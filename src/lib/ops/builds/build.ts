// Waits for a build, shows its log while it runs, and reports why it failed.

import { adviceOn } from '../../api/advice.ts';
import { awaitedIn } from '../../api/awaited.ts';
import { causeOfFailedBuild, type CauseCode } from '../../api/causes.ts';
import { findCondition } from '../../api/conditions.ts';
import { conditionTypes, kinds, labels } from '../../api/group.ts';
import { linesIn } from '../../api/kept-lines.ts';
import type { Stored } from '../../api/object.ts';
import type { CFBuild } from '../../api/types.generated.ts';
import { minutesOf, timeoutFrom, twiceAsLong } from '../../cf/timeouts.ts';
import { defined } from '../../defined.ts';
import { KfError, messageOf } from '../../errors.ts';
import { watchObject } from '../../kube/watch-list.ts';
import { stagingLines } from '../../logs/format.ts';
import { inOrder } from '../../logs/in-order.ts';
import { followLogs } from '../../logs/stream.ts';
import type { SpaceSession } from '../../session/session.ts';
import { absentAfterMs, unlessAbsent } from '../controller-wait.ts';

/** The log of an ended pod is read to its end, but no longer than this. */
const logGraceMs = 3000;
/** When no buildpack matches, a builder's groups print some six lines each, and the first is as important as the last. */
const keptLines = 60;
/** The containers of a build run shortly after each other, and the lines of each arrive on a separate connection. */
const orderMs = 500;

const hasEnded = (build: Stored<CFBuild>): boolean => build.status?.state === 'STAGED' || build.status?.state === 'FAILED';

interface ShownLog {
  /** The last lines that were shown. */
  tail: readonly string[];
  /** Waits at most a moment for the remaining lines of the ended pod. */
  finish(): Promise<void>;
  /** All lines were shown, as far as known. */
  isWhole(): boolean;
}

export interface BuildWait {
  /** Rejects when a later push has taken over. Left out when the wait is so short that the next write notices that. */
  stillOurs?: Promise<never> | undefined;
  /** The command that repeats the build, for a hint. */
  again: string;
}

function nobodyBuilds(appName: string, again: string): KfError {
  return new KfError('accepted', `The build of app '${appName}' is asked for, but no controller has taken it up; the app is as it was.`, {
    hints: ['kubectl -n kf-system get deployment kf-controller', again],
  });
}

/** Nothing makes a build again: somebody, or the package that owned it, has taken it away. */
function deletedBuild(again: string): KfError {
  return new KfError('build', 'Error staging application: The build was deleted while it ran.', { hints: [again] });
}

/** Reports the build's log; a lost stream is a warning and never changes the result. */
function showLog(session: SpaceSession, buildGuid: string): ShownLog {
  const tail: string[] = [];
  let isLost = false;
  const selector = `${labels.buildWorkloadName}=${buildGuid}`;
  const stream = followLogs(session.cluster, { ns: session.space.guid, selector, withoutList: true, signal: session.signal });
  const shown = (async () => {
    for await (const entry of inOrder(stream, orderMs)) {
      for (const line of stagingLines(entry)) {
        session.report({ type: 'build-log', line });
        tail.push(line);
        if (tail.length > keptLines) tail.shift();
      }
    }
  })().catch((error: unknown) => {
    isLost = true;
    if (!session.signal.aborted) session.report({ type: 'build-log-lost', cause: messageOf(error) });
  });
  return {
    tail,
    finish: async () => {
      await stream.finish(logGraceMs);
      await shown;
    },
    isWhole: () => !isLost && stream.holes === 0,
  };
}

interface FailedBuild {
  appName: string;
  build: Stored<CFBuild>;
  shown: ShownLog | undefined;
  again: string;
}

/** The last lines, for `error.details`. Those that the controller keeps are the real ones where the shown log is not whole. */
function lastLines({ build, shown }: FailedBuild): Record<string, unknown> {
  const { head, omitted, tail } = linesIn(build.status?.failure ?? {});
  if (shown?.isWhole() !== false || tail.length === 0) return { logTail: shown?.tail ?? [] };
  return { logIncomplete: true, ...(head.length === 0 ? {} : { logHead: head, logOmitted: omitted }), logTail: tail };
}

/** A source that no buildpack recognises, and an image that cannot be used, fail the same way again. */
const failsAgain: ReadonlySet<CauseCode> = new Set([
  'no-buildpack',
  'image-not-found',
  'image-unauthorized',
  'image-user',
  'wrong-architecture',
]);

function buildFailure(session: SpaceSession, failed: FailedBuild): KfError {
  const { appName, build, again } = failed;
  const condition = findCondition(build, conditionTypes.succeeded);
  const message = condition?.message ?? 'the cause is unknown';
  // Our controller writes the class of the failure into a field, Korifi writes it in front of the message (`<reason>: <text>`); the condition's
  // own reason only says that the build failed.
  const { failure } = build.status ?? {};
  const reason = failure?.reason ?? /^([A-Z]\w+): /.exec(message)?.[1] ?? condition?.reason;
  const cause = causeOfFailedBuild(defined({ cause: failure?.cause, reason }), message);
  const hints = adviceOn(cause, { bin: session.bin, app: appName, ns: session.space.guid });
  return new KfError('build', `Error staging application: ${message}`, {
    hints: failsAgain.has(cause) || hints.includes(again) ? hints : [...hints, again],
    details: { reason, cause, build: build.metadata.name, ...lastLines(failed) },
  });
}

/**
 * Waits until the build has succeeded.
 * @throws KfError `build` with the cause, `timeout` naming app and minutes, `accepted` (no controller)
 */
export async function waitForBuild(
  session: SpaceSession,
  appName: string,
  build: Stored<CFBuild>,
  { stillOurs, again }: BuildWait,
): Promise<Stored<CFBuild>> {
  const { cluster, space, signal, env } = session;
  const name = build.metadata.name;
  const shown = build.spec.lifecycle.type === 'docker' ? undefined : showLog(session, name);
  const timeoutMs = timeoutFrom(env, 'CF_STAGING_TIMEOUT');
  try {
    const ended = await unlessAbsent(
      { cluster, signal },
      (present, alive) => {
        const check = (live: Stored<CFBuild> | undefined): Stored<CFBuild> | undefined => {
          if (live === undefined) throw deletedBuild(again);
          if (live.status?.conditions !== undefined) alive();
          if (hasEnded(live)) return live;
          const awaited = findCondition(live, conditionTypes.staging)?.message;
          if (awaited !== undefined && awaited !== '') session.report({ type: 'waiting', reason: awaitedIn(awaited) });
          return undefined;
        };
        const watched = watchObject(cluster, kinds.build, { ns: space.guid, name, known: build }, check, {
          timeoutMs,
          signal: present,
          describe: () => `the build of app '${appName}'`,
        });
        return stillOurs === undefined ? watched : Promise.race([watched, stillOurs]);
      },
      Math.min(absentAfterMs, timeoutMs),
    );
    if (ended === undefined) throw nobodyBuilds(appName, again);
    await shown?.finish();
    if (ended.status?.state === 'FAILED') throw buildFailure(session, { appName, build: ended, shown, again });
    return ended;
  } catch (error) {
    await shown?.finish();
    if (!(error instanceof KfError) || error.code !== 'timeout') throw error;
    const minutes = minutesOf(timeoutMs);
    throw new KfError('timeout', `Error staging application ${appName}: timed out after ${minutes} minute(s)`, {
      hints: [twiceAsLong('CF_STAGING_TIMEOUT', timeoutMs), `${session.bin} logs ${appName} --recent`],
      cause: error,
    });
  }
}

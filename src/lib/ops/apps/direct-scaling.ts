// Changes that work while the controller is down: they set the instance counts of existing StatefulSets. The result is what the controller would
// have done itself.

import { desiredInstances, routesOf } from '../../api/app.ts';
import { statefulSetType, type StatefulSet } from '../../api/core.ts';
import { annotations, kinds, labels } from '../../api/group.ts';
import type { Stored } from '../../api/object.ts';
import type { CFApp, CFProcess, GenerationStatus } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import { watchObject } from '../../kube/watch-list.ts';
import { withParts } from '../../session/overlay.ts';
import type { SpaceSession } from '../../session/session.ts';
import { endInTurn } from '../instances/in-turn.ts';
import { appGone } from './changes.ts';
import { overtaken, startTimeoutMs } from './rollout-wait.ts';

const options = (session: SpaceSession, app: Stored<CFApp>) => ({
  ns: session.space.guid,
  labelSelector: `${labels.appGuid}=${app.metadata.name}`,
  signal: session.signal,
});

/** The set of a process that serves, or that served last: after a failed change, that of the version before. */
function currentSet(process: Stored<CFProcess>, sets: readonly Stored<StatefulSet>[]): Stored<StatefulSet> | undefined {
  const own = sets
    .filter((set) => set.metadata.labels?.[labels.guid] === process.metadata.name)
    .toSorted((a, b) => (a.metadata.creationTimestamp ?? '').localeCompare(b.metadata.creationTimestamp ?? ''));
  const known = process.status?.rollout?.generations ?? [];
  const setsOf = (is: (generation: GenerationStatus) => boolean): Stored<StatefulSet>[] => {
    const hashes = new Set(known.filter(is).map(({ hash }) => hash));
    return own.filter(({ metadata }) => hashes.has(metadata.labels?.[labels.generation] ?? ''));
  };
  const served = setsOf((generation) => generation.served === true);
  // Of a stopped app none runs.
  const runs = served.findLast(({ spec }) => (spec?.replicas ?? 0) > 0);
  return setsOf(({ state }) => state === 'Current').at(-1) ?? runs ?? served.at(-1) ?? own.at(-1);
}

async function scaleSet({ cluster, space, signal }: SpaceSession, set: Stored<StatefulSet>, replicas: number): Promise<void> {
  const patch = { spec: { replicas } };
  await cluster.mergePatch(statefulSetType, space.guid, set.metadata.name, patch, {
    subresource: 'scale',
    signal,
  });
}

/** A process with the set that serves, or that served last. */
interface RunningProcess {
  process: Stored<CFProcess>;
  set: Stored<StatefulSet>;
}

/** Waits until the wanted number of the set's pods is ready. */
async function waitForSet(session: SpaceSession, { process, set }: RunningProcess, replicas: number): Promise<void> {
  const { cluster, space, signal, report, env } = session;
  const check = (seen: Stored<StatefulSet> | undefined): true | undefined => {
    const ready = seen?.status?.readyReplicas ?? 0;
    if (seen !== undefined && ready === replicas && (seen.status?.replicas ?? 0) === replicas) return true;
    report({ type: 'instances-starting', ready, wanted: replicas });
    return undefined;
  };
  await watchObject(cluster, statefulSetType, { ns: space.guid, name: set.metadata.name }, check, {
    timeoutMs: startTimeoutMs(env, process.spec.healthCheck.data.timeoutSeconds),
    signal,
    describe: `${replicas} ready instances`,
  });
  report({ type: 'done' });
}

async function setsByProcess(session: SpaceSession, app: Stored<CFApp>): Promise<RunningProcess[]> {
  const { cluster } = session;
  const [processes, sets] = await Promise.all([
    cluster.list(kinds.process, options(session, app)),
    cluster.list(statefulSetType, options(session, app)),
  ]);
  return processes.items.flatMap((process) => {
    const set = currentSet(process, sets.items);
    return set === undefined ? [] : [{ process, set }];
  });
}

/** Scales every set of the app to 0. */
export async function stopDirectly(session: SpaceSession, app: Stored<CFApp>): Promise<void> {
  const { items } = await session.cluster.list(statefulSetType, options(session, app));
  await Promise.all(items.map((set) => scaleSet(session, set, 0)));
  session.report({ type: 'acted-directly', what: 'stopped' });
}

/** Whether a controller has taken the change up. @throws KfError when it is not the app's last one any more */
function isTakenUp(app: Stored<CFApp>, seen: Stored<CFApp> | undefined): boolean {
  const deployId = app.metadata.annotations?.[annotations.deployId];
  if (seen === undefined) throw appGone(app);
  if (seen.metadata.annotations?.[annotations.deployId] !== deployId || seen.spec.desiredState !== 'STARTED') throw overtaken(seen);
  return deployId !== undefined && seen.status?.deployment?.id === deployId;
}

/**
 * Does the work unless a controller takes the change up meanwhile, which does the rest.
 * @param work with a session that is interrupted then
 * @throws KfError when the app has a later change, without waiting for what will not come then
 */
async function untilTakenUp(
  session: SpaceSession,
  app: Stored<CFApp>,
  work: (session: SpaceSession) => Promise<boolean>,
): Promise<boolean | 'taken-up'> {
  const { cluster, space } = session;
  const over = new AbortController();
  const signal = AbortSignal.any([session.signal, over.signal]);
  const check = (seen: Stored<CFApp> | undefined): 'taken-up' | undefined => (isTakenUp(app, seen) ? 'taken-up' : undefined);
  const how = { timeoutMs: Infinity, signal, describe: `a controller for app '${app.spec.displayName}'` };
  const working = work(withParts(session, { signal }));
  try {
    return await Promise.race([working, watchObject(cluster, kinds.app, { ns: space.guid, name: app.metadata.name }, check, how)]);
  } finally {
    over.abort();
    await working.catch(() => undefined);
  }
}

/** Says when nothing leads to the app although it runs: a controller that stops an app takes its share of the requests, and only a controller gives it back. */
async function tellOfRoutes(session: SpaceSession, app: Stored<CFApp>): Promise<void> {
  if (app.status?.deployment?.phase !== 'Stopped') return;
  const { cluster, space, signal, report } = session;
  const { items } = await cluster.list(kinds.route, { ns: space.guid, signal });
  if (routesOf(app, items).length > 0) report({ type: 'still-unrouted', app: app.spec.displayName });
}

/**
 * Scales the last set of each process up again.
 * @returns false when there is none; 'taken-up' when a controller came back meanwhile, which does the rest
 */
export async function startDirectly(session: SpaceSession, app: Stored<CFApp>): Promise<boolean | 'taken-up'> {
  const found = await setsByProcess(session, app);
  if (found.length === 0) return false;
  const startAll = async (inTime: SpaceSession): Promise<boolean> => {
    await Promise.all(found.map(({ process, set }) => scaleSet(inTime, set, desiredInstances(process))));
    await Promise.all(found.map((one) => waitForSet(inTime, one, desiredInstances(one.process))));
    return true;
  };
  if ((await untilTakenUp(session, app, startAll)) !== true) return 'taken-up';
  session.report({ type: 'acted-directly', what: 'started' });
  await tellOfRoutes(session, app);
  return true;
}

/** The usual advice after an interruption, to run the command again, would end all instances once more. */
function endedEarly({ bin }: SpaceSession, { spec: { displayName } }: Stored<CFApp>, error: unknown): unknown {
  if (!(error instanceof KfError) || (error.code !== 'interrupted' && error.code !== 'timeout')) return error;
  return new KfError(error.code, error.message, {
    exitCode: error.exitCode,
    hints: [
      `The other instances of app '${displayName}' run on, and what has changed waits for the controller:`,
      `${bin} app ${displayName}`,
      ...(error.code === 'timeout' ? [`${bin} logs ${displayName} --recent`] : []),
    ],
    details: error.details,
    cause: error,
  });
}

/**
 * Ends the instances one at a time, the next one when the one before serves again; their sets create them again.
 * @returns false when nothing runs; 'taken-up' when a controller came back meanwhile, which does the rest
 */
export async function restartDirectly(session: SpaceSession, app: Stored<CFApp>): Promise<boolean | 'taken-up'> {
  const found = (await setsByProcess(session, app)).filter(({ set }) => (set.spec?.replicas ?? 0) > 0);
  if (found.length === 0) return startDirectly(session, app);
  const endAll = async (inTime: SpaceSession): Promise<boolean> => {
    const { cluster, space, signal, env, report } = inTime;
    for (const { process, set } of found) {
      const isDone = await endInTurn(inTime, {
        process,
        replicas: set.spec?.replicas ?? 0,
        timeoutMs: startTimeoutMs(env, process.spec.healthCheck.data.timeoutSeconds),
        // What is watched comes a moment late, so this is asked before each one ends.
        mayEnd: async () => !isTakenUp(app, await cluster.get(kinds.app, space.guid, app.metadata.name, signal)),
        onlyOne: () => report({ type: 'ending-only-instance', app: app.spec.displayName, process: process.spec.processType }),
      });
      if (!isDone) return false;
    }
    return true;
  };
  try {
    if ((await untilTakenUp(session, app, endAll)) !== true) return 'taken-up';
  } catch (error) {
    throw endedEarly(session, app, error);
  }
  session.report({ type: 'acted-directly', what: 'restarted' });
  return true;
}

/** Changes the instance count of a process' set. Returns false when it has none. */
export async function scaleDirectly(
  session: SpaceSession,
  app: Stored<CFApp>,
  process: Stored<CFProcess>,
  replicas: number,
): Promise<boolean> {
  const found = (await setsByProcess(session, app)).find((one) => one.process.metadata.name === process.metadata.name);
  if (found === undefined) return false;
  await scaleSet(session, found.set, replicas);
  await waitForSet(session, found, replicas);
  session.report({ type: 'acted-directly', what: 'scaled' });
  return true;
}

// `kf push`: acquires the app, makes package and build, writes the settings under a lock, switches, and waits for the rollout.

import { randomUUID } from 'node:crypto';
import { appRevOf } from '../../api/app.ts';
import { annotations } from '../../api/group.ts';
import { heldUntilRestart, isUnapplied } from '../../api/held.ts';
import { requireCompatible, type KfInfo } from '../../api/kf-info.ts';
import type { Stored } from '../../api/object.ts';
import { rolloutOf, rolloutPatch, type RolloutOptions } from '../../api/rollout.ts';
import type { CFApp, CFRoute } from '../../api/types.generated.ts';
import { defined } from '../../defined.ts';
import type { AppPlan, PushPlan } from '../../manifest/plan.ts';
import type { SpaceSession } from '../../session/session.ts';
import { kfVersion } from '../../version.ts';
import type { KnownOfApp } from '../apps/details.ts';
import { findLabelledApp, usableDomains } from '../find.ts';
import { waitUntilStopped } from '../apps/lifecycle.ts';
import { ownSecondsOf, startTimeoutMs, waitForRollout, type RolloutWaitOptions } from '../apps/rollout-wait.ts';
import { assertUpdateFits } from '../apps/update-room.ts';
import type { AppFollower } from './app-follower.ts';
import { makeArtifact } from './artifact.ts';
import { acquireApp } from './acquire-app.ts';
import { decideChanges, hasEnvironment, isMarked, isNothing, type Changes } from './changes.ts';
import { readSnapshot, type AppSnapshot } from './app-snapshot.ts';
import { finished, underLock, writeAsHolder } from './lock.ts';
import { tidyUpIfOvertaken } from './overtaken-package.ts';
import { preflight, type Preflight } from './preflight.ts';
import { needsDomains, wantedRoutes } from './route-plan.ts';
import type { ProcessStep } from './settings.ts';
import { lifecycleChange, writeSettings } from './write-settings.ts';

export interface PushedApp {
  name: string;
  guid: string;
  /** Nothing differed: no package, no build, no restart. */
  unchanged: boolean;
  built: boolean;
  layerBytesSent: number;
  app: Stored<CFApp>;
  /** Data that the push has read about the app, for `describeApp`. */
  known: KnownOfApp;
}

export interface PushOptions {
  /** Build and roll even if nothing differs. */
  force: boolean;
  /** The password of the users that the plan names for registries of images. */
  imagePassword?: string | undefined;
}

/** The single patch that switches the app to the new state: droplet, desired state, deploy id. It also removes the lock. */
function switchApp(
  session: SpaceSession,
  app: Stored<CFApp>,
  plan: AppPlan,
  droplet: string | undefined,
  deploy: { id: string; newRev: boolean; start: boolean; changes: Changes; rollout: RolloutOptions },
): Promise<Stored<CFApp>> {
  const data = lifecycleChange(plan);
  const patch = (live: Stored<CFApp>) => {
    const next = String(appRevOf(live) + 1);
    const isStop = !deploy.start && live.spec.desiredState === 'STARTED';
    const rev = isStop
      ? { [annotations.appRev]: next, [annotations.lastStopAppRev]: next }
      : deploy.newRev || (live.spec.desiredState === 'STARTED' && isUnapplied(live))
        ? { [annotations.appRev]: next }
        : {};
    return {
      metadata: {
        labels: deploy.changes.metadata.labels,
        annotations: {
          ...deploy.changes.metadata.annotations,
          ...deploy.changes.marks,
          [annotations.deployId]: deploy.id,
          ...finished,
          ...rev,
        },
      },
      spec: {
        ...(droplet === undefined ? {} : { currentDropletRef: { name: droplet } }),
        desiredState: deploy.start ? 'STARTED' : 'STOPPED',
        ...defined({ rollout: deploy.start ? rolloutPatch(live, deploy.id, deploy.rollout) : undefined }),
        ...(Object.keys(data).length === 0 ? {} : { lifecycle: { data } }),
      },
    };
  };
  return writeAsHolder(session.cluster, app, deploy.id, patch, session.signal);
}

/** A checked push that has written nothing yet. */
export interface PreparedPush {
  session: SpaceSession;
  info: KfInfo;
  /** The plan for this installation. */
  plan: AppPlan;
  push: PushPlan;
  found: Stored<CFApp> | undefined;
  checked: Preflight;
}

/** Writes settings and switches; on any failure it releases the lock at once. */
async function apply(
  prepared: PreparedPush,
  app: Stored<CFApp>,
  facts: AppSnapshot,
  changes: Changes,
  target: { droplet: string | undefined; pushId: string; force: boolean },
): Promise<{ switched: Stored<CFApp>; routes: Stored<CFRoute>[] }> {
  const { session, info, plan } = prepared;
  const write = async (locked: Stored<CFApp>): Promise<{ switched: Stored<CFApp>; routes: Stored<CFRoute>[] }> => {
    // Settings of processes wait for the switch: otherwise the controller would start them with the droplet of before.
    const added = await writeSettings(session, info, locked, { facts, changes, marks: heldUntilRestart(locked) });
    const newRev = target.force || hasEnvironment(changes) || changes.restart;
    const deploy = {
      id: target.pushId,
      newRev: newRev && app.spec.desiredState === 'STARTED',
      start: prepared.push.start,
      changes,
      rollout: prepared.push.rollout,
    };
    const switched = await switchApp(session, locked, plan, target.droplet, deploy);
    return { switched, routes: [...(plan.noRoute ? [] : facts.ownRoutes), ...added] };
  };
  // The settings of processes have marks of their own.
  return underLock(session.cluster, app, { pushId: target.pushId, environment: hasEnvironment(changes) }, write, session.signal);
}

async function verdict(
  { session, plan, push }: PreparedPush,
  app: Stored<CFApp>,
  facts: AppSnapshot,
  pushId: string,
  follower: AppFollower,
): Promise<Stored<CFApp>> {
  const { report, cluster, env, signal, bin } = session;
  report({ type: 'starting-app', app: plan.name, asked: rolloutOf(app) !== undefined });
  // A process that is created only from the droplet has the default timeout.
  const planned = plan.processes.map(({ timeoutSeconds = 0 }) => timeoutSeconds);
  const timeoutMs = startTimeoutMs(env, Math.max(ownSecondsOf(facts.processes), ...planned));
  follower.wrote(app);
  const watch: RolloutWaitOptions['watch'] = (check, how) => follower.watch(check, how);
  return (await waitForRollout(cluster, app, pushId, { timeoutMs, report, signal, bin, watch, firstInstance: !push.wait })).app;
}

/** The controller has written the address. */
const hasAddress = ({ status }: Stored<CFRoute>): boolean => (status?.uri ?? '') !== '';

/** A push without other changes may still name an older package. */
function mark(
  { cluster, signal }: SpaceSession,
  app: Stored<CFApp>,
  pushId: string,
  changes: Changes,
): Promise<Stored<CFApp>> | Stored<CFApp> {
  if (isMarked(app, changes)) return app;
  return writeAsHolder(cluster, app, pushId, () => ({ metadata: { annotations: changes.marks } }), signal);
}

async function untilStopped(session: SpaceSession, app: Stored<CFApp>, pushId: string): Promise<void> {
  session.report({ type: 'stopping-app' });
  await waitUntilStopped(session, app, pushId);
  session.report({ type: 'app-stopped' });
}

function unchanged(
  pushed: Omit<PushedApp, 'unchanged' | 'app'>,
  { processes, ownRoutes: routes }: AppSnapshot,
  app: Stored<CFApp>,
): PushedApp {
  return { ...pushed, unchanged: true, app, known: { ...pushed.known, processes, routes, withoutUsage: true } };
}

/** Snapshot and routes of an app that others changed since the preflight. */
export async function readAgain(
  session: SpaceSession,
  { plan, domains }: Preflight,
  app: Stored<CFApp>,
): Promise<Pick<Preflight, 'facts' | 'routes'>> {
  const facts = await readSnapshot(session, plan, app);
  const hasRoutes = facts.ownRoutes.length > 0;
  const known = domains.length === 0 && needsDomains(plan, hasRoutes) ? await usableDomains(session) : domains;
  return { facts, routes: wantedRoutes(plan, known, hasRoutes) };
}

/** A process whose instances are replaced; others of them may be added or stopped without that. */
const isReplaced = ({ process, changes }: ProcessStep): boolean => process !== undefined && Object.keys(changes).length > 0;

const replacesAny = ({ droplet, restart, processes }: Changes): boolean => droplet || restart || processes.some(isReplaced);

/** For a push that replaces running instances. */
async function assertReplacementFits({ session, plan, push }: PreparedPush, app: Stored<CFApp>, facts: AppSnapshot): Promise<void> {
  if (!push.start || facts.isNew) return;
  const { processes, ownRoutes: routes, autoscaled } = facts;
  const update = { app, processes, routes, planned: plan.processes, autoscaled, rollout: push.rollout };
  await assertUpdateFits(session, update, `${session.bin} push ${plan.name}`);
}

/** Checks everything that a push of the app needs. @throws KfError `usage`, `not-found`, `forbidden`, `quota`, `upload`; nothing is written then */
export async function preparePush(session: SpaceSession, push: PushPlan, app: AppPlan): Promise<PreparedPush> {
  const [info, found] = await Promise.all([session.info(), findLabelledApp(session, app.name)]);
  requireCompatible(info, kfVersion());
  const checked = await preflight(session, info, app, found, { start: push.start });
  return { session, info, plan: checked.plan, push, found, checked };
}

/**
 * Pushes one app of a plan.
 * @throws KfError `forbidden`, `upload`, `build`, `start`, `timeout`, `conflict` (a later push, or a name taken), `accepted` (no controller)
 */
export async function pushApp(prepared: PreparedPush, options: PushOptions): Promise<PushedApp> {
  const { session, info, plan, push, found, checked } = prepared;
  const { registry } = checked;
  const pushId = randomUUID();
  const { follower, asFound } = await acquireApp(session, plan, found, pushId);
  const { app: taken } = follower;
  try {
    // The snapshot includes what another push wrote in the meantime: its settings must not be mixed with this push's source.
    const { facts, routes } = asFound ? checked : await readAgain(session, checked, follower.app);
    const { services } = checked;
    const { force, imagePassword } = options;
    const stage = push.start || push.task;
    const assertFits = (): Promise<void> => assertReplacementFits(prepared, follower.app, facts);
    const input = { session, info, plan, facts, services, follower, pushId, force, imagePassword, stage, assertFits };
    const artifact = await makeArtifact(registry === undefined ? input : { ...input, registry });
    const { build } = artifact;
    const result = {
      name: plan.name,
      guid: follower.app.metadata.name,
      built: artifact.wasBuilt,
      layerBytesSent: artifact.layerBytesSent,
      known: defined({ build, image: plan.docker?.image }),
    };
    const changes = decideChanges({ session, plan, push, services, routes, facts, app: follower.app, artifact });
    const reportApplied = (): void => (push.manifest === undefined ? undefined : session.report({ type: 'manifest-applied' }));
    if (isNothing(changes) && !options.force && (push.start || isMarked(follower.app, changes))) {
      const app = await mark(session, follower.app, pushId, changes);
      reportApplied();
      return unchanged(result, facts, app);
    }
    // Of a droplet that was built now it was said before the build.
    if (!artifact.wasBuilt && (force || replacesAny(changes))) await assertFits();
    const stops = !push.start && follower.app.spec.desiredState === 'STARTED';
    session.report({ type: 'writing-settings' });
    const target = { droplet: build?.metadata.name, pushId, force: options.force };
    const { switched, routes: mapped } = await apply(prepared, follower.app, facts, changes, target);
    session.report({ type: 'done' });
    reportApplied();
    if (stops) await untilStopped(session, switched, pushId);
    if (!push.start) return { ...result, unchanged: false, app: switched };
    const known = {
      ...result.known,
      // Without a wait, the earlier instances still exist, with their own sizes.
      withoutUsage: push.wait && (changes.droplet || changes.state),
      ...(mapped.every(hasAddress) ? { routes: mapped } : {}),
    };
    return { ...result, known, unchanged: false, app: await verdict(prepared, switched, facts, pushId, follower) };
  } catch (error) {
    await tidyUpIfOvertaken(error, session, taken, pushId);
    throw error;
  } finally {
    follower.stop();
  }
}

// Gets the app for a push: it must exist and have its name before anything is uploaded.

import { randomUUID } from 'node:crypto';
import { isUnnamedFirstPush } from '../../api/app.ts';
import { findCondition } from '../../api/conditions.ts';
import { annotations, conditionTypes, kinds } from '../../api/group.ts';
import type { Stored } from '../../api/object.ts';
import type { CFApp, Lifecycle } from '../../api/types.generated.ts';
import type { AppPlan } from '../../manifest/plan.ts';
import { KfError } from '../../errors.ts';
import { retryOnConflict } from '../../kube/retry-on-conflict.ts';
import type { SpaceSession } from '../../session/session.ts';
import { buildApp } from '../../../templates/app.ts';
import { busyPatienceMs, unlessAbsent } from '../controller-wait.ts';
import { findAppIfAny, nameInOtherCapitals } from '../find.ts';
import { AppFollower } from './app-follower.ts';
import { takeOver } from './lock.ts';

const tries = 5;

export interface AcquiredApp {
  follower: AppFollower;
  /** False when others changed the app between the first read and the acquisition: then the earlier data is out of date. */
  asFound: boolean;
}

/** The app's lifecycle, overridden by the plan; a new app has none. */
export function lifecycleOf(plan: AppPlan, app?: Stored<CFApp>): Lifecycle {
  if (plan.lifecycle === 'docker') return { type: 'docker', data: { stack: '' } };
  const present = app?.spec.lifecycle.data;
  const buildpacks = plan.buildpacks ?? present?.buildpacks ?? [];
  return { type: 'buildpack', data: { stack: plan.stack ?? present?.stack ?? '', ...(buildpacks.length === 0 ? {} : { buildpacks }) } };
}

function nobodyClaims(name: string): KfError {
  return new KfError('accepted', `App '${name}' is created, but the controller has not taken it up; nothing was uploaded.`, {
    hints: ['kubectl -n kf-system get deployment kf-controller', `kf push ${name}`],
  });
}

async function createApp(session: SpaceSession, plan: AppPlan, pushId: string): Promise<Stored<CFApp>> {
  const author = { changedBy: await session.changedBy(), now: new Date() };
  const app = buildApp(
    { guid: randomUUID(), namespace: session.space.guid, displayName: plan.name, lifecycle: lifecycleOf(plan), pushId },
    author,
  );
  return session.cluster.create(kinds.app, app, { signal: session.signal });
}

const isClaimed = (app: Stored<CFApp>): boolean => findCondition(app, conditionTypes.claimed)?.status === 'True';

/** True when the app has its name; false when another app has it. */
async function settleName(session: SpaceSession, follower: AppFollower, name: string): Promise<boolean> {
  const isJudged = (app: Stored<CFApp>): boolean => (findCondition(app, conditionTypes.claimed)?.status ?? 'Unknown') !== 'Unknown';
  try {
    const claimed = `the name '${name}' to be claimed`;
    const app = await unlessAbsent(session, (until) => follower.until(claimed, busyPatienceMs, isJudged, until));
    if (app === undefined) throw nobodyClaims(name);
    return isClaimed(app);
  } catch (error) {
    if (error instanceof KfError && error.code === 'timeout') throw nobodyClaims(name);
    throw error;
  }
}

/**
 * Deletes an app that did not get its name. A later push that has taken it over deletes it itself, and an app that got its name in the meantime
 * stays.
 */
async function withdraw({ cluster }: SpaceSession, app: Stored<CFApp>, pushId: string): Promise<void> {
  const { namespace, name, uid } = app.metadata;
  const remove = async (live: Stored<CFApp> | undefined): Promise<void> => {
    if (live?.metadata.uid !== uid || live.metadata.annotations?.[annotations.pushId] !== pushId || isClaimed(live)) return;
    const { resourceVersion } = live.metadata;
    await cluster.delete(kinds.app, namespace, name, { uid, resourceVersion });
  };
  await retryOnConflict<Stored<CFApp> | undefined, void>(app, remove, () => cluster.get(kinds.app, namespace, name));
}

/** {@link settleName}, and deletes an app that does not get its name, also when the push ends here. */
async function holdsName(session: SpaceSession, follower: AppFollower, display: string, pushId: string): Promise<boolean> {
  const created = follower.app;
  const holds = await settleName(session, follower, display).catch(async (error: unknown) => {
    // A later push that has taken the app over continues with it.
    const isAnothers = error instanceof KfError && error.details?.['reason'] === 'superseded';
    if (isAnothers || (error instanceof KfError && error.code === 'accepted')) throw error;
    follower.stop();
    await withdraw(session, created, pushId).catch(() => undefined);
    throw error;
  });
  if (holds) return true;
  follower.stop();
  await withdraw(session, created, pushId);
  return false;
}

/**
 * Takes over an existing app. Returns undefined when the app is gone, or when another first push made it and it did not get the name. Such an app
 * is followed until it has the name. If it does not get it, this push deletes it: the push that made it ended when this push took over.
 */
async function takeExisting(session: SpaceSession, app: Stored<CFApp>, plan: AppPlan, pushId: string): Promise<AcquiredApp | undefined> {
  let follower: AppFollower | undefined;
  try {
    const onWait = (): void => session.report({ type: 'awaiting-other-push' });
    const identity = { pushId, user: await session.changedBy() };
    const taken = await takeOver(session.cluster, app, identity, { signal: session.signal, onWait });
    follower = new AppFollower(session.cluster, taken.app, pushId);
    if (isClaimed(taken.app) || (await settleName(session, follower, plan.name)))
      return { follower, asFound: taken.first && !isLocked(app) };
    if (isUnnamedFirstPush(app)) await withdraw(session, taken.app, pushId);
  } catch (error) {
    if (!(error instanceof KfError) || error.code !== 'not-found') {
      follower?.stop();
      throw error;
    }
  }
  follower?.stop();
  return undefined;
}

/** Another push is writing its settings, or died while it did. */
const isLocked = ({ metadata }: Stored<CFApp>): boolean => (metadata.annotations?.[annotations.applying] ?? '') !== '';

/** The app has its name and the plan's kind of lifecycle, and no push is writing its settings: it can be compared with the plan as it was read. */
export const isComparable = (app: Stored<CFApp>, plan: AppPlan): boolean =>
  isClaimed(app) && !isLocked(app) && app.spec.lifecycle.type === plan.lifecycle;

function checkLifecycle(app: Stored<CFApp>, plan: AppPlan): void {
  if (app.spec.lifecycle.type === plan.lifecycle) return;
  const was = app.spec.lifecycle.type === 'docker' ? 'a docker image' : 'source code';
  throw new KfError('conflict', `App '${plan.name}' was made from ${was}; its kind of lifecycle cannot be changed.`, {
    hints: ['Push under another name, or delete the app first:', `kf delete ${plan.name}`, `kf push ${plan.name}`],
  });
}

/** The app that got the name instead of the one that was created; undefined when it is gone again. */
async function findHolder(session: SpaceSession, name: string): Promise<Stored<CFApp> | undefined> {
  const holder = await findAppIfAny(session, name);
  const other = holder === undefined ? await nameInOtherCapitals(session, name) : undefined;
  if (other === undefined) return holder;
  throw new KfError(
    'conflict',
    `App '${other}' already exists, and names that differ only in capital letters are the same; nothing was uploaded.`,
    {
      hints: [`kf push ${other}`],
    },
  );
}

/**
 * Makes this push the current push of the app, and creates the app if it does not exist. Many concurrent first pushes of one name end with one
 * app: a push that does not get the name takes over the app that did.
 */
export async function acquireApp(
  session: SpaceSession,
  plan: AppPlan,
  found: Stored<CFApp> | undefined,
  pushId: string,
): Promise<AcquiredApp> {
  let existing = found;
  for (let attempt = 0; attempt < tries; attempt += 1) {
    if (existing !== undefined) {
      checkLifecycle(existing, plan);
      const taken = await takeExisting(session, existing, plan, pushId);
      if (taken !== undefined) return { ...taken, asFound: taken.asFound && existing === found };
      existing = await findAppIfAny(session, plan.name);
      continue;
    }
    const created = await createApp(session, plan, pushId);
    const follower = new AppFollower(session.cluster, created, pushId);
    // Data from an earlier read belongs to the app that existed before, if any.
    if (await holdsName(session, follower, plan.name, pushId)) return { follower, asFound: found === undefined };
    existing = await findHolder(session, plan.name);
  }
  throw new KfError('conflict', `The name '${plan.name}' is claimed and freed again and again; nothing was uploaded.`, {
    hints: [`kf app ${plan.name}`],
  });
}

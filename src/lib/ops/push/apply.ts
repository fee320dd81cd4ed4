// `apply-manifest`: writes the settings of a manifest and makes missing apps, without a package, a build, a start or a restart.

import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { annotations } from '../../api/group.ts';
import { heldUntilRestart } from '../../api/held.ts';
import { requireCompatible } from '../../api/kf-info.ts';
import type { Stored } from '../../api/object.ts';
import type { CFApp, CFRoute } from '../../api/types.generated.ts';
import { defined } from '../../defined.ts';
import type { ManifestPlan } from '../../manifest/apply-plan.ts';
import type { AppPlan } from '../../manifest/plan.ts';
import type { SpaceSession } from '../../session/session.ts';
import { kfVersion } from '../../version.ts';
import { findAppIfAny } from '../find.ts';
import { waitUntilProgrammed } from '../routes/programming.ts';
import { urlOf } from '../routes/routes.ts';
import { acquireApp, isComparable } from './acquire-app.ts';
import { allOrError } from './all.ts';
import { manifestDiff, type DiffLine } from '../../manifest/diff.ts';
import { decideChanges, hasEnvironment, isNothing, type Changes } from './changes.ts';
import { assertDefaultRoutesDiffer } from './default-route.ts';
import { underLock, writeAsHolder } from './lock.ts';
import { preflight, type Preflight } from './preflight.ts';
import { readAgain, type PreparedPush } from './push.ts';
import { lifecycleChange, writeSettings } from './write-settings.ts';

export { readApplyPlan } from '../../manifest/read.ts';

/** Apps whose settings are written at the same time. */
const mostAtOnce = 4;

export interface AppliedApp {
  name: string;
  guid: string;
  created: boolean;
  /** False: the app had these settings already. */
  changed: boolean;
}

/** The plan for the app as it is: its kind of lifecycle stays unless the manifest names another one. */
function fitTo(found: Stored<CFApp> | undefined, { docker, ...plan }: AppPlan): AppPlan {
  const isNamed = docker !== undefined || plan.buildpacks !== undefined || plan.stack !== undefined;
  return { ...plan, lifecycle: found === undefined || isNamed ? plan.lifecycle : found.spec.lifecycle.type };
}

async function prepare(session: SpaceSession, push: ManifestPlan, app: AppPlan): Promise<PreparedPush> {
  const [info, found] = await Promise.all([session.info(), findAppIfAny(session, app.name)]);
  requireCompatible(info, kfVersion());
  const checked = await preflight(session, info, fitTo(found, app), found, { start: false, code: false });
  return { session, info, plan: checked.plan, push, found, checked };
}

/** Checks all apps of the manifest. @throws KfError `usage`, `not-found`, `forbidden`, `conflict`; nothing is written then */
export async function prepareManifest(session: SpaceSession, plan: ManifestPlan): Promise<PreparedPush[]> {
  const prepared = allOrError(plan.apps, await Promise.allSettled(plan.apps.map((app) => prepare(session, plan, app))));
  assertDefaultRoutesDiffer(prepared);
  return prepared;
}

/** The manifest, compared with the apps. */
export function manifestLines(prepared: readonly PreparedPush[]): DiffLine[] {
  return prepared.flatMap(({ plan, push, found, checked: { facts } }, index) => {
    const lines = manifestDiff(plan, found && { app: found, facts, image: undefined }, push);
    // Each begins with `---` and `applications:`.
    return index === 0 ? lines : lines.slice(2);
  });
}

/** The changes without those that belong to a package, a build or a start. */
function settingsOnly(changes: Changes): Changes {
  return { ...changes, restart: false, droplet: false, state: false, marks: {} };
}

/** The part of the lifecycle that differs; undefined when nothing does. */
function lifecycleDiffering(plan: AppPlan, { spec }: Stored<CFApp>): { data: ReturnType<typeof lifecycleChange> } | undefined {
  const data = lifecycleChange(plan);
  const present = spec.lifecycle.data;
  const isSame =
    (data.buildpacks === undefined || isDeepStrictEqual(data.buildpacks ?? [], present.buildpacks ?? [])) &&
    (data.stack === undefined || data.stack === present.stack);
  return isSame ? undefined : { data };
}

async function untilLoaded(session: SpaceSession, { routes }: Changes, added: readonly Stored<CFRoute>[]): Promise<void> {
  await Promise.all(
    routes.map(async ({ host, path, domain }, index) => {
      const route = added[index];
      if (route !== undefined) await waitUntilProgrammed(session, route, urlOf({ host, path, domain: domain.spec.name }));
    }),
  );
}

interface Differences {
  changes: Changes;
  lifecycle: ReturnType<typeof lifecycleDiffering>;
}

/** What the app does not have yet; undefined when nothing differs. */
function differences(
  { session, plan, push, checked: { services } }: PreparedPush,
  app: Stored<CFApp>,
  { facts, routes }: Pick<Preflight, 'facts' | 'routes'>,
): Differences | undefined {
  const artifact = { source: '', packages: [], wasBuilt: false, layerBytesSent: 0, bindings: facts.bindings };
  const changes = settingsOnly(decideChanges({ session, plan, push, services, routes, facts, app, artifact }));
  const lifecycle = lifecycleDiffering(plan, app);
  return isNothing(changes) && lifecycle === undefined ? undefined : { changes, lifecycle };
}

async function applyTo(prepared: PreparedPush): Promise<AppliedApp> {
  const { session, info, plan, found, checked } = prepared;
  const { cluster, signal } = session;
  // Where nothing differs the app is not taken over: that would end a push that goes on.
  if (found !== undefined && isComparable(found, plan) && differences(prepared, found, checked) === undefined)
    return { name: plan.name, guid: found.metadata.name, created: false, changed: false };
  const pushId = randomUUID();
  const { follower, asFound } = await acquireApp(session, plan, found, pushId);
  follower.stop();
  const { app } = follower;
  const { facts, routes } = asFound ? checked : await readAgain(session, checked, app);
  const applied = { name: plan.name, guid: app.metadata.name, created: found === undefined };
  const differing = differences(prepared, app, { facts, routes });
  if (differing === undefined) return { ...applied, changed: false };
  const { changes, lifecycle } = differing;
  session.report({ type: 'writing-settings' });
  const write = async (locked: Stored<CFApp>): Promise<Stored<CFRoute>[]> => {
    const added = await writeSettings(session, info, locked, { facts, changes, marks: heldUntilRestart(locked) });
    const { metadata } = changes;
    const last = {
      metadata: { labels: metadata.labels, annotations: { ...metadata.annotations, [annotations.applying]: null } },
      ...defined({ spec: lifecycle && { lifecycle } }),
    };
    await writeAsHolder(cluster, locked, pushId, () => last, signal);
    return added;
  };
  const added = await underLock(cluster, app, { pushId, environment: hasEnvironment(changes) }, write, signal);
  // Of an app that does not run, nobody awaits an answer.
  if (app.spec.desiredState === 'STARTED') await untilLoaded(session, changes, added);
  return { ...applied, changed: true };
}

/**
 * Writes the settings of all apps, a few apps at a time. A failed one does not stop the others. The instances that run keep their settings until
 * their app is started again.
 * @throws KfError `forbidden`, `quota`, `conflict`, `accepted`; for several apps one error that names each failed one
 */
export async function applyManifest(prepared: readonly PreparedPush[]): Promise<AppliedApp[]> {
  const { default: pLimit } = await import('p-limit');
  const limit = pLimit(mostAtOnce);
  const settled = await Promise.allSettled(prepared.map((one) => limit(() => applyTo(one))));
  return allOrError(
    prepared.map(({ plan }) => plan),
    settled,
  );
}

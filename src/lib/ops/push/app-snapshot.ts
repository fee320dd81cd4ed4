// The state before a push changes anything: read once, in parallel, and passed to all steps.

import { processesOf, routesOf } from '../../api/app.ts';
import { secretType } from '../../api/core.ts';
import { kinds, labels } from '../../api/group.ts';
import type { Stored } from '../../api/object.ts';
import { packagesOf } from '../../api/packages.ts';
import type { CFApp, CFBuild, CFPackage, CFProcess, CFRoute, CFServiceBinding } from '../../api/types.generated.ts';
import type { AppPlan } from '../../manifest/plan.ts';
import type { SpaceSession } from '../../session/session.ts';
import { isLive } from '../routes/holders.ts';
import { readAutoscalersIfAllowed } from '../apps/autoscalers.ts';
import { appBindings, isRefusedBinding, toldBindings } from '../services/user-provided.ts';

export interface AppSnapshot {
  /** The app does not exist yet. */
  isNew: boolean;
  processes: Stored<CFProcess>[];
  /** Processes whose number of instances an autoscaler sets; read only if the plan names another number. */
  autoscaled: ReadonlySet<string>;
  /** All routes of the space, including the app's own. For a new app they are read only if the space has routes at a host that it wants. */
  routes: Stored<CFRoute>[];
  /** Routes that lead to the app: neither refused nor being deleted. */
  ownRoutes: Stored<CFRoute>[];
  /** Builds of the app, newest first. */
  builds: Stored<CFBuild>[];
  /** Packages of the app whose source is uploaded, newest first; read only for pushes of source code. */
  packages: Stored<CFPackage>[];
  /** The app's environment as stored. */
  env: Record<string, string>;
  hasEnvSecret: boolean;
  /** The app's bindings; read if its status lists some or the plan names services. */
  bindings: Stored<CFServiceBinding>[];
}

const nothing: AppSnapshot = {
  isNew: true,
  processes: [],
  autoscaled: new Set(),
  routes: [],
  ownRoutes: [],
  builds: [],
  packages: [],
  env: {},
  hasEnvSecret: false,
  bindings: [],
};

const newestFirst = (a: Stored<CFBuild>, b: Stored<CFBuild>): number =>
  (b.metadata.creationTimestamp ?? '').localeCompare(a.metadata.creationTimestamp ?? '') || b.metadata.name.localeCompare(a.metadata.name);

async function readEnv({ cluster, space, signal }: SpaceSession, app: Stored<CFApp>): Promise<Pick<AppSnapshot, 'env' | 'hasEnvSecret'>> {
  const name = app.spec.envSecretName ?? '';
  if (name === '') return { env: {}, hasEnvSecret: false };
  const secret = await cluster.get(secretType, space.guid, name, signal);
  const entries = Object.entries(secret?.data ?? {}).map(([key, value]) => [key, Buffer.from(value, 'base64').toString('utf8')]);
  return { env: Object.fromEntries(entries) as Record<string, string>, hasEnvSecret: secret !== undefined };
}

/** A push of an image that names no variables neither reads nor changes any; once the app was deployed, it has the Secret. */
function needsEnv(app: Stored<CFApp>, plan: AppPlan): boolean {
  return plan.lifecycle !== 'docker' || Object.keys(plan.env).length > 0 || (app.spec.currentDropletRef?.name ?? '') === '';
}

/** Packages of the app whose source is uploaded, newest first. */
export async function readPackages({ cluster, space, signal }: SpaceSession, app: Stored<CFApp>): Promise<Stored<CFPackage>[]> {
  const labelSelector = `${labels.appGuid}=${app.metadata.name}`;
  return packagesOf(app, (await cluster.list(kinds.package, { ns: space.guid, labelSelector, signal })).items);
}

/** Images are not built, so no build uses their services. */
async function builtWith(session: SpaceSession, plan: AppPlan, app: Stored<CFApp>): Promise<Stored<CFServiceBinding>[]> {
  return plan.lifecycle === 'docker' ? [] : toldBindings(session, app);
}

/** The autoscaler keeps what it chose: a push does not set the number of such a process. */
async function autoscaledOf(session: SpaceSession, plan: AppPlan, processes: readonly Stored<CFProcess>[]): Promise<ReadonlySet<string>> {
  const differing = processes.filter(({ spec }) =>
    plan.processes.some(({ type, instances = spec.desiredInstances }) => type === spec.processType && instances !== spec.desiredInstances),
  );
  if (differing.length === 0) return new Set();
  const all = await readAutoscalersIfAllowed(session, differing);
  for (const { metadata, spec } of differing) {
    if (!all.has(metadata.name)) continue;
    const message = `The autoscaler of process '${spec.processType}' sets its instances; the number of this push is not used.`;
    session.report({ type: 'warning', message });
  }
  return new Set(all.keys());
}

/** The snapshot of an existing app, as far as the plan needs it; that of a new one is empty. */
export async function readSnapshot(session: SpaceSession, plan: AppPlan, app: Stored<CFApp> | undefined): Promise<AppSnapshot> {
  if (app === undefined) return nothing;
  const { cluster, space, signal } = session;
  const options = { ns: space.guid, labelSelector: `${labels.appGuid}=${app.metadata.name}`, signal };
  const [processes, builds, packages, routes, env, bindings] = await Promise.all([
    cluster.list(kinds.process, options),
    cluster.list(kinds.build, options),
    plan.lifecycle === 'docker' ? [] : readPackages(session, app),
    cluster.list(kinds.route, { ns: space.guid, signal }),
    needsEnv(app, plan) ? readEnv(session, app) : { env: {}, hasEnvSecret: true },
    plan.services.length === 0 ? builtWith(session, plan, app) : appBindings(session, app),
  ]);
  const own = processesOf(app, processes.items);
  return {
    isNew: false,
    processes: own,
    autoscaled: await autoscaledOf(session, plan, own),
    routes: routes.items,
    ownRoutes: routesOf(app, routes.items).filter(isLive),
    builds: builds.items.toSorted(newestFirst),
    packages,
    bindings: bindings.filter((binding) => !isRefusedBinding(binding)),
    ...env,
  };
}

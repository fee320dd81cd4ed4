// Writes the settings of a plan into the cluster, except those of the app itself, which the caller's last patch has.

import type { KfInfo } from '../../api/kf-info.ts';
import type { Stored } from '../../api/object.ts';
import type { CFApp, CFRoute } from '../../api/types.generated.ts';
import { defined } from '../../defined.ts';
import type { AppPlan } from '../../manifest/plan.ts';
import type { SpaceSession } from '../../session/session.ts';
import { ensureRoute, unmapAll } from '../routes/routes.ts';
import { ensureBinding } from '../services/user-provided.ts';
import { lifecycleOf } from './acquire-app.ts';
import type { AppSnapshot } from './app-snapshot.ts';
import type { Changes } from './changes.ts';
import { writeEnv, writeProcesses } from './settings.ts';

/** The part of the app's lifecycle that the plan names, as a merge patch: null removes. Empty: nothing is named. */
export function lifecycleChange(plan: AppPlan): { buildpacks?: string[] | null; stack?: string } {
  const { buildpacks = null, stack } = lifecycleOf(plan).data;
  return defined({ buildpacks: plan.buildpacks && buildpacks, stack: plan.stack === undefined ? undefined : stack });
}

export interface Writing {
  facts: AppSnapshot;
  changes: Changes;
  /** Annotations of each process that changes; null removes. */
  marks?: Record<string, string | null>;
}

/** The app is locked, so no other push writes at the same time. Returns the routes that were added. */
export async function writeSettings(
  session: SpaceSession,
  info: KfInfo,
  app: Stored<CFApp>,
  { facts, changes, marks }: Writing,
): Promise<Stored<CFRoute>[]> {
  const [routes] = await Promise.all([
    Promise.all(changes.routes.map((route) => ensureRoute(session, app, route, facts.routes))),
    writeProcesses(session, info, app, changes.processes, marks),
    writeEnv(session, app, facts, changes.env),
    unmapAll(session, app, changes.unmap),
    ...changes.services.map(({ instance, bindingName }) => ensureBinding(session, app, instance, { bindingName })),
  ]);
  return routes;
}

// Checks before a push writes anything: in parallel, with all problems reported at once, so that a failed push leaves nothing behind.

import { kinds } from '../../api/group.ts';
import type { KfInfo } from '../../api/kf-info.ts';
import type { Stored } from '../../api/object.ts';
import type { CFApp, CFDomain, CFServiceInstance } from '../../api/types.generated.ts';
import { defined } from '../../defined.ts';
import type { AppPlan } from '../../manifest/plan.ts';
import type { RegistryClient } from '../../oci/registry.ts';
import { assertSource } from '../../source/source.ts';
import type { SpaceSession } from '../../session/session.ts';
import { findService, usableDomains } from '../find.ts';
import { fitToBuilder } from './builder-offers.ts';
import { assertDefaultRouteFree } from './default-route.ts';
import { readSnapshot, type AppSnapshot } from './app-snapshot.ts';
import { assertRoom } from './quota.ts';
import { assertSidecarsFit } from './sidecars.ts';
import { assertMayPush, openRegistry } from './rights.ts';
import { assertPlacesLeft, type MappedPlace } from '../routes/destinations.ts';
import { assertRoutesFree } from '../routes/holders.ts';
import { urlOf } from '../routes/routes.ts';
import { needsDomains, wantedRoutes } from './route-plan.ts';

/** A service of the plan that was found. */
export interface FoundService {
  instance: Stored<CFServiceInstance>;
  bindingName?: string;
}

export interface Preflight {
  /** The plan for this installation: a stack of Cloud Foundry is left out. */
  plan: AppPlan;
  facts: AppSnapshot;
  /** Oldest first; empty if the push needs none. */
  domains: readonly Stored<CFDomain>[];
  routes: MappedPlace[];
  services: FoundService[];
  /** Set for a new app that is made from source. */
  registry?: RegistryClient;
}

/** What is done with an app. */
interface Purpose {
  start: boolean;
  /** False: only its settings are written, without a package or a build. */
  code?: boolean;
}

async function findServices(session: SpaceSession, plan: AppPlan): Promise<FoundService[]> {
  return Promise.all(
    plan.services.map(async ({ name, bindingName }) => {
      const instance = await findService(session, name);
      return { instance, ...defined({ bindingName }) };
    }),
  );
}

/** Checks rights, quota and registry for a new app. An existing app has passed these checks before, or they are made when needed. */
async function assertNewAppFits(
  session: SpaceSession,
  info: KfInfo,
  plan: AppPlan,
  { start, code = true }: Purpose,
): Promise<RegistryClient | undefined> {
  if (!code) {
    await assertMayPush(session, plan, false);
    return undefined;
  }
  const [registry] = await Promise.all([
    plan.lifecycle === 'docker' ? undefined : openRegistry(session, info),
    assertMayPush(session, plan),
    assertRoom(session, info, plan, start),
  ]);
  return registry;
}

/** Reads the snapshot, and the domains that the routes need. If the plan names no routes, only the snapshot shows whether the app needs domains. */
async function readPlace(
  session: SpaceSession,
  plan: AppPlan,
  app: Stored<CFApp> | undefined,
): Promise<Pick<Preflight, 'facts' | 'domains' | 'routes'>> {
  const isSure = needsDomains(plan, true) || (app === undefined && needsDomains(plan, false));
  const [facts, early] = await Promise.all([readSnapshot(session, plan, app), isSure ? usableDomains(session) : undefined]);
  const hasRoutes = facts.ownRoutes.length > 0;
  const domains = early ?? (needsDomains(plan, hasRoutes) ? await usableDomains(session) : []);
  const routes = wantedRoutes(plan, domains, hasRoutes);
  const own = await assertRoutesFree(session, routes, facts.routes);
  const { cluster, space, signal } = session;
  const isKnown = app !== undefined || own.length === 0;
  const known = isKnown ? facts.routes : (await cluster.list(kinds.route, { ns: space.guid, signal })).items;
  await assertDefaultRouteFree(session, plan, routes, known);
  assertPlacesLeft(routes, app, known, ({ host, domain, path }) => urlOf({ host, domain: domain.spec.name, path }));
  return { facts: { ...facts, routes: known }, domains, routes };
}

/**
 * @param app the existing app of that name, or undefined
 * @param purpose what is done with it
 * @throws KfError `usage`, `not-found`, `forbidden`, `quota`, `upload`: the errors that would end the push later; nothing is written then
 */
export async function preflight(
  session: SpaceSession,
  info: KfInfo,
  plan: AppPlan,
  app: Stored<CFApp> | undefined,
  purpose: Purpose,
): Promise<Preflight> {
  if (plan.path !== undefined && plan.lifecycle !== 'docker') await assertSource(plan.path, session.signal);
  const [fitted, place, services, registry] = await Promise.all([
    fitToBuilder(session, info, plan),
    readPlace(session, plan, app),
    findServices(session, plan),
    app === undefined ? assertNewAppFits(session, info, plan, purpose) : undefined,
  ]);
  assertSidecarsFit(fitted, place.facts, info);
  return { plan: fitted, ...place, services, ...defined({ registry }) };
}

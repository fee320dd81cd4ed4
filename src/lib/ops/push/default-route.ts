// The default route of an app whose name is no host name. `my_app` gets the host `my-app`, which is also that of the app `my-app`: the gateway would
// spread the requests over both. In cf this cannot happen, because there the host is the name.

import type { Stored } from '../../api/object.ts';
import type { CFRoute } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import type { AppPlan } from '../../manifest/plan.ts';
import type { SpaceSession } from '../../session/session.ts';
import { appNames } from '../rows.ts';
import type { MappedPlace } from '../routes/destinations.ts';
import { isAtPlace, isLive } from '../routes/holders.ts';
import { urlOf } from '../routes/routes.ts';
import { hostFrom } from './route-plan.ts';

const isDefault = ({ routes, defaultRoute }: AppPlan): boolean => defaultRoute && routes.length === 0;

/** The app's name is not the host of its default route. */
const isRenamed = ({ name }: AppPlan): boolean => name.toLowerCase() !== hostFrom(name);

/** In cf the default routes of both differ. An app with another name, such as `my_app-old`, has the route because somebody wants that. */
const isOther = (plan: AppPlan, name: string): boolean =>
  plan.name.toLowerCase() !== name.toLowerCase() && hostFrom(plan.name) === hostFrom(name);

const url = ({ host, domain, path }: MappedPlace): string => urlOf({ host, domain: domain.spec.name, path });

function taken({ name }: AppPlan, place: MappedPlace, other: string): KfError {
  return new KfError('conflict', `The default route of app '${name}' is ${url(place)}, which is a route of app '${other}'.`, {
    hints: [`kf push ${name} --random-route`, `kf push ${name} --no-route`],
  });
}

/**
 * Checks that the default route of an app does not lead to an app that has the same default route by another name.
 * @param places the routes that the app is to get
 * @param known the space's routes at their hosts
 * @throws KfError `conflict`
 */
export async function assertDefaultRouteFree(
  session: SpaceSession,
  plan: AppPlan,
  places: readonly MappedPlace[],
  known: readonly Stored<CFRoute>[],
): Promise<void> {
  const [place] = places;
  if (place === undefined || !isDefault(plan)) return;
  const { destinations = [] } = known.find((route) => isLive(route) && isAtPlace(route, place))?.spec ?? {};
  if (destinations.length === 0) return;
  const names = await appNames(session);
  // An app without a name is deleted.
  const other = destinations.map(({ appRef }) => names.get(appRef.name) ?? plan.name).find((name) => isOther(plan, name));
  if (other !== undefined) throw taken(plan, place, other);
}

/** What one app of a manifest is to get. */
interface PlannedRoutes {
  plan: AppPlan;
  checked: { routes: readonly MappedPlace[] };
}

/**
 * Checks the apps of a manifest against each other, as {@link assertDefaultRouteFree} checks them against the apps of the space.
 * @throws KfError `conflict`
 */
export function assertDefaultRoutesDiffer(apps: readonly PlannedRoutes[]): void {
  for (const { plan, checked } of apps) {
    const [place] = checked.routes;
    if (place === undefined || !isDefault(plan) || !isRenamed(plan)) continue;
    const other = apps.find(
      (app) => app.plan !== plan && isOther(plan, app.plan.name) && app.checked.routes.some((one) => url(one) === url(place)),
    );
    if (other !== undefined) throw taken(plan, place, other.plan.name);
  }
}

// The strategy of changes that ask for none: that of the app, or else of its space. The controller reads the same labels, and writes that of the space
// into the app's status.

import { kinds } from '../../api/group.ts';
import type { Stored } from '../../api/object.ts';
import type { StrategyDefault } from '../../api/deployment-details.ts';
import type { AppDetails } from '../../api/results.ts';
import { defaultStrategyOf, type DefaultStrategy } from '../../api/rollout.ts';
import type { CFApp } from '../../api/types.generated.ts';
import { defined } from '../../defined.ts';
import { isForbidden } from '../../kube/errors.ts';
import type { SpaceSession } from '../../session/session.ts';

/** The default of the app or its space as it is now; undefined when there is none, or when the user may not read the space. */
export async function readDefaultStrategy(session: SpaceSession, app: Stored<CFApp>): Promise<DefaultStrategy | undefined> {
  const own = defaultStrategyOf(app);
  if (own !== undefined) return own;
  const { cluster, org, space, signal } = session;
  try {
    const found = await cluster.get(kinds.space, org.guid, space.guid, signal);
    return found === undefined ? undefined : defaultStrategyOf(found);
  } catch (error) {
    if (isForbidden(error)) return undefined;
    throw error;
  }
}

/** The default as the app's status shows it, without a request. */
function shownDefault(app: Stored<CFApp>): StrategyDefault | undefined {
  const own = defaultStrategyOf(app);
  if (own !== undefined) return { strategy: own, of: 'app' };
  const strategy = app.status?.spaceStrategy;
  return strategy === undefined ? undefined : { strategy, of: 'space' };
}

/** The details of the app with its default. */
export function withDefaultStrategy(details: AppDetails, app: Stored<CFApp>): AppDetails {
  return { ...details, ...defined({ defaultStrategy: shownDefault(app) }) };
}

// Answers a request of the v3 API from the objects of the cluster.

import type { OpEvent } from '../../events.ts';
import { KfError } from '../../errors.ts';
import { isMissingKind } from '../../kube/errors.ts';
import { withParts } from '../../session/overlay.ts';
import type { Session } from '../../session/session.ts';
import { refusalOf } from '../../v3/errors.ts';
import { V3Query } from '../../v3/query.ts';
import { linksTo } from '../../v3/resource.ts';
import { appRoutes } from './apps.ts';
import { objectOf } from './body.ts';
import { deploymentRoutes } from './deployments.ts';
import { eventRoutes } from './events.ts';
import { jobRoutes } from './jobs.ts';
import { placeRoutes } from './places.ts';
import { platformRoutes } from './platform.ts';
import { processRoutes } from './processes.ts';
import { Reader } from './reader.ts';
import { routeOf, V3Answer, type V3Route } from './request.ts';
import { quotaRoutes } from './quotas.ts';
import { revisionRoutes } from './revisions.ts';
import { routeShareRoutes } from './route-shares.ts';
import { routeRoutes } from './routes.ts';
import { serviceRoutes } from './services.ts';
import { sourceRoutes } from './sources.ts';
import { taskRoutes } from './tasks.ts';
import { userRoutes } from './users.ts';

/** Every request that is answered. */
export const v3Routes: readonly V3Route[] = [
  ...platformRoutes,
  ...appRoutes,
  ...processRoutes,
  ...sourceRoutes,
  ...deploymentRoutes,
  ...routeRoutes,
  ...routeShareRoutes,
  ...placeRoutes,
  ...serviceRoutes,
  ...revisionRoutes,
  ...quotaRoutes,
  ...userRoutes,
  ...taskRoutes,
  ...eventRoutes,
  ...jobRoutes,
];

/** These have lines of their own on stdout, where only the answer belongs. */
const talkative: readonly OpEvent['type'][] = ['staging', 'build-log', 'starting-app', 'stopping-app', 'app-stopped'];

const quiet = (session: Session): Session =>
  withParts(session, { report: (event) => (talkative.includes(event.type) ? undefined : session.report(event)) });

export interface V3Request {
  method: string;
  path: string;
  query: URLSearchParams;
  body: string | undefined;
}

/**
 * The answer, also a refusal. @param base the server of the links
 * @throws KfError for what is no answer: a lost connection, an interruption, a cluster without kf
 */
export async function answerV3(session: Session, { method, path, query, body }: V3Request, base: string): Promise<V3Answer> {
  const link = linksTo(base);
  try {
    const { route, part } = routeOf(v3Routes, { method, path, bin: session.bin });
    const reader = new Reader(quiet(session));
    const asked = { reader, link, part, query: new V3Query(path, query), body: () => objectOf(body) };
    const answer = await route.answer(asked);
    return answer instanceof V3Answer ? answer : new V3Answer(200, answer);
  } catch (error) {
    const refusal = error instanceof KfError && !isMissingKind(error) ? refusalOf(error) : undefined;
    if (refusal === undefined) throw error;
    // Without kf in the cluster, nothing is found: that is no answer.
    if (refusal.status === 404 && refusal !== error) await session.info();
    return new V3Answer(refusal.status, refusal.body);
  }
}

// Why something fails, by what the user named.

import type { WhyDetails } from '../../api/results.ts';
import type { SpaceSession } from '../../session/session.ts';
import { findApp, findService } from '../find.ts';
import { findTask } from '../tasks/tasks.ts';
import { whyApp } from './app.ts';
import { newestBuild, whyBuild } from './build.ts';
import { whyRoute, whyService } from './others.ts';
import { whyTask } from './task.ts';

/** What a user asks about: a route, a service, or an app with one of its parts. */
export interface Asked {
  app: string | undefined;
  /** The newest one of the app. */
  build: boolean;
  /** Number of a task of the app. */
  task: number | undefined;
  route: string | undefined;
  service: string | undefined;
  /** A revision of the app. */
  version: number | undefined;
}

/** @throws KfError `not-found` when the named thing does not exist */
export async function why(session: SpaceSession, { app = '', build, task, route, service, version }: Asked): Promise<WhyDetails> {
  if (route !== undefined) return whyRoute(session, route);
  if (service !== undefined) return whyService(session, await findService(session, service));
  const found = await findApp(session, app);
  if (task !== undefined) return whyTask(session, found, await findTask(session, found, task));
  return build ? whyBuild(session, found, await newestBuild(session, found)) : whyApp(session, found, version);
}

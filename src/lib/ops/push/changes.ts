// Decides what a push has to write: what the plan names and the cluster does not have yet. The decision comes before the lock is taken.

import { effectiveCommand, routesOf, webProcess } from '../../api/app.ts';
import { annotations } from '../../api/group.ts';
import { isHeld, isUnapplied, isWhollyHeld } from '../../api/held.ts';
import type { Stored } from '../../api/object.ts';
import { packageMark, unstagedMark } from '../../api/packages.ts';
import type { CFApp, CFRoute } from '../../api/types.generated.ts';
import type { AppPlan, PushPlan } from '../../manifest/plan.ts';
import type { SpaceSession } from '../../session/session.ts';
import { judgeWeb } from '../apps/web-process.ts';
import { isMapped, type MappedPlace } from '../routes/destinations.ts';
import { isTo } from '../services/user-provided.ts';
import type { AppSnapshot } from './app-snapshot.ts';
import type { Artifact } from './artifact.ts';
import type { FoundService } from './preflight.ts';
import { envChanges, metadataChanges, processSteps, type ProcessStep } from './settings.ts';

export interface Changes {
  processes: ProcessStep[];
  env: Record<string, string>;
  metadata: ReturnType<typeof metadataChanges>;
  /** Routes that do not lead to the app yet, or with another protocol. */
  routes: MappedPlace[];
  /** Service instances that are to be bound to the app. */
  services: FoundService[];
  /**
   * The app must restart: it gets another droplet, whose image and settings may be those of a version that still exists, with variables and services of
   * an earlier time; or its variables or services were changed since it was started last.
   */
  restart: boolean;
  /** Routes that the app loses. */
  unmap: Stored<CFRoute>[];
  /** The app gets another droplet. */
  droplet: boolean;
  /** Annotations that say which package is built next; null removes one. */
  marks: Record<string, string | null>;
  /** The app is to be started, or with `--no-start` stopped. */
  state: boolean;
}

export interface ChangesInput {
  session: SpaceSession;
  plan: AppPlan;
  push: PushPlan;
  services: FoundService[];
  routes: MappedPlace[];
  facts: AppSnapshot;
  app: Stored<CFApp>;
  artifact: Artifact;
}

/**
 * Compares the plan with the cluster. Reports when the build has no web process.
 * @throws KfError `build` when the build found no process at all, and one is to be started
 */
export function decideChanges({ session, plan, push, services, routes, facts, app, artifact }: ChangesInput): Changes {
  const { build, source: pushedPackage, packages } = artifact;
  const { start, flags } = push;
  const web = build === undefined ? undefined : { name: plan.name, build, hasCommand: hasCommand(plan, facts), start, flags };
  // Without a build nothing is known yet: the start that builds the package decides.
  const startsWeb = web === undefined || judgeWeb(session, web);
  const droplet = build !== undefined && app.spec.currentDropletRef?.name !== build.metadata.name;
  const isStarted = app.spec.desiredState === 'STARTED';
  const hasOtherEnvironment = isUnapplied(app);
  const waits = hasOtherEnvironment || isWhollyHeld(app) || facts.processes.some((process) => isHeld(app, process));
  return {
    processes: processSteps(build === undefined ? withWeb(plan) : plan, facts, startsWeb),
    env: envChanges(plan, facts),
    metadata: metadataChanges(plan, app),
    routes: routes.filter((place) => !facts.ownRoutes.some((route) => isMapped(route, app, place))),
    services: services.filter(({ instance }) => !artifact.bindings.some((binding) => isTo(binding, instance))),
    restart: hasOtherEnvironment || droplet,
    // A refused route is unmapped too: it would lead to the app as soon as it gets its address.
    unmap: plan.noRoute ? routesOf(app, facts.routes).filter(({ metadata }) => metadata.deletionTimestamp === undefined) : [],
    droplet,
    marks: {
      [annotations.unstaged]: build === undefined ? unstagedMark(pushedPackage, app) : null,
      [annotations.package]: packageMark(pushedPackage, packages),
    },
    // A droplet that `set-droplet` chose waits for a start, and so do settings, also those of a push that ended before its last write.
    state: push.start ? !isStarted || waits || app.status?.deployment?.phase !== 'Serving' : isStarted,
  };
}

/**
 * The plan with a web process, which every app has. The controller creates it from the droplet. Without a droplet the push creates it, so that the app
 * can be scaled before its first start.
 */
function withWeb(plan: AppPlan): AppPlan {
  const isNamed = plan.processes.some(({ type }) => type === webProcess);
  return isNamed ? plan : { ...plan, processes: [{ type: webProcess }, ...plan.processes] };
}

/** Variables or services change, which only a start gives to instances. */
export const hasEnvironment = ({ env, services }: Pick<Changes, 'env' | 'services'>): boolean =>
  Object.keys(env).length + services.length > 0;

/** True when there is nothing to write except perhaps the marks. */
export function isNothing(changes: Changes): boolean {
  const { processes, env, metadata, routes, services, unmap, droplet, state } = changes;
  const entries = [env, metadata.labels, metadata.annotations].reduce((sum, record) => sum + Object.keys(record).length, 0);
  return processes.length + entries + routes.length + services.length + unmap.length === 0 && !droplet && !state;
}

/** True when the app has the marks already. */
export function isMarked({ metadata }: Stored<CFApp>, { marks }: Changes): boolean {
  return Object.entries(marks).every(([name, value]) => (metadata.annotations?.[name] ?? null) === value);
}

/** True when the plan or the app's web process has a command. */
function hasCommand(plan: AppPlan, facts: AppSnapshot): boolean {
  const { command } = plan.processes.find(({ type }) => type === webProcess) ?? {};
  const present = facts.processes.find(({ spec }) => spec.processType === webProcess);
  return (command ?? '') !== '' || (present !== undefined && effectiveCommand(present) !== undefined);
}

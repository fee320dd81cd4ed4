// What a push has to write, decided before the lock is taken: what the plan names and the cluster does not have yet.

import { effectiveCommand, webProcess } from '../../api/app.ts';
import { annotations } from '../../api/group.ts';
import type { Stored } from '../../api/object.ts';
import { packageMark, unstagedMark } from '../../api/packages.ts';
import type { CFApp } from '../../api/types.generated.ts';
import type { AppPlan, PushPlan } from '../../manifest/plan.ts';
import type { SpaceSession } from '../../session/session.ts';
import { judgeWeb } from '../apps/web-process.ts';
import { isTo } from '../services/user-provided.ts';
import type { AppSnapshot } from './app-snapshot.ts';
import type { Artifact } from './artifact.ts';
import type { FoundService } from './preflight.ts';
import type { WantedRoute } from './route-plan.ts';
import { envChanges, metadataChanges, processSteps, type ProcessStep } from './settings.ts';

export interface Changes {
  processes: ProcessStep[];
  env: Record<string, string>;
  metadata: ReturnType<typeof metadataChanges>;
  routes: WantedRoute[];
  /** To be bound. */
  services: FoundService[];
  /** An app with services gets another droplet: they may be all that is new about it, so it starts anew even where the image is the same. */
  restart: boolean;
  unmap: boolean;
  droplet: boolean;
  /** Annotations that say which package is built next; null removes. */
  marks: Record<string, string | null>;
  /** It is to be started, or with `--no-start` stopped. */
  state: boolean;
}

export interface Decision {
  session: SpaceSession;
  plan: AppPlan;
  push: PushPlan;
  services: FoundService[];
  routes: WantedRoute[];
  facts: AppSnapshot;
  app: Stored<CFApp>;
  artifact: Artifact;
}

/** @throws KfError `build` when the build found no process at all, and one is to be started */
export function decideChanges({ session, plan, push, services, routes, facts, app, artifact }: Decision): Changes {
  const { build, source: chosen, packages } = artifact;
  const { start, flags } = push;
  const judged = build === undefined ? undefined : { name: plan.name, build, hasCommand: hasCommand(plan, facts), start, flags };
  // Of a package that is built later its start judges.
  const startsWeb = judged === undefined || judgeWeb(session, judged);
  const droplet = build !== undefined && app.spec.currentDropletRef?.name !== build.metadata.name;
  const isStarted = app.spec.desiredState === 'STARTED';
  return {
    processes: processSteps(build === undefined ? withWeb(plan) : plan, facts, startsWeb),
    env: envChanges(plan, facts),
    metadata: metadataChanges(plan, app),
    routes: routes.filter((route) => !isMapped(facts, route)),
    services: services.filter(({ instance }) => !artifact.bindings.some((binding) => isTo(binding, instance))),
    restart: droplet && artifact.bindings.length > 0,
    unmap: plan.noRoute && facts.ownRoutes.length > 0,
    droplet,
    marks: {
      [annotations.unstaged]: build === undefined ? unstagedMark(chosen, app) : null,
      [annotations.package]: packageMark(chosen, packages),
    },
    state: push.start ? !isStarted || app.status?.deployment?.phase !== 'Serving' : isStarted,
  };
}

/** Every app has a web process; without a droplet only the push makes it, so that it can be scaled before the first start. */
function withWeb(plan: AppPlan): AppPlan {
  const isNamed = plan.processes.some(({ type }) => type === webProcess);
  return isNamed ? plan : { ...plan, processes: [{ type: webProcess }, ...plan.processes] };
}

/** Nothing differs but perhaps the marks. */
export function isNothing(changes: Changes): boolean {
  const { processes, env, metadata, routes, services, unmap, droplet, state } = changes;
  const named = [env, metadata.labels, metadata.annotations].reduce((sum, entries) => sum + Object.keys(entries).length, 0);
  return processes.length + named + routes.length + services.length === 0 && !unmap && !droplet && !state;
}

/** The app has the marks already. */
export function isMarked({ metadata }: Stored<CFApp>, { marks }: Changes): boolean {
  return Object.entries(marks).every(([name, value]) => (metadata.annotations?.[name] ?? null) === value);
}

/** The web process has a command of its own or of the plan's. */
function hasCommand(plan: AppPlan, facts: AppSnapshot): boolean {
  const { command } = plan.processes.find(({ type }) => type === webProcess) ?? {};
  const present = facts.processes.find(({ spec }) => spec.processType === webProcess);
  return (command ?? '') !== '' || (present !== undefined && effectiveCommand(present) !== undefined);
}

function isMapped(facts: AppSnapshot, { host, domain, path }: WantedRoute): boolean {
  return facts.ownRoutes.some(
    ({ spec }) =>
      spec.domainRef.name === domain.metadata.name &&
      (spec.host ?? '').toLowerCase() === host.toLowerCase() &&
      (spec.path ?? '').toLowerCase() === path.toLowerCase(),
  );
}

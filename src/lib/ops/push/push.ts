// `kf push`: claim, make the artifact, write the settings under a lock, switch, wait for the verdict.

import { randomUUID } from 'node:crypto';
import { appRevOf, webProcess } from '../../api/app.ts';
import { annotations } from '../../api/group.ts';
import { requireCompatible, type KfInfo } from '../../api/kf-info.ts';
import type { CFApp, CFBuild, CFRoute } from '../../api/types.generated.ts';
import type { AppPlan, PushPlan } from '../../manifest/plan.ts';
import type { SpaceSession } from '../../session/session.ts';
import { kfVersion } from '../../version.ts';
import type { KnownOfApp } from '../apps/details.ts';
import { findLabelledApp, listDomainObjects } from '../find.ts';
import { ensureRoute, unmapAll } from '../routes/routes.ts';
import { bindService, boundInstances } from '../services/user-provided.ts';
import { startTimeoutMs, waitForDeployment, type VerdictOptions } from '../apps/rollout-wait.ts';
import type { AppFollower } from './app-follower.ts';
import { makeArtifact } from './artifact.ts';
import { claimApp, lifecycleOf } from './acquire-app.ts';
import { readFacts, type AppFacts } from './app-snapshot.ts';
import { lockSettings, writeAsHolder } from './lock.ts';
import { preflight, type FoundService, type Preflight } from './preflight.ts';
import { needsDomains, wantedRoutes, type WantedRoute } from './route-plan.ts';
import { judgeWeb } from './web-process.ts';
import { envChanges, metadataChanges, processSteps, writeEnv, writeProcesses, type ProcessStep } from './settings.ts';

export interface PushedApp {
  name: string;
  guid: string;
  /** Nothing differed: no package, no build, no restart. */
  unchanged: boolean;
  built: boolean;
  layerBytesSent: number;
  droplet: string;
  app: CFApp;
  /** What the push has read of it, for `describeApp`. */
  known: KnownOfApp;
}

export interface PushOptions {
  /** Build and roll although nothing differs. */
  force: boolean;
}

/** What has to be written; decided before the lock is taken. */
interface Changes {
  processes: ProcessStep[];
  env: Record<string, string>;
  metadata: ReturnType<typeof metadataChanges>;
  routes: WantedRoute[];
  services: FoundService[];
  unmap: boolean;
  droplet: boolean;
  /** It is to be started, or with `--no-start` stopped. */
  state: boolean;
}

async function decide(
  { session, plan, push, checked: { services } }: PreparedPush,
  facts: AppFacts,
  app: CFApp,
  build: CFBuild,
  wanted: WantedRoute[],
): Promise<Changes> {
  const droplet = build.metadata.name ?? '';
  const startsWeb = judgeWeb(session, plan, facts, { build, start: push.start });
  const isStarted = app.spec.desiredState === 'STARTED';
  const bound = plan.services.length === 0 || facts.isNew ? new Map<string, string>() : await boundInstances(session, app);
  return {
    processes: processSteps(plan, facts, startsWeb),
    env: envChanges(plan, facts),
    metadata: metadataChanges(plan, app),
    routes: wanted.filter((route) => !isMapped(facts, route)),
    services: services.filter(({ name, instance }) => bound.get(name) !== instance.metadata.name),
    unmap: plan.noRoute && facts.ownRoutes.length > 0,
    droplet: app.spec.currentDropletRef?.name !== droplet,
    state: push.start ? !isStarted || app.status?.deployment?.phase !== 'Serving' : isStarted,
  };
}

function isMapped(facts: AppFacts, { host, domain, path }: WantedRoute): boolean {
  return facts.ownRoutes.some(
    ({ spec }) =>
      spec.domainRef.name === domain.metadata.name &&
      (spec.host ?? '').toLowerCase() === host.toLowerCase() &&
      (spec.path ?? '').toLowerCase() === path.toLowerCase(),
  );
}

function isNothing(changes: Changes): boolean {
  const { processes, env, metadata, routes, services, unmap, droplet, state } = changes;
  const named = [env, metadata.labels, metadata.annotations].reduce((sum, entries) => sum + Object.keys(entries).length, 0);
  return processes.length + named + routes.length + services.length === 0 && !unmap && !droplet && !state;
}

/** Everything but the switch itself. The app is locked, so no other push writes at the same time. Returns the routes that were added. */
async function writeSettings(session: SpaceSession, info: KfInfo, app: CFApp, facts: AppFacts, changes: Changes): Promise<CFRoute[]> {
  const [routes] = await Promise.all([
    Promise.all(changes.routes.map((route) => ensureRoute(session, app, route, facts.routes))),
    writeProcesses(session, info, app, changes.processes),
    writeEnv(session, app, facts, changes.env),
    changes.unmap ? unmapAll(session, app, facts.ownRoutes) : undefined,
    ...changes.services.map(({ instance, bindingName }) =>
      bindService(session, app, instance, bindingName === undefined ? {} : { bindingName }),
    ),
  ]);
  return routes;
}

/** The one patch that makes the new state the app's: droplet, started or not, deploy-id; the lock goes with it. */
function switchApp(
  session: SpaceSession,
  app: CFApp,
  plan: AppPlan,
  droplet: string,
  deploy: { id: string; newRev: boolean; start: boolean; metadata: Changes['metadata'] },
): Promise<CFApp> {
  const lifecycle = lifecycleOf(plan);
  const data = {
    ...(plan.buildpacks === undefined ? {} : { buildpacks: lifecycle.data.buildpacks ?? null }),
    ...(plan.stack === undefined ? {} : { stack: lifecycle.data.stack }),
  };
  const patch = (live: CFApp) => {
    const next = String(appRevOf(live) + 1);
    const isStop = !deploy.start && live.spec.desiredState === 'STARTED';
    const rev = isStop
      ? { [annotations.appRev]: next, [annotations.lastStopAppRev]: next }
      : deploy.newRev
        ? { [annotations.appRev]: next }
        : {};
    return {
      metadata: {
        labels: deploy.metadata.labels,
        annotations: { ...deploy.metadata.annotations, [annotations.deployId]: deploy.id, [annotations.applying]: null, ...rev },
      },
      spec: {
        currentDropletRef: { name: droplet },
        desiredState: deploy.start ? 'STARTED' : 'STOPPED',
        ...(Object.keys(data).length === 0 ? {} : { lifecycle: { data } }),
      },
    };
  };
  return writeAsHolder(session.cluster, app, deploy.id, patch, session.signal);
}

/** A push that has been looked at, with nothing written. */
export interface PreparedPush {
  session: SpaceSession;
  info: KfInfo;
  /** As this installation can follow it. */
  plan: AppPlan;
  push: PushPlan;
  found: CFApp | undefined;
  checked: Preflight;
}

/** Writes settings and switches; on any failure the lock is given back at once. */
async function apply(
  prepared: PreparedPush,
  app: CFApp,
  facts: AppFacts,
  changes: Changes,
  target: { droplet: string; pushId: string; force: boolean },
): Promise<{ switched: CFApp; routes: CFRoute[] }> {
  const { session, info, plan } = prepared;
  const locked = await lockSettings(session.cluster, app, target.pushId, session.signal);
  try {
    const added = await writeSettings(session, info, locked, facts, changes);
    const newRev = target.force || Object.keys(changes.env).length > 0 || changes.services.length > 0;
    const deploy = {
      id: target.pushId,
      newRev: newRev && app.spec.desiredState === 'STARTED',
      start: prepared.push.start,
      metadata: changes.metadata,
    };
    const switched = await switchApp(session, locked, plan, target.droplet, deploy);
    return { switched, routes: [...(changes.unmap ? [] : facts.ownRoutes), ...added] };
  } catch (error) {
    const release = () => ({ metadata: { annotations: { [annotations.applying]: null } } });
    await writeAsHolder(session.cluster, locked, target.pushId, release).catch(() => undefined);
    throw error;
  }
}

async function verdict({ session, plan, push }: PreparedPush, app: CFApp, pushId: string, follower: AppFollower): Promise<CFApp> {
  const { reporter, cluster, env, signal, bin } = session;
  reporter.say();
  reporter.say(`Waiting for app ${plan.name} to start...`);
  reporter.say();
  const web = plan.processes.find((process) => process.type === webProcess);
  const timeoutMs = startTimeoutMs(env, web?.timeoutSeconds);
  follower.wrote(app);
  const watch: VerdictOptions['watch'] = (check, how) => follower.watch(check, how);
  return (await waitForDeployment(cluster, app, pushId, { timeoutMs, reporter, signal, bin, watch, firstInstance: !push.wait })).app;
}

/** The controller has worked it out. */
const hasAddress = ({ status }: CFRoute): boolean => (status?.uri ?? '') !== '';

function unchanged(pushed: Omit<PushedApp, 'unchanged' | 'app'>, { processes, ownRoutes: routes }: AppFacts, app: CFApp): PushedApp {
  return { ...pushed, unchanged: true, app, known: { ...pushed.known, processes, routes, withoutUsage: true } };
}

/** Facts and routes of an app that others changed since the preflight. */
async function readAgain(session: SpaceSession, { plan, domains }: Preflight, app: CFApp): Promise<Pick<Preflight, 'facts' | 'routes'>> {
  const facts = await readFacts(session, plan, app);
  const hasRoutes = facts.ownRoutes.length > 0;
  const known = domains.length === 0 && needsDomains(plan, hasRoutes) ? await listDomainObjects(session) : domains;
  return { facts, routes: wantedRoutes(plan, known, hasRoutes) };
}

/** Looks at everything that a push of the app needs. @throws KfError `usage`, `not-found`, `forbidden`, `quota`, `upload`; nothing is written then */
export async function preparePush(session: SpaceSession, push: PushPlan, app: AppPlan): Promise<PreparedPush> {
  const [info, found] = await Promise.all([session.info(), findLabelledApp(session, app.name)]);
  requireCompatible(info, kfVersion());
  const checked = await preflight(session, info, app, { app: found, start: push.start });
  return { session, info, plan: checked.plan, push, found, checked };
}

/**
 * Pushes one app of a plan.
 * @throws KfError `forbidden`, `upload`, `build`, `start`, `timeout`, `conflict` (a later push, or a name taken), `accepted` (no controller)
 */
export async function pushApp(prepared: PreparedPush, options: PushOptions): Promise<PushedApp> {
  const { session, info, plan, push, found, checked } = prepared;
  const { registry } = checked;
  const pushId = randomUUID();
  const { follower, asFound } = await claimApp(session, plan, found, pushId);
  try {
    // What another push wrote meanwhile is among the facts: its settings must not survive beside this one's source.
    const { facts, routes } = asFound ? checked : await readAgain(session, checked, follower.app);
    const input = { session, info, plan, facts, follower, pushId, force: options.force };
    const artifact = await makeArtifact(registry === undefined ? input : { ...input, registry });
    const droplet = artifact.build.metadata.name ?? '';
    const result = {
      name: plan.name,
      guid: follower.app.metadata.name ?? '',
      built: artifact.wasBuilt,
      layerBytesSent: artifact.layerBytesSent,
      droplet,
      known: { build: artifact.build, ...(plan.docker === undefined ? {} : { image: plan.docker.image }) },
    };
    const changes = await decide(prepared, facts, follower.app, artifact.build, routes);
    const sayApplied = (): void => (push.manifest === undefined ? undefined : session.reporter.say('Manifest applied'));
    if (isNothing(changes) && !options.force) {
      sayApplied();
      return unchanged(result, facts, follower.app);
    }
    session.reporter.step('Writing settings');
    const { switched, routes: mapped } = await apply(prepared, follower.app, facts, changes, { droplet, pushId, force: options.force });
    session.reporter.done();
    sayApplied();
    if (!push.start) return { ...result, unchanged: false, app: switched };
    const known = {
      ...result.known,
      withoutUsage: changes.droplet || changes.state,
      ...(mapped.every(hasAddress) ? { routes: mapped } : {}),
    };
    return { ...result, known, unchanged: false, app: await verdict(prepared, switched, pushId, follower) };
  } finally {
    follower.stop();
  }
}

// Makes the app's next droplet: stages the package that waits for a start, or the one that was pushed last, and replaces the present droplet.

import { appRevOf, processesOf, routesOf } from '../../api/app.ts';
import { annotations, kinds, labels } from '../../api/group.ts';
import type { KfInfo } from '../../api/kf-info.ts';
import type { Stored } from '../../api/object.ts';
import { isAwaited, isUnstaged, packageMark, packagesOf, packageToBuild, waitingMark } from '../../api/packages.ts';
import type { DropletSummary } from '../../api/results.ts';
import type { CFApp, CFBuild, CFPackage } from '../../api/types.generated.ts';
import { rolloutPatch, type RolloutOptions } from '../../api/rollout.ts';
import { defined } from '../../defined.ts';
import { KfError } from '../../errors.ts';
import type { SpaceSession } from '../../session/session.ts';
import { buildKey, reusableBuild } from '../builds/build-key.ts';
import { dropletSummary } from './droplets.ts';
import { stagePackage, type BuildRequest } from '../builds/stage.ts';
import { assertUpdateFits } from './update-room.ts';
import { toldBindings } from '../services/user-provided.ts';
import { changeApp, newDeployId } from './changes.ts';
import { ensureEnvSecret, hasWrittenVariables, readVariables } from './env.ts';
import { settleWeb } from './web-process.ts';

/** True when a start needs a build first: for a package that was pushed with `--no-start`, or because no build has succeeded yet. */
export function needsStaging(app: Stored<CFApp>): boolean {
  return isUnstaged(app) || (app.spec.currentDropletRef?.name ?? '') === '';
}

const byApp = ({ space, signal }: SpaceSession, app: Stored<CFApp>) => ({
  ns: space.guid,
  labelSelector: `${labels.appGuid}=${app.metadata.name}`,
  signal,
});

/** A build of the same package with the same inputs: of an interrupted start, or of another one that is running. */
async function earlierBuild(session: SpaceSession, { app, packageGuid, key }: BuildRequest): Promise<Stored<CFBuild> | undefined> {
  const { items } = await session.cluster.list(kinds.build, byApp(session, app));
  const own = items.filter(({ spec }) => spec.packageRef.name === packageGuid && spec.appRef.name === app.metadata.name);
  if (app.spec.lifecycle.type === 'docker')
    return own.find(({ status, metadata }) => status?.state !== 'FAILED' && metadata.deletionTimestamp === undefined);
  return key === undefined ? undefined : reusableBuild(own, key);
}

/**
 * The command that pushes the app again. Only the user knows where its source is; without a flag for its image, a push would take the working
 * directory.
 */
function pushOf({ bin }: SpaceSession, { spec: { displayName, lifecycle } }: Stored<CFApp>): string {
  const push = `${bin} push ${displayName}`;
  return lifecycle.type === 'docker' ? `${push} --docker-image IMAGE` : `In the folder of the app's source: ${push}`;
}

async function requestFor(session: SpaceSession, info: KfInfo, app: Stored<CFApp>, source: Stored<CFPackage>): Promise<BuildRequest> {
  const { lifecycle } = app.spec;
  const again = pushOf(session, app);
  const request = { app, packageGuid: source.metadata.name, lifecycle, again };
  if (lifecycle.type === 'docker') return request;
  const [env, bindings] = await Promise.all([readVariables(session, app), toldBindings(session, app)]);
  const contentHash = source.metadata.annotations?.[annotations.contentHash];
  const { buildpacks = [], stack } = lifecycle.data;
  const key = contentHash === undefined ? undefined : buildKey(info, { contentHash, buildpacks, stack, env, bindings });
  return { ...request, contentHash, key, env };
}

/** The fields that choose the app's droplet and package. */
const choiceOf = ({ spec, metadata }: Stored<CFApp>): string =>
  JSON.stringify([spec.currentDropletRef?.name, metadata.annotations?.[annotations.unstaged], metadata.annotations?.[annotations.package]]);

/** Throws when somebody gave the app another droplet or package since it was read; the droplet of this build is accepted. */
function assertSameChoice(read: Stored<CFApp>, current: Stored<CFApp>, droplet: string): void {
  if (choiceOf(current) === choiceOf(read) || current.spec.currentDropletRef?.name === droplet) return;
  const by = current.metadata.annotations?.[annotations.changedBy] ?? 'somebody';
  const name = current.spec.displayName;
  throw new KfError('conflict', `App '${name}' was pushed or built again by ${by} meanwhile; this build does not replace that.`, {
    hints: [`kf app ${name}`],
    details: { reason: 'superseded', by },
  });
}

/** The app with its new droplet, as it was written. */
export interface Staged {
  app: Stored<CFApp>;
  /** The id of the change whose start is awaited. */
  deployId: string;
}

export interface StageOptions {
  /** Build even if an equal build exists. */
  again: boolean;
  rollout?: RolloutOptions;
  /** Build this package of the present droplet again. What a later start or restage builds stays as it is. */
  packageGuid?: string;
}

/** The new instances run beside the old ones: whether they may is known before the build. */
async function assertRestageFits(session: SpaceSession, app: Stored<CFApp>, rollout: RolloutOptions): Promise<void> {
  if (app.spec.desiredState !== 'STARTED') return;
  const { cluster, space, signal } = session;
  const [processes, routes] = await Promise.all([
    cluster.list(kinds.process, byApp(session, app)),
    cluster.list(kinds.route, { ns: space.guid, signal }),
  ]);
  const update = { app, processes: processesOf(app, processes.items), routes: routesOf(app, routes.items), rollout };
  await assertUpdateFits(session, update, `${session.bin} restage ${app.spec.displayName}`);
}

interface SourceToStage {
  info: KfInfo;
  /** The app's packages, newest first. */
  packages: Stored<CFPackage>[];
  source: Stored<CFPackage>;
}

/** The package to stage. Without a GUID: the one that restage builds. */
async function readSource(session: SpaceSession, app: Stored<CFApp>, guid: string | undefined): Promise<SourceToStage> {
  const [info, { items }] = await Promise.all([session.info(), session.cluster.list(kinds.package, byApp(session, app))]);
  const packages = packagesOf(app, items);
  const source = guid === undefined ? packageToBuild(app, packages) : packages.find(({ metadata }) => metadata.name === guid);
  if (source === undefined) throw guid === undefined ? nothingPushed(session, app) : noPackage(session, app, guid);
  return { info, packages, source };
}

/**
 * Stages the app's next droplet, sets it and marks the app as started. Wait for the start with `waitUntilServing`.
 * @throws KfError `failed` when nothing was pushed, `not-found` when the app has no such package, those of {@link stagePackage}, `conflict` when a
 * push came in between
 */
export async function stageAndStart(
  session: SpaceSession,
  app: Stored<CFApp>,
  { again, rollout = {}, packageGuid }: StageOptions,
): Promise<Staged> {
  const { info, packages, source } = await readSource(session, app, packageGuid);
  const request = await requestFor(session, info, app, source);
  const earlier = again ? undefined : await earlierBuild(session, request);
  if (earlier === undefined) await assertRestageFits(session, app, rollout);
  const build = await stagePackage(session, info, request, { earlier });
  await settleWeb(session, app, build);
  // A first push whose build failed has written no variables yet. Those that were written are lost when their Secret is gone, which the start says.
  if (!(await hasWrittenVariables(session, app))) await ensureEnvSecret(session, app);
  const deployId = newDeployId();
  const droplet = build.metadata.name;
  const changed = await changeApp(session, app, (current) => {
    assertSameChoice(app, current, droplet);
    if (!again && isDone(current, droplet)) return undefined;
    return {
      spec: {
        currentDropletRef: { name: droplet },
        desiredState: 'STARTED',
        ...defined({ rollout: rolloutPatch(current, deployId, rollout) }),
      },
      annotations: {
        ...(packageGuid === undefined
          ? { [annotations.unstaged]: null, [annotations.package]: packageMark(source.metadata.name, packages) }
          : { [annotations.unstaged]: waitingMark(current, { built: packageGuid, droplet }) }),
        [annotations.appRev]: String(appRevOf(current) + 1),
        [annotations.deployId]: deployId,
      },
    };
  });
  return { app: changed, deployId: changed.metadata.annotations?.[annotations.deployId] ?? deployId };
}

/**
 * Stages one package, and changes neither the app's droplet nor what runs. Without a GUID: the one that restage would build.
 * @throws KfError `not-found` when the app has no such package, `failed` when nothing was pushed, those of {@link stagePackage}
 */
export async function stageOnly(session: SpaceSession, app: Stored<CFApp>, guid?: string): Promise<DropletSummary> {
  const { info, source } = await readSource(session, app, guid);
  const build = await stagePackage(session, info, await requestFor(session, info, app, source));
  await changeApp(session, app, (current) =>
    isAwaited(source.metadata.name, current) ? { annotations: { [annotations.unstaged]: null } } : undefined,
  );
  return dropletSummary(app, build);
}

function noPackage({ bin }: SpaceSession, { spec: { displayName } }: Stored<CFApp>, guid: string): KfError {
  return new KfError('not-found', `Package with guid '${guid}' not found in app '${displayName}'.`, {
    hints: [`${bin} packages ${displayName}`],
  });
}

/** Another start that waited for the same build finished first. */
const isDone = (app: Stored<CFApp>, droplet: string): boolean =>
  app.spec.currentDropletRef?.name === droplet && app.spec.desiredState === 'STARTED' && !isUnstaged(app);

function nothingPushed(session: SpaceSession, app: Stored<CFApp>): KfError {
  return new KfError('failed', `App '${app.spec.displayName}' has nothing to run yet: nothing was pushed.`, {
    hints: [pushOf(session, app)],
  });
}

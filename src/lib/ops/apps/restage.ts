// restage: builds the newest package again, then makes its droplet the app's.

import { randomUUID } from 'node:crypto';
import { appRevOf } from '../../api/app.ts';
import { isReady } from '../../api/conditions.ts';
import { secretType } from '../../api/core.ts';
import { annotations, fieldManagers, kinds, labels } from '../../api/group.ts';
import type { CFApp, CFBuild, CFPackage } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import type { SpaceSession } from '../../session/session.ts';
import { buildBuild, buildBuildEnvSecret, buildEnvSecretName } from '../../../templates/build.ts';
import { changeApp, newDeployId } from './changes.ts';
import { readEnv } from './env.ts';
import { buildKey } from '../builds/build-key.ts';
import { waitForBuild } from '../builds/build.ts';

/** The newest package that has its source. @throws KfError when the app was never pushed */
async function newestPackage(session: SpaceSession, app: CFApp): Promise<CFPackage> {
  const { cluster, space, signal, bin } = session;
  const { items } = await cluster.list(kinds.package, { ns: space.guid, labelSelector: `${labels.appGuid}=${app.metadata.name}`, signal });
  const [newest] = items
    .filter((item) => (item.spec.source?.registry.image ?? '') !== '' && (isReady(item) || item.spec.type === 'docker'))
    .toSorted((a, b) => (b.metadata.creationTimestamp ?? '').localeCompare(a.metadata.creationTimestamp ?? ''));
  if (newest !== undefined) return newest;
  const name = app.spec.displayName;
  throw new KfError('failed', `App '${name}' has no package to build: nothing was pushed yet.`, { hints: [`${bin} push ${name}`] });
}

async function startBuild(session: SpaceSession, app: CFApp, source: CFPackage): Promise<CFBuild> {
  const { cluster, signal } = session;
  const [info, env, changedBy] = await Promise.all([session.info(), readEnv(session, app), session.changedBy()]);
  const author = { changedBy, now: new Date() };
  const guid = randomUUID();
  const contentHash = source.metadata.annotations?.[annotations.contentHash];
  const { buildpacks = [], stack } = app.spec.lifecycle.data;
  const wanted = buildBuild(
    {
      guid,
      app,
      packageGuid: source.metadata.name ?? '',
      lifecycle: app.spec.lifecycle,
      stagingMemoryMB: info.staging.memoryMB,
      stagingDiskMB: info.staging.diskMB,
      contentHash,
      buildKey: contentHash === undefined ? undefined : buildKey(info, { contentHash, buildpacks, stack, env: env.variables }),
      envSecretName: buildEnvSecretName(guid),
    },
    author,
  );
  const write = { fieldManager: fieldManagers.cli, signal };
  const build = await cluster.create(kinds.build, wanted, write);
  await cluster.create(secretType, buildBuildEnvSecret(build, env.variables, author), write);
  return build;
}

/** Builds and sets the droplet. The app starts; the wait for that is `waitUntilServing`. */
export async function restageApp(session: SpaceSession, app: CFApp): Promise<{ app: CFApp; deployId: string; build: string }> {
  const build = await startBuild(session, app, await newestPackage(session, app));
  const never = new Promise<never>(() => undefined);
  await waitForBuild(session, app.spec.displayName, build, never);
  const deployId = newDeployId();
  const name = build.metadata.name ?? '';
  const changed = await changeApp(session, app, (current) => ({
    spec: { currentDropletRef: { name }, desiredState: 'STARTED' },
    annotations: { [annotations.appRev]: String(appRevOf(current) + 1), [annotations.deployId]: deployId },
  }));
  return { app: changed, deployId, build: name };
}

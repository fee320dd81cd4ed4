// Staging: creates a CFBuild of a package with its environment, or finds an earlier one, and waits for its end. For push, start, restart and
// restage.

import { randomUUID } from 'node:crypto';
import { secretType } from '../../api/core.ts';
import { annotations, kinds } from '../../api/group.ts';
import type { KfInfo } from '../../api/kf-info.ts';
import type { Stored } from '../../api/object.ts';
import type { CFApp, CFBuild, Lifecycle } from '../../api/types.generated.ts';
import { isAlreadyExists } from '../../kube/errors.ts';
import type { SpaceSession } from '../../session/session.ts';
import { buildBuild, buildBuildEnvSecret, buildEnvSecretName } from '../../../templates/build.ts';
import type { Authorship } from '../../../templates/metadata.ts';
import { waitForBuild } from './build.ts';

export interface BuildRequest {
  app: Stored<CFApp>;
  packageGuid: string;
  lifecycle: Lifecycle;
  /** The command that repeats the build, for a hint. */
  again: string;
  /** Only for source code. */
  contentHash?: string | undefined;
  key?: string | undefined;
  /** Left out for images, which are not built. */
  env?: Record<string, string> | undefined;
  pushId?: string | undefined;
}

/** Creates the objects of a build. @param request `env` is put into a Secret, for which the build waits */
export async function createBuild(session: SpaceSession, info: KfInfo, request: BuildRequest): Promise<Stored<CFBuild>> {
  const { app, packageGuid, lifecycle, contentHash, key: buildKey, env, pushId } = request;
  const { cluster, signal } = session;
  const author = await authorOf(session);
  const guid = randomUUID();
  const wanted = buildBuild(
    {
      guid,
      app,
      packageGuid,
      lifecycle,
      stagingMemoryMB: info.staging.memoryMB,
      stagingDiskMB: info.staging.diskMB,
      pushId,
      contentHash,
      buildKey,
      envSecretName: env === undefined ? undefined : buildEnvSecretName(guid),
    },
    author,
  );
  const build = await cluster.create(kinds.build, wanted, { signal });
  if (env !== undefined) await cluster.create(secretType, buildBuildEnvSecret(build, env, author), { signal });
  return build;
}

/** A command that was interrupted right after it created the build left the build without its environment. */
async function takeUp(session: SpaceSession, build: Stored<CFBuild>, { env }: BuildRequest): Promise<Stored<CFBuild>> {
  if (env === undefined || build.metadata.annotations?.[annotations.envSecret] === undefined) return build;
  const secret = buildBuildEnvSecret(build, env, await authorOf(session));
  await session.cluster.create(secretType, secret, { signal: session.signal }).catch((error: unknown) => {
    if (!isAlreadyExists(error)) throw error;
  });
  return build;
}

async function authorOf(session: SpaceSession): Promise<Authorship> {
  return { changedBy: await session.changedBy(), now: new Date() };
}

/**
 * The staged build of a package. One that has succeeded already is used without a message.
 * @param earlier an equal earlier build, which may still run
 * @param stillOurs rejects when a later push has taken over
 * @throws KfError of {@link waitForBuild}
 */
export async function stagePackage(
  session: SpaceSession,
  info: KfInfo,
  request: BuildRequest,
  { earlier, stillOurs }: { earlier?: Stored<CFBuild> | undefined; stillOurs?: () => Promise<never> } = {},
): Promise<Stored<CFBuild>> {
  if (earlier?.status?.state === 'STAGED') return earlier;
  session.report({ type: 'staging' });
  const build = earlier === undefined ? await createBuild(session, info, request) : await takeUp(session, earlier, request);
  return waitForBuild(session, request.app.spec.displayName, build, { stillOurs: stillOurs?.(), again: request.again });
}

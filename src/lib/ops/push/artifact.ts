// From source or image to a staged build: nothing is uploaded that the registry has, nothing is built that was built.

import { randomUUID } from 'node:crypto';
import { homedir } from 'node:os';
import path from 'node:path';
import { secretType } from '../../api/core.ts';
import { annotations, kinds } from '../../api/group.ts';
import type { KfInfo } from '../../api/kf-info.ts';
import { pushRepository, repositoryPath } from '../../api/repositories.ts';
import { counted, formatBytes } from '../../api/sizes.ts';
import type { CFBuild, CFPackage } from '../../api/types.generated.ts';
import { BugError } from '../../errors.ts';
import { isAlreadyExists } from '../../kube/errors.ts';
import type { AppPlan } from '../../manifest/plan.ts';
import type { RegistryClient } from '../../oci/registry.ts';
import { openSourceCache } from '../../source/cache.ts';
import { listSource, type SourceListing } from '../../source/content-hash.ts';
import { packSource, pushSource } from '../../source/pack.ts';
import type { SpaceSession } from '../../session/session.ts';
import { buildBuild, buildBuildEnvSecret, buildEnvSecretName, buildPackage } from '../../../templates/build.ts';
import type { Authorship } from '../../../templates/metadata.ts';
import { openSpaceRegistry, withNamedRegistry } from '../registry/access.ts';
import type { AppFollower } from './app-follower.ts';
import { buildKey, packagesWithContent, reusableBuild } from '../builds/build-key.ts';
import { waitForBuild } from '../builds/build.ts';
import { lifecycleOf } from './acquire-app.ts';
import type { AppFacts } from './app-snapshot.ts';
import { assertMayBuild } from './rights.ts';

export interface Artifact {
  build: CFBuild;
  /** False when an earlier build was taken. */
  wasBuilt: boolean;
  layerBytesSent: number;
}

export interface ArtifactInput {
  session: SpaceSession;
  info: KfInfo;
  plan: AppPlan;
  facts: AppFacts;
  follower: AppFollower;
  pushId: string;
  /** Build although an equal build is there. */
  force: boolean;
  /** Where a new app's source goes, tried already. */
  registry?: RegistryClient;
}

/** `$XDG_CACHE_HOME/kf/source`, else `~/.cache/kf/source`. */
function cacheFolder(env: Readonly<Record<string, string | undefined>>): string {
  const base = env['XDG_CACHE_HOME'];
  return path.join(base !== undefined && base !== '' ? base : path.join(env['HOME'] ?? homedir(), '.cache'), 'kf', 'source');
}

async function authorOfPush(session: SpaceSession): Promise<Authorship> {
  return { changedBy: await session.changedBy(), now: new Date() };
}

const largeBytes = 1024 ** 3;

/** What to say of a source so large that most of it can hardly be the app's. */
export function sizeAdvice({ files, bytes }: { files: number; bytes: number }): string | undefined {
  if (bytes < largeBytes) return undefined;
  return `The folder has ${formatBytes(bytes)} in ${counted(files, 'file')}; what the app does not need can be named in a file .cfignore.`;
}

/** Packs and uploads the source; the package then names it by digest. */
async function uploadSource(
  input: ArtifactInput,
  listing: SourceListing,
  cacheDir: string,
): Promise<{ package: CFPackage; bytes: number }> {
  const { session, info, follower, pushId } = input;
  const { cluster, reporter, signal } = session;
  const app = follower.app;
  const guid = randomUUID();
  const place = [info.registry, session.space.guid, app.metadata.name ?? '', 'packages'] as const;
  const repository = repositoryPath(...place);
  reporter.say('Packaging files to upload...');
  const advice = sizeAdvice(listing);
  if (advice !== undefined) reporter.warn(advice);
  reporter.step(`Packing ${counted(listing.files, 'file')}`);
  const [packed, client] = await Promise.all([
    packSource(listing, { cacheDir, progress: (done) => reporter.bytes({ done, total: listing.bytes }), signal }),
    input.registry ?? openSpaceRegistry(cluster, info, session.space.guid, signal),
  ]);
  reporter.say('Uploading files...');
  reporter.step('Uploading');
  const pushed = await withNamedRegistry(info, () =>
    pushSource(packed, {
      client,
      repository,
      tag: guid,
      annotations: { [annotations.contentHash]: listing.contentHash },
      progress: (done, total) => reporter.bytes({ done, total }),
      signal,
    }),
  );
  reporter.done();
  if (pushed.layerBytesSent === 0) reporter.say('All files found in remote cache; nothing to upload.');
  const image = `${pushRepository(...place)}@${pushed.digest}`;
  const created = await cluster.create(
    kinds.package,
    buildPackage({ guid, app: follower.app, type: 'bits', image, pushId, contentHash: listing.contentHash }, await authorOfPush(session)),
    { fieldManager: 'kf-push', signal },
  );
  return { package: created, bytes: pushed.layerBytesSent };
}

interface BuildRequest {
  packageGuid: string;
  contentHash?: string;
  key?: string;
  env?: Record<string, string>;
}

async function createBuild(input: ArtifactInput, request: BuildRequest): Promise<CFBuild> {
  const { session, info, plan, follower, pushId } = input;
  const { cluster, signal } = session;
  const author = await authorOfPush(session);
  const guid = randomUUID();
  const wanted = buildBuild(
    {
      guid,
      app: follower.app,
      packageGuid: request.packageGuid,
      lifecycle: lifecycleOf(plan, follower.app),
      stagingMemoryMB: info.staging.memoryMB,
      stagingDiskMB: info.staging.diskMB,
      pushId,
      contentHash: request.contentHash,
      buildKey: request.key,
      envSecretName: request.env === undefined ? undefined : buildEnvSecretName(guid),
    },
    author,
  );
  const build = await cluster.create(kinds.build, wanted, { fieldManager: 'kf-push', signal });
  if (request.env !== undefined) {
    await cluster.create(secretType, buildBuildEnvSecret(build, request.env, author), { fieldManager: 'kf-push', signal });
  }
  return build;
}

async function fromSource(input: ArtifactInput): Promise<Artifact> {
  const { session, info, plan, facts, follower } = input;
  const { reporter, signal, env } = session;
  if (plan.path === undefined) throw new BugError('A plan for source code names no path.');
  const cache = openSourceCache(cacheFolder(env), (message) => reporter.warn(message));
  reporter.step('Reading files');
  const listing = await listSource(plan.path, { cacheDir: cache.dir, warn: (message) => reporter.warn(message), signal });
  try {
    const buildEnv = { ...facts.env, ...plan.env };
    const { buildpacks = [], stack } = lifecycleOf(plan, follower.app).data;
    const key = buildKey(info, { contentHash: listing.contentHash, buildpacks, stack, env: buildEnv });
    const earlier = input.force ? undefined : reusableBuild(facts.builds, key);
    if (earlier !== undefined) return { build: await finished(input, earlier, buildEnv), wasBuilt: false, layerBytesSent: 0 };
    follower.begin();
    if (!facts.isNew) await assertMayBuild(session, info, plan);
    const packaged = await packageThatIsThere(input, listing.contentHash);
    const upload = packaged === undefined ? await uploadSource(input, listing, cache.dir) : undefined;
    const packageGuid = packaged ?? upload?.package.metadata.name ?? '';
    reporter.say();
    reporter.say('Staging app and tracing logs...');
    reporter.step('Staging');
    const build = await createBuild(input, { packageGuid, contentHash: listing.contentHash, key, env: buildEnv });
    return { build: await waitForBuild(session, plan.name, build, follower.lost()), wasBuilt: true, layerBytesSent: upload?.bytes ?? 0 };
  } finally {
    listing.close();
    cache.close();
  }
}

/** A package with this content: builds outlive the packages that they were made of. */
async function packageThatIsThere({ session, facts }: ArtifactInput, contentHash: string): Promise<string | undefined> {
  for (const guid of packagesWithContent(facts.builds, contentHash)) {
    const live = await session.cluster.get(kinds.package, session.space.guid, guid, session.signal);
    if (live !== undefined && live.metadata.deletionTimestamp === undefined) return guid;
  }
  return undefined;
}

/** A build of another run that may still go on. A run that was cut right after it made the build left it without its environment. */
async function finished({ session, plan, follower }: ArtifactInput, build: CFBuild, env: Record<string, string>): Promise<CFBuild> {
  if (build.status?.state === 'STAGED') return build;
  if (build.metadata.annotations?.[annotations.envSecret] !== undefined) {
    const secret = buildBuildEnvSecret(build, env, await authorOfPush(session));
    await session.cluster.create(secretType, secret, { fieldManager: 'kf-push', signal: session.signal }).catch((error: unknown) => {
      if (!isAlreadyExists(error)) throw error;
    });
  }
  session.reporter.say();
  session.reporter.say('Staging app and tracing logs...');
  return waitForBuild(session, plan.name, build, follower.lost());
}

/** The image that a staged build runs; equal images make equal droplets. */
export function dropletImage(build: CFBuild | undefined): string | undefined {
  return build?.status?.state === 'STAGED' ? build.status.droplet?.registry.image : undefined;
}

/** A tag may have moved, so the controller resolves it anew; when it did not, the droplet that is there stays. */
async function fromImage(input: ArtifactInput): Promise<Artifact> {
  const { session, plan, facts, follower, pushId } = input;
  const { cluster, signal } = session;
  const guid = randomUUID();
  const image = plan.docker?.image ?? '';
  const source = buildPackage({ guid, app: follower.app, type: 'docker', image, pushId }, await authorOfPush(session));
  session.reporter.step(`Looking at image ${image}`);
  const [created, started] = await Promise.all([
    cluster.create(kinds.package, source, { fieldManager: 'kf-push', signal }),
    createBuild(input, { packageGuid: guid }),
  ]);
  const build = await waitForBuild(session, plan.name, started);
  const current = facts.builds.find((candidate) => candidate.metadata.name === follower.app.spec.currentDropletRef?.name);
  if (current === undefined || input.force || dropletImage(current) !== dropletImage(build))
    return { build, wasBuilt: true, layerBytesSent: 0 };
  const ns = session.space.guid;
  await Promise.all([
    cluster.delete(kinds.build, ns, build.metadata.name ?? '', { propagation: 'Background' }),
    cluster.delete(kinds.package, ns, created.metadata.name ?? '', { propagation: 'Background' }),
  ]);
  return { build: current, wasBuilt: false, layerBytesSent: 0 };
}

/** The staged build that the app shall run. @throws KfError `usage`, `upload`, `build`, `timeout`, or `conflict` when a later push took over */
export function makeArtifact(input: ArtifactInput): Promise<Artifact> {
  return input.plan.lifecycle === 'docker' ? fromImage(input) : fromSource(input);
}

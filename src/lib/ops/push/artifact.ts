// Makes a package and its staged build from source or image: content that the registry has is not uploaded again, and an equal build is not
// repeated.

import { randomUUID } from 'node:crypto';
import { annotations, kinds } from '../../api/group.ts';
import type { KfInfo } from '../../api/kf-info.ts';
import type { Stored } from '../../api/object.ts';
import { isUnstaged, neededPackages, packagesOf, packageToBuild } from '../../api/packages.ts';
import type { CFApp, CFBuild, CFPackage, CFServiceBinding } from '../../api/types.generated.ts';
import { BugError, KfError, messageOf } from '../../errors.ts';
import type { AppPlan } from '../../manifest/plan.ts';
import type { RegistryClient } from '../../oci/registry.ts';
import type { SourceListing } from '../../source/listing.ts';
import { readOrigin } from '../../source/origin.ts';
import type { SpaceSession } from '../../session/session.ts';
import { buildPackage } from '../../../templates/build.ts';
import { hasDigest } from '../../../templates/pull-policy.ts';
import type { AppFollower } from './app-follower.ts';
import { buildKey, reusableBuild } from '../builds/build-key.ts';
import { waitForBuild } from '../builds/build.ts';
import { withDockerfile } from '../builds/dockerfile.ts';
import type { KeptCredential } from '../builds/image-credentials.ts';
import { createBuild, stagePackage, type BuildRequest } from '../builds/stage.ts';
import { authorIn, listForUpload, openCache, uploadSource } from '../builds/upload.ts';
import { lostImages, type Look } from '../registry/stored.ts';
import { ensureBinding, isTo } from '../services/user-provided.ts';
import { isOvertaken } from '../apps/rollout-wait.ts';
import { lifecycleOf } from './acquire-app.ts';
import { readPackages, type AppSnapshot } from './app-snapshot.ts';
import { assertStillHolder } from './lock.ts';
import type { FoundService } from './preflight.ts';
import { assertMayBuild } from './rights.ts';

export interface Artifact {
  /** Name of the pushed package: uploaded now, or an earlier one. */
  source: string;
  /** The app's packages, newest first; empty when that package is known to be the newest. */
  packages: readonly Stored<CFPackage>[];
  /** Left out when the package is built later. */
  build?: Stored<CFBuild>;
  /** False when an earlier build was reused, or none was made. */
  wasBuilt: boolean;
  layerBytesSent: number;
  /** The app's bindings, including those that were made for the build. */
  bindings: readonly Stored<CFServiceBinding>[];
}

export interface ArtifactInput {
  session: SpaceSession;
  info: KfInfo;
  plan: AppPlan;
  facts: AppSnapshot;
  /** The services that the plan names. */
  services: readonly FoundService[];
  follower: AppFollower;
  pushId: string;
  /** Build even if an equal build exists; without a build: make another package even if the same one exists. */
  force: boolean;
  /** False: make the package only. */
  stage: boolean;
  /** Throws when the app gets another droplet and the space has no room for that; called before a build. */
  assertFits: () => Promise<void>;
  /** The password of the user that the plan names for the image's registry. */
  imagePassword?: string | undefined;
  /** The registry for a new app's source, already tested. */
  registry?: RegistryClient;
}

const nameOf = ({ metadata }: Stored<CFBuild> | Stored<CFPackage>): string => metadata.name;

/** The input of a build of the plan. */
function buildRequest({ session, plan, follower, pushId }: ArtifactInput, packageGuid: string): BuildRequest {
  const { app } = follower;
  const again = `${session.bin} push ${plan.name}`;
  return { app, packageGuid, lifecycle: lifecycleOf(plan, app), again, pushId };
}

async function fromSource(input: ArtifactInput): Promise<Artifact> {
  const { session, plan } = input;
  if (plan.path === undefined) throw new BugError('A plan for source code names no path.');
  const cache = openCache(session);
  try {
    session.report({ type: 'reading-source' });
    const listing = await listForUpload(session, { path: plan.path, cacheDir: cache.dir });
    try {
      return await fromListing(input, listing, cache.dir);
    } catch (error) {
      throw withDockerfile(error, plan.path);
    } finally {
      listing.close();
    }
  } finally {
    cache.close();
  }
}

async function fromListing(input: ArtifactInput, listing: SourceListing, cacheDir: string): Promise<Artifact> {
  const { packages } = input.facts;
  const known = packages.find(({ metadata }) => metadata.annotations?.[annotations.contentHash] === listing.contentHash);
  const source = { listing, known: input.stage || !input.force ? known : undefined, cacheDir };
  return input.stage ? staged(input, source) : packaged(input, await stored(input, source));
}

/** The files of the push, and the package that the app has of them already. */
interface Source {
  listing: SourceListing;
  known: Stored<CFPackage> | undefined;
  cacheDir: string;
}

const sourceImage = (known: Stored<CFPackage> | undefined): string | undefined => known?.spec.source?.registry.image;

/** The same without a package whose image the registry has lost: it is uploaded again. @param look whether its layer is looked for too */
async function stored({ session, info, registry }: ArtifactInput, source: Source, look: Pick<Look, 'inside'> = {}): Promise<Source> {
  const lost = await lostImages(session, info, [sourceImage(source.known)], { ...look, open: registry });
  return lost.size === 0 ? source : { ...source, known: undefined };
}

/** Does this with a signal that aborts when a later push takes over, or the app is deleted: an upload can last long. */
async function whileOurs<T>({ session, follower }: ArtifactInput, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const lost = new AbortController();
  follower.lost().catch((error: unknown) => lost.abort(error));
  try {
    return await work(AbortSignal.any([session.signal, lost.signal]));
  } catch (error) {
    throw lost.signal.aborted ? lost.signal.reason : error;
  }
}

/** The package of this source; uploaded unless it exists. */
async function packaged(input: ArtifactInput, { listing, known, cacheDir }: Source): Promise<Artifact> {
  const { session, info, plan, facts, follower } = input;
  const { bindings } = facts;
  if (known !== undefined) return { source: nameOf(known), packages: facts.packages, wasBuilt: false, layerBytesSent: 0, bindings };
  follower.begin();
  if (!facts.isNew) await Promise.all([assertMayBuild(session, info, plan), input.assertFits()]);
  const { pushId, registry } = input;
  const { package: created, bytes } = await whileOurs(input, (signal) =>
    uploadSource(session, info, { app: follower.app, listing, cacheDir, pushId, registry, signal }),
  );
  const packages = packagesOf(follower.app, [created, ...facts.packages]);
  return { source: nameOf(created), packages, wasBuilt: false, layerBytesSent: bytes, bindings };
}

async function staged(input: ArtifactInput, source: Source): Promise<Artifact> {
  const { session, info, plan, facts, follower } = input;
  const { contentHash } = source.listing;
  const env = { ...facts.env, ...plan.env };
  const { buildpacks = [], stack } = lifecycleOf(plan, follower.app).data;
  const keyWith = (bindings: readonly Stored<CFServiceBinding>[]): string =>
    buildKey(info, { contentHash, buildpacks, stack, env, bindings });
  const missing = input.services.filter(({ instance }) => !facts.bindings.some((binding) => isTo(binding, instance)));
  // No earlier build used a service that is not bound yet.
  const equal = input.force || missing.length > 0 ? undefined : reusableBuild(facts.builds, keyWith(facts.bindings));
  const lost = await lostImages(session, info, [sourceImage(source.known), dropletImage(equal)], { open: input.registry });
  const earlier = lost.has(dropletImage(equal) ?? '') ? undefined : equal;
  const found = lost.has(sourceImage(source.known) ?? '') ? { ...source, known: undefined } : source;
  // A build reads the layer of its source. An unchanged push does not, and asks for no more than it needs.
  const { known } = earlier === undefined ? await stored(input, found, { inside: true }) : found;
  // Builds stay longer than their packages, but a restage needs the pushed package.
  const artifact = await packaged(input, { ...source, known });
  if (earlier === undefined) follower.begin();
  if (earlier === undefined && known !== undefined) await Promise.all([assertMayBuild(session, info, plan), input.assertFits()]);
  const bindings = missing.length === 0 ? facts.bindings : await bound(input, missing);
  const request = { ...buildRequest(input, artifact.source), contentHash, key: keyWith(bindings), env };
  const build = await stagePackage(session, info, request, { earlier, stillOurs: () => follower.lost() });
  return { ...artifact, bindings, build, wasBuilt: earlier === undefined };
}

/** Binds these services and returns the app's bindings. The build uses them, and they stay when it fails. */
async function bound({ session, facts, follower }: ArtifactInput, missing: readonly FoundService[]): Promise<Stored<CFServiceBinding>[]> {
  const { app } = follower;
  const made = Promise.all(missing.map(({ instance, bindingName }) => ensureBinding(session, app, instance, { bindingName })));
  const ready = await Promise.race([made, follower.lost()]);
  return [...facts.bindings, ...ready.map(({ binding }) => binding)];
}

/** The image that a staged build runs; equal images are equal droplets. */
export function dropletImage(build: Stored<CFBuild> | undefined): string | undefined {
  return build?.status?.state === 'STAGED' ? build.status.droplet?.registry.image : undefined;
}

/** Makes only the package of the image. One that is still unbuilt can be reused; one that was built cannot, because the tag may have moved since. */
async function imagePackage(input: ArtifactInput, wanted: CFPackage, create: () => Promise<Stored<CFPackage>>): Promise<Artifact> {
  const { session, facts, follower, force } = input;
  const packages = facts.isNew ? [] : await readPackages(session, follower.app);
  const waiting = isUnstaged(follower.app) && !force ? packageToBuild(follower.app, packages) : undefined;
  const { image } = wanted.spec.source?.registry ?? {};
  const isSame = waiting?.spec.source?.registry.image === image && secretsOf(waiting?.spec.source) === secretsOf(wanted.spec.source);
  if (waiting !== undefined && isSame)
    return { source: nameOf(waiting), packages, wasBuilt: false, layerBytesSent: 0, bindings: facts.bindings };
  const created = await create();
  return {
    source: nameOf(created),
    packages: packagesOf(follower.app, [created, ...packages]),
    wasBuilt: false,
    layerBytesSent: 0,
    bindings: facts.bindings,
  };
}

/** Keeps the user and password with which the image can be read, if the plan names a user. */
async function keptCredential({ session, plan, follower, imagePassword = '' }: ArtifactInput): Promise<KeptCredential | undefined> {
  const { image, username } = plan.docker ?? {};
  if (image === undefined || username === undefined) return undefined;
  const { keepImageCredential } = await import('../builds/image-credentials.ts');
  return keepImageCredential(session, follower.app, { image, username, password: imagePassword }, await authorIn(session));
}

/** The version that serves must not lose its registry's password to one with which the build failed, unless a later push may build with that one. */
async function putBack({ session, pushId }: ArtifactInput, app: Stored<CFApp>, kept: KeptCredential | undefined): Promise<void> {
  const assertOurs = (): Promise<void> => assertStillHolder(session.cluster, app, pushId);
  await kept?.putBack(assertOurs).catch((error: unknown) => {
    if (isOvertaken(error) || (error instanceof KfError && error.code === 'not-found')) return;
    const message = `The registry's earlier password could not be put back, and instances that start on another node may need it: ${messageOf(error)}`;
    session.report({ type: 'warning', message });
  });
}

/** What a pod needs to know of a droplet that is an image. The controller could not read one without a digest, so its tag may have moved. */
const runsSame = (one: Stored<CFBuild>, other: Stored<CFBuild>): boolean =>
  hasDigest(dropletImage(one) ?? '') &&
  dropletImage(one) === dropletImage(other) &&
  secretsOf(one.status?.droplet) === secretsOf(other.status?.droplet);

const secretsOf = (source: { registry: { imagePullSecrets?: { name: string }[] } } | undefined): string =>
  (source?.registry.imagePullSecrets ?? []).map(({ name }) => name).join();

/** A tag may have moved, so the controller resolves it again. If it has not moved, the present droplet stays. */
async function fromImage(input: ArtifactInput): Promise<Artifact> {
  const { session, info, plan, facts, follower, pushId } = input;
  const { cluster, signal } = session;
  const guid = randomUUID();
  const image = plan.docker?.image ?? '';
  const { app } = follower;
  const origin = await readOrigin(undefined, session.env);
  const author = await authorIn(session);
  // From here on every failure puts back what this has written.
  const kept = await keptCredential(input);
  const pullSecrets = kept === undefined ? [] : [kept.secretName];
  const content = { type: 'docker' as const, image, pullSecrets, pushId, origin };
  const wanted = buildPackage({ guid, app, ...content }, author);
  const create = (): Promise<Stored<CFPackage>> => cluster.create(kinds.package, wanted, { signal });
  if (!input.stage) return imagePackage(input, wanted, create);
  session.report({ type: 'resolving-image', image });
  const request = buildRequest(input, guid);
  const build = await Promise.all([create(), createBuild(session, info, request)])
    .then(([, started]) => waitForBuild(session, plan.name, started, request))
    .catch(async (error: unknown) => {
      await putBack(input, app, kept);
      throw error;
    });
  const current = facts.builds.find((candidate) => nameOf(candidate) === follower.app.spec.currentDropletRef?.name);
  const discard = async (): Promise<void> => {
    const ns = session.space.guid;
    await Promise.all([
      cluster.delete(kinds.build, ns, nameOf(build), { propagation: 'Background' }),
      cluster.delete(kinds.package, ns, guid, { propagation: 'Background' }),
    ]);
  };
  if (current === undefined || input.force || !runsSame(current, build)) {
    try {
      await input.assertFits();
    } catch (error) {
      await discard();
      throw error;
    }
    return { source: guid, packages: [], build, wasBuilt: true, layerBytesSent: 0, bindings: facts.bindings };
  }
  await discard();
  // The package of an image gets its build at once, except for packages that the app's annotations name. So if no build is newer, no package is.
  const isNewest = facts.builds[0] === current && neededPackages(follower.app).length === 0;
  const packages = isNewest ? [] : await readPackages(session, follower.app);
  return {
    source: current.spec.packageRef.name,
    packages,
    build: current,
    wasBuilt: false,
    layerBytesSent: 0,
    bindings: facts.bindings,
  };
}

/**
 * Returns what was pushed and the staged build that the app should run. @throws KfError `usage`, `upload`, `build`, `timeout`, or `conflict` when
 * a later push took over
 */
export function makeArtifact(input: ArtifactInput): Promise<Artifact> {
  return input.plan.lifecycle === 'docker' ? fromImage(input) : fromSource(input);
}

// `kf prune`: removes the images of the in-cluster registry that nothing uses any more, or tells what it would remove. The controller does the same every
// hour; both ask the API server what is in use, and the gate keeps what pushes use at that moment.

import type { BlobSize, GateStatus } from '../../api/gate-status.ts';
import { kinds } from '../../api/group.ts';
import type { ImageReferences } from '../../api/image-references.ts';
import { requireCompatible, type KfInfo } from '../../api/kf-info.ts';
import { appOfRepository, isInClusterRegistry, setupScope } from '../../api/repositories.ts';
import { defined } from '../../defined.ts';
import { KfError, messageOf } from '../../errors.ts';
import type { Report } from '../../events.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { readImageReferences } from '../../kube/image-references.ts';
import { gateKeeper, repositoryPages, type GateKeeper } from '../../gate/keeper.ts';
import { isConnectionFailure } from '../../oci/errors.ts';
import { kfVersion } from '../../version.ts';
import { throughServiceProxy } from './access.ts';
import { readGateStatus, readRegistryKeys } from './gate.ts';

export interface PruneContext {
  cluster: Cluster;
  info: KfInfo;
  root: string;
  report: Report;
  signal: AbortSignal;
}

export interface PruneOptions {
  dryRun: boolean;
  /** What was stored, found by a push or referenced within this time stays. At least {@link leastUnusedSeconds}. */
  keptSeconds: number;
}

/** What one app loses. */
export interface PrunedApp {
  /** Its name, or its GUID when it is deleted. */
  app: string;
  guid: string;
  /** Left out when the space is deleted. */
  org?: string;
  space?: string;
  deleted: boolean;
  images: number;
  /** Bytes that no image needs which stays. */
  bytes: number;
}

/** A repository of which the gate did not say what could go, or where it could not remove it. */
export interface FailedRepository {
  /** `<space>/<name>` */
  repository: string;
  message: string;
}

export interface PruneResult {
  dryRun: boolean;
  apps: PrunedApp[];
  /** Repositories that pushes used at that moment. They are left as they are. */
  inUse: string[];
  /** They are left as they are, and must not keep the others. */
  failed: FailedRepository[];
  /** Bytes of the blobs that were removed, or would be. */
  bytes: number;
  /** Bytes of the registry's volume, afterwards. */
  room: GateStatus['room'];
}

/** Which apps there are, and how orgs, spaces and apps are called. */
interface Places {
  spaces: Map<string, { space: string; org: string }>;
  /** `<space GUID>/<app GUID>` → name. */
  apps: Map<string, string>;
}

interface Collecting extends PruneContext {
  keeper: GateKeeper;
  /** For the gate: see {@link CollectionRequest}. */
  unusedSince: number;
  failed: FailedRepository[];
}

interface Candidate {
  repository: string;
  isOrphan: boolean;
  images: number;
  blobs: BlobSize[];
  keep: string[];
}

async function readPlaces({ cluster, root, signal }: PruneContext): Promise<Places> {
  const [orgs, spaces, apps] = await Promise.all([
    cluster.list(kinds.org, { ns: root, signal }),
    cluster.list(kinds.space, { signal }),
    cluster.list(kinds.app, { signal }),
  ]);
  const orgNames = new Map(orgs.items.map(({ metadata, spec }) => [metadata.name, spec.displayName]));
  return {
    spaces: new Map(
      spaces.items.map(({ metadata, spec }) => [
        metadata.name,
        { space: spec.displayName, org: orgNames.get(metadata.namespace) ?? metadata.namespace },
      ]),
    ),
    apps: new Map(apps.items.map(({ metadata, spec }) => [`${metadata.namespace}/${metadata.name}`, spec.displayName])),
  };
}

interface OwnedRepository {
  repository: string;
  space: string;
  app: string;
}

async function repositoriesOf(keeper: GateKeeper, signal: AbortSignal): Promise<OwnedRepository[]> {
  const found: OwnedRepository[] = [];
  for await (const { repositories } of repositoryPages(keeper, signal))
    for (const repository of repositories) {
      const owner = appOfRepository(repository);
      if (owner !== undefined && owner.space !== setupScope) found.push({ repository, ...owner });
    }
  return found;
}

/** Asks the gate about one repository. What fails there is noted. @returns undefined then, else the answer in a list */
async function tried<T>({ failed, report, signal }: Collecting, repository: string, ask: () => Promise<T>): Promise<[T] | undefined> {
  try {
    return [await ask()];
  } catch (error) {
    // Without the API server, nothing can be said of the others either.
    if (signal.aborted || !(error instanceof KfError) || isConnectionFailure(error)) throw error;
    const message = messageOf(error);
    failed.push({ repository, message });
    const text = `The repository '${repository}' is left as it is: ${message}`;
    report({ type: 'warning', message: text });
    return undefined;
  }
}

/** What would go from each repository. Objects are read after the list of repositories has begun, so a new app is never taken for a deleted one. */
async function candidatesOf(context: Collecting): Promise<{ candidates: Candidate[]; inUse: string[]; places: Places }> {
  const { cluster, signal, keeper, unusedSince } = context;
  const found = await repositoriesOf(keeper, signal);
  const places = await readPlaces(context);
  const [candidates, inUse]: [Candidate[], string[]] = [[], []];
  let [knownSpace, references]: [string, ImageReferences] = ['', new Map()];
  for (const { repository, space, app } of found) {
    if (!places.apps.has(`${space}/${app}`)) {
      const blobs = await tried(context, repository, () => keeper.blobsOf(repository, signal));
      if (blobs !== undefined) candidates.push({ repository, isOrphan: true, images: 0, blobs: blobs[0], keep: [] });
      continue;
    }
    if (knownSpace !== space) [knownSpace, references] = [space, await readImageReferences(cluster, space, signal)];
    const keep = [...(references.get(repository) ?? [])];
    const request = { keep, unusedSince, dryRun: true };
    const [collected] = (await tried(context, repository, () => keeper.collect(repository, request, signal))) ?? [];
    if (collected?.isUsed === true) inUse.push(repository);
    else if (collected !== undefined && collected.manifests + collected.layers > 0)
      candidates.push({ repository, isOrphan: false, images: collected.manifests, blobs: collected.blobs ?? [], keep });
  }
  return { candidates, inUse, places };
}

/** The bytes that go with each candidate. A blob goes when all repositories that have it lose it; it counts for the first of them. */
export function bytesOf(candidates: readonly Pick<Candidate, 'blobs'>[], referenceCounts: ReadonlyMap<string, number>): number[] {
  const lost = new Map<string, number>();
  for (const { blobs } of candidates) for (const { digest } of blobs) lost.set(digest, (lost.get(digest) ?? 0) + 1);
  const counted = new Set<string>();
  return candidates.map(({ blobs }) => {
    let bytes = 0;
    for (const { digest, bytes: size } of blobs) {
      if (counted.has(digest) || (lost.get(digest) ?? 0) < (referenceCounts.get(digest) ?? 0)) continue;
      counted.add(digest);
      bytes += size;
    }
    return bytes;
  });
}

function byApp(candidates: readonly Candidate[], bytes: readonly number[], { spaces, apps }: Places): PrunedApp[] {
  const pruned = new Map<string, PrunedApp>();
  for (const [index, { repository, isOrphan, images }] of candidates.entries()) {
    const owner = appOfRepository(repository);
    if (owner === undefined) continue;
    const key = `${owner.space}/${owner.app}`;
    const app = pruned.get(key) ?? {
      app: apps.get(key) ?? owner.app,
      guid: owner.app,
      ...defined({ ...spaces.get(owner.space) }),
      deleted: isOrphan,
      images: 0,
      bytes: 0,
    };
    app.images += images;
    app.bytes += bytes[index] ?? 0;
    pruned.set(key, app);
  }
  return [...pruned.values()].toSorted((a, b) => b.bytes - a.bytes || a.app.localeCompare(b.app));
}

/** Removes what the candidates name. Returns those that were removed; a push may have begun to use the others. */
async function removeAll(context: Collecting, candidates: readonly Candidate[]): Promise<Set<Candidate>> {
  const { keeper, unusedSince, signal } = context;
  const removed = new Set<Candidate>();
  for (const candidate of candidates) {
    const { repository, isOrphan, keep } = candidate;
    const isRemoved = async (): Promise<boolean> => {
      if (!isOrphan) return (await keeper.collect(repository, { keep, unusedSince }, signal))?.isUsed !== true;
      await keeper.remove(repository, signal);
      return true;
    };
    if ((await tried(context, repository, isRemoved))?.[0] === true) removed.add(candidate);
  }
  return removed;
}

/** @throws KfError `usage` for an installation with an outside registry */
function assertOwnRegistry({ registry }: KfInfo): void {
  if (isInClusterRegistry(registry)) return;
  throw new KfError('usage', `This installation uses the registry '${registry.pushHost}', and kf removes nothing there.`, {
    hints: ["Remove old images with the registry's own rules. Those that `kf droplets APP` and `kf packages APP` list are in use."],
  });
}

/** @throws KfError naming the registry, the right or the setting that is missing; `conflict` when CLI and controller are too many releases apart */
export async function pruneRegistry(context: PruneContext, options: PruneOptions): Promise<PruneResult> {
  const { cluster, info, report, signal } = context;
  assertOwnRegistry(info);
  // What a newer controller keeps in use may be in objects or fields that this CLI does not know.
  if (!options.dryRun) requireCompatible(info, kfVersion());
  const { current: key } = await readRegistryKeys(cluster, info);
  const before = await readGateStatus(cluster, info.registry, key, signal);
  const send = throughServiceProxy(cluster, info.registry);
  const keeper = gateKeeper(send, { key, nowSeconds: before.now, via: 'proxy' });
  report({ type: 'awaiting', what: 'the registry to name what nothing uses' });
  const collecting: Collecting = { ...context, keeper, unusedSince: before.now - options.keptSeconds, failed: [] };
  const { failed } = collecting;
  const { candidates, inUse, places } = await candidatesOf(collecting);
  const digests = [...new Set(candidates.flatMap(({ blobs }) => blobs.map(({ digest }) => digest)))];
  const bytes = bytesOf(candidates, await keeper.referenceCounts(digests, signal));
  const total = bytes.reduce((sum, one) => sum + one, 0);
  if (options.dryRun) {
    report({ type: 'done' });
    return { dryRun: true, apps: byApp(candidates, bytes, places), inUse, failed, bytes: total, room: before.room };
  }
  const removed = await removeAll(collecting, candidates);
  report({ type: 'awaiting', what: 'the registry to free the space' });
  const swept = await keeper.sweep(signal);
  report({ type: 'done' });
  const { room } = await readGateStatus(cluster, info.registry, key, signal);
  const hasFailed = new Set(failed.map(({ repository }) => repository));
  const left = candidates.filter((one) => !removed.has(one) && !hasFailed.has(one.repository)).map(({ repository }) => repository);
  const shown = candidates.flatMap((candidate, index) => (removed.has(candidate) ? [{ candidate, bytes: bytes[index] ?? 0 }] : []));
  const apps = byApp(
    shown.map(({ candidate }) => candidate),
    shown.map((one) => one.bytes),
    places,
  );
  return { dryRun: false, apps, inUse: [...inUse, ...left], failed, bytes: swept.bytes, room };
}

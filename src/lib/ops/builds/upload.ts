// Uploads source code: packs it, pushes it to the registry, and creates the CFPackage that names it by digest.

import { randomUUID } from 'node:crypto';
import path from 'node:path';
import { annotations, kinds } from '../../api/group.ts';
import type { KfInfo } from '../../api/kf-info.ts';
import type { Stored } from '../../api/object.ts';
import { formatBytes } from '../../api/sizes.ts';
import { pushRepository, repositoryPath } from '../../api/repositories.ts';
import type { CFApp, CFPackage } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import type { RegistryClient } from '../../oci/registry.ts';
import { openSourceCache, type SourceCache } from '../../source/cache.ts';
import type { SourceListing } from '../../source/listing.ts';
import { readOrigin } from '../../source/origin.ts';
import { packSource, pushSource } from '../../source/pack.ts';
import { listSource } from '../../source/source.ts';
import type { SpaceSession } from '../../session/session.ts';
import { traceOutput } from '../../session/trace-output.ts';
import { buildPackage } from '../../../templates/build.ts';
import type { Authorship } from '../../../templates/metadata.ts';
import { openSpaceRegistry, withNamedRegistry } from '../registry/access.ts';
import { homeFolder } from '../../home.ts';

/** `$XDG_CACHE_HOME/kf/source`, else `~/.cache/kf/source`; a temporary folder where that cannot be written. */
export function openCache({ env, report }: Pick<SpaceSession, 'env' | 'report'>): SourceCache {
  const base = env['XDG_CACHE_HOME'];
  const caches = base !== undefined && base !== '' ? base : path.join(homeFolder(env), '.cache');
  return openSourceCache(path.join(caches, 'kf', 'source'), (message) => report({ type: 'warning', message }));
}

export interface ListedFrom {
  path: string;
  cacheDir: string;
  namedBy?: 'flag' | 'manifest';
}

/** Lists and hashes a source for {@link uploadSource}. What kf itself writes meanwhile is no part of it. */
export function listForUpload({ env, report, signal }: SpaceSession, { path: source, ...options }: ListedFrom): Promise<SourceListing> {
  const trace = traceOutput(env);
  const own = typeof trace === 'object' ? [trace.file] : [];
  return listSource(source, { ...options, own, warn: (message) => report({ type: 'warning', message }), signal });
}

/** Who writes, and when. */
export async function authorIn(session: SpaceSession): Promise<Authorship> {
  return { changedBy: await session.changedBy(), now: new Date() };
}

export interface UploadInput {
  app: Stored<CFApp>;
  listing: SourceListing;
  cacheDir: string;
  /** The push that this is part of. */
  pushId?: string | undefined;
  /** The registry, if it was opened already. */
  registry?: RegistryClient | undefined;
  /** Ends the upload; without it, the session's does. */
  signal?: AbortSignal | undefined;
}

/** Who can change the limit, and where. */
export const raiseShare = 'An operator can give spaces more: registrySpaceQuotaMB in setup.yaml.';

/**
 * Compares the packed source with what the images of the space may take. A droplet has most of the source too, but a build can leave parts out.
 * @throws KfError `upload` when the source alone is too large
 */
export function assertFits({ registry: { spaceQuotaBytes = Infinity } }: KfInfo, bytes: number, warn: (message: string) => void): void {
  const [packed, share] = [formatBytes(bytes), formatBytes(spaceQuotaBytes)];
  if (bytes > spaceQuotaBytes)
    throw new KfError('upload', `The packed source has ${packed}, and all images of the space may take ${share} in the registry.`, {
      hints: ['Leave out what the build does not need: .cfignore', raiseShare],
    });
  if (bytes * 2 > spaceQuotaBytes)
    warn(
      `The packed source has ${packed}, and all images of the space may take ${share} in the registry. The registry refuses the droplet if the build keeps all of the source. ${raiseShare}`,
    );
}

/** Packs and uploads the source; the package then names it by digest. */
export async function uploadSource(
  session: SpaceSession,
  info: KfInfo,
  { app, listing, cacheDir, pushId, registry, signal = session.signal }: UploadInput,
): Promise<{ package: Stored<CFPackage>; bytes: number }> {
  const { cluster, report, env } = session;
  const { contentHash } = listing;
  const guid = randomUUID();
  const place = [info.registry, session.space.guid, app.metadata.name, 'packages'] as const;
  report({ type: 'packaging', files: listing.files, bytes: listing.bytes });
  const [packed, client, origin] = await Promise.all([
    packSource(listing, { cacheDir, progress: (done) => report({ type: 'bytes', done, total: listing.bytes }), signal }),
    registry ?? openSpaceRegistry(cluster, info, session.space.guid, signal),
    readOrigin(listing.root, env),
  ]);
  assertFits(info, packed.layer.size, (message) => report({ type: 'warning', message }));
  report({ type: 'uploading' });
  const pushed = await withNamedRegistry(info, () =>
    pushSource(packed, {
      client,
      repository: repositoryPath(...place),
      tag: guid,
      annotations: { [annotations.contentHash]: contentHash },
      progress: (done, total) => report({ type: 'bytes', done, total }),
      signal,
    }),
  );
  report({ type: 'uploaded', bytes: pushed.layerBytesSent });
  const image = `${pushRepository(...place)}@${pushed.digest}`;
  const wanted = buildPackage({ guid, app, type: 'bits', image, pushId, contentHash, origin }, await authorIn(session));
  return { package: await cluster.create(kinds.package, wanted, { signal }), bytes: pushed.layerBytesSent };
}

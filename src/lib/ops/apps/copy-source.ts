// `copy-source`: gives an app the package that another app was pushed with last, also across spaces.

import { randomUUID } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { annotations, kinds } from '../../api/group.ts';
import { requireCompatible, type KfInfo } from '../../api/kf-info.ts';
import type { Stored } from '../../api/object.ts';
import { packagesOf, packageToBuild } from '../../api/packages.ts';
import type { PackageSummary } from '../../api/results.ts';
import { pushRepository, repositoryPath } from '../../api/repositories.ts';
import type { CFApp, CFPackage } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import type { Manifest } from '../../oci/image.ts';
import type { Layer } from '../../oci/layer.ts';
import { pushSingleLayerImage } from '../../oci/push.ts';
import { parseReference } from '../../oci/reference.ts';
import type { RegistryClient } from '../../oci/registry.ts';
import { withParts } from '../../session/overlay.ts';
import { findOrg, findSpace } from '../../session/places.ts';
import type { SpaceSession } from '../../session/session.ts';
import { kfVersion } from '../../version.ts';
import { buildPackage } from '../../../templates/build.ts';
import { awaitBuild, ofImage, ownPackages, packageSummary } from './packages.ts';
import { readImageCredential } from '../builds/image-credentials.ts';
import { authorIn, openCache } from '../builds/upload.ts';
import { openSpaceRegistry, withNamedRegistry } from '../registry/access.ts';

/** An app, and a session of its space. */
export interface PlacedApp {
  session: SpaceSession;
  app: Stored<CFApp>;
}

/** The session in the space of the app that gets the source. @throws KfError `not-found` in cf's words */
export async function sessionOf(
  session: SpaceSession,
  { organization, space }: { organization?: string | undefined; space?: string | undefined },
): Promise<SpaceSession> {
  if (space === undefined) return session;
  const org = organization === undefined ? session.org : await findOrg(session, organization);
  return withParts(session, { org, space: await findSpace(session, org, space) });
}

const nameOf = ({ app }: PlacedApp): string => app.spec.displayName;

async function sourceOf({ session, app }: PlacedApp): Promise<Stored<CFPackage>> {
  const source = packageToBuild(app, packagesOf(app, await ownPackages(session, app)));
  if (source !== undefined) return source;
  const { displayName } = app.spec;
  throw new KfError('not-found', `App '${displayName}' has no package to copy: nothing was pushed.`, {
    hints: [`${session.bin} push ${displayName}`],
  });
}

function assertSameKind(from: PlacedApp, to: PlacedApp): void {
  const kindOf = ({ app }: PlacedApp): string => (app.spec.lifecycle.type === 'docker' ? 'runs ready images' : 'is built from source');
  if (kindOf(from) === kindOf(to)) return;
  const message = `App '${nameOf(from)}' ${kindOf(from)}, and app '${nameOf(to)}' ${kindOf(to)}: they take different packages.`;
  // A new name: an app keeps its kind.
  const { bin } = to.session;
  const hint = from.app.spec.lifecycle.type === 'docker' ? `${bin} create-app NEW_APP --app-type docker` : `${bin} create-app NEW_APP`;
  throw new KfError('conflict', message, { hints: [hint] });
}

interface FoundLayer {
  client: RegistryClient;
  repository: string;
  layer: Omit<Layer, 'path'>;
}

/** The only layer of a source image. @throws KfError `upload` when the registry does not have it */
async function findLayer({ session }: PlacedApp, info: KfInfo, image: string): Promise<FoundLayer> {
  const { repository, digest = '' } = parseReference(image);
  const client = await openSpaceRegistry(session.cluster, info, session.space.guid, session.signal);
  const found = await client.resolve(repository, digest, 'amd64', session.signal);
  const [layer, ...more]: Manifest['layers'] = found?.manifest.layers ?? [];
  if (found === undefined || layer === undefined || more.length > 0)
    throw new KfError('upload', `The registry does not have the source '${image}' any more.`, { hints: ['Push the source again.'] });
  const [diffId] = (await client.readConfig(repository, found.manifest, session.signal)).rootfs.diff_ids;
  const { mediaType, digest: layerDigest, size } = layer;
  return { client, repository, layer: { mediaType, digest: layerDigest, diffId: diffId ?? layerDigest, size } };
}

/** Copies the image of the source into the repository of the other app: with the app, its repository goes too. */
async function copyFolder(source: Stored<CFPackage>, from: PlacedApp, to: PlacedApp): Promise<Stored<CFPackage>> {
  const { session, app } = to;
  const { cluster, report, space, signal } = session;
  const info = await session.info();
  requireCompatible(info, kfVersion());
  const guid = randomUUID();
  const contentHash = source.metadata.annotations?.[annotations.contentHash];
  const place = [info.registry, space.guid, app.metadata.name, 'packages'] as const;
  const cache = openCache(session);
  const file = path.join(cache.dir, `layer-copy-${guid}.tmp`);
  try {
    const digest = await withNamedRegistry(
      info,
      async () => {
        const { client, repository, layer } = await findLayer(from, info, source.spec.source?.registry.image ?? '');
        await pipeline(await client.getBlob(repository, layer.digest, signal), createWriteStream(file, { mode: 0o600 }), { signal });
        report({ type: 'uploading' });
        const pushed = await pushSingleLayerImage({
          client: await openSpaceRegistry(cluster, info, space.guid, signal),
          repository: repositoryPath(...place),
          tag: guid,
          layer: { ...layer, path: file },
          ...(contentHash === undefined ? {} : { annotations: { [annotations.contentHash]: contentHash } }),
          progress: (done, total) => report({ type: 'bytes', done, total }),
          signal,
        });
        report({ type: 'uploaded', bytes: pushed.layerBytesSent });
        return pushed.digest;
      },
      'Copy it again when it answers.',
    );
    const image = `${pushRepository(...place)}@${digest}`;
    return await cluster.create(kinds.package, buildPackage({ guid, app, type: 'bits', image, contentHash }, await authorIn(session)), {
      signal,
    });
  } finally {
    await rm(file, { force: true });
    cache.close();
  }
}

/** Copies the reference of the image, and the user and password that its registry asks for. */
async function copyImage(source: Stored<CFPackage>, from: PlacedApp, to: PlacedApp): Promise<Stored<CFPackage>> {
  const { image = '', imagePullSecrets = [] } = source.spec.source?.registry ?? {};
  const [secret] = imagePullSecrets;
  const found = secret === undefined ? undefined : await readImageCredential(from.session, secret.name, image);
  return ofImage(to.session, to.app, image, found);
}

/**
 * Copies the package; the next start of the other app builds it.
 * @throws KfError `not-found` without a package, `conflict` for apps of different kinds, those of an upload
 */
export async function copyPackage(from: PlacedApp, to: PlacedApp): Promise<PackageSummary> {
  const source = await sourceOf(from);
  assertSameKind(from, to);
  const created = source.spec.type === 'docker' ? await copyImage(source, from, to) : await copyFolder(source, from, to);
  await awaitBuild(to.session, to.app, created);
  return packageSummary(created);
}

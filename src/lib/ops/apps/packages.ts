// Packages of an app, one by one: list, create, choose the one for the next build.

import { randomUUID } from 'node:crypto';
import { annotations, kinds, labels } from '../../api/group.ts';
import { requireCompatible } from '../../api/kf-info.ts';
import type { Stored } from '../../api/object.ts';
import { packageMark, packagesOf, unstagedMark } from '../../api/packages.ts';
import type { PackageSummary } from '../../api/results.ts';
import type { CFApp, CFPackage } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import { parseReference } from '../../oci/reference.ts';
import type { SpaceSession } from '../../session/session.ts';
import { kfVersion } from '../../version.ts';
import { buildPackage } from '../../../templates/build.ts';
import { changeApp } from './changes.ts';
import { keepImageCredential, type ImageCredential } from '../builds/image-credentials.ts';
import { authorIn, listForUpload, openCache, uploadSource } from '../builds/upload.ts';

/** A package as commands show it. */
export function packageSummary({ metadata, spec }: Stored<CFPackage>): PackageSummary {
  const isUploaded = (spec.source?.registry.image ?? '') !== '';
  return {
    guid: metadata.name,
    type: spec.type,
    state: isUploaded ? 'ready' : 'awaiting_upload',
    created: metadata.creationTimestamp ?? '',
  };
}

const newestFirst = (a: Stored<CFPackage>, b: Stored<CFPackage>): number =>
  (b.metadata.creationTimestamp ?? '').localeCompare(a.metadata.creationTimestamp ?? '') || b.metadata.name.localeCompare(a.metadata.name);

/** All packages of the app, newest first, also those whose source is not uploaded. */
export async function ownPackages({ cluster, space, signal }: SpaceSession, app: Stored<CFApp>): Promise<Stored<CFPackage>[]> {
  const labelSelector = `${labels.appGuid}=${app.metadata.name}`;
  const { items } = await cluster.list(kinds.package, { ns: space.guid, labelSelector, signal });
  return items
    .filter(({ spec, metadata }) => spec.appRef.name === app.metadata.name && metadata.deletionTimestamp === undefined)
    .toSorted(newestFirst);
}

/** The packages of the app, newest first. */
export async function listPackages(session: SpaceSession, app: Stored<CFApp>): Promise<PackageSummary[]> {
  return (await ownPackages(session, app)).map(packageSummary);
}

/** Makes the package the one that the next start builds, and restage afterwards. */
export async function awaitBuild(session: SpaceSession, app: Stored<CFApp>, created: Stored<CFPackage>): Promise<void> {
  const guid = created.metadata.name;
  const others = (await ownPackages(session, app)).filter(({ metadata }) => metadata.name !== guid);
  const packages = packagesOf(app, [created, ...others]);
  await changeApp(session, app, (current) => ({
    annotations: { [annotations.unstaged]: unstagedMark(guid, current), [annotations.package]: packageMark(guid, packages) },
  }));
}

function otherKind({ bin }: SpaceSession, { spec: { displayName, lifecycle } }: Stored<CFApp>): KfError {
  const runsImages = lifecycle.type === 'docker';
  const message = runsImages
    ? `App '${displayName}' runs ready images; its package is an image and not a folder.`
    : `App '${displayName}' is built from source; its package is a folder and not an image.`;
  const args = runsImages ? '--docker-image IMAGE' : '-p PATH';
  return new KfError('usage', message, { hints: [`${bin} create-package ${displayName} ${args}`] });
}

/** A user of the image's registry. */
export type ImageLogin = Omit<ImageCredential, 'image'>;

/** What a new package holds. */
export type PackageContent = { path: string } | { image: string; credential?: ImageLogin };

/**
 * Creates a package, which the next start builds. Nothing is built or started now.
 * @throws KfError `usage` when the app takes the other kind of package, or those of the upload
 */
export async function createPackage(session: SpaceSession, app: Stored<CFApp>, content: PackageContent): Promise<PackageSummary> {
  if ('image' in content !== (app.spec.lifecycle.type === 'docker')) throw otherKind(session, app);
  const created =
    'image' in content ? await ofImage(session, app, content.image, content.credential) : await ofFolder(session, app, content.path);
  await awaitBuild(session, app, created);
  return packageSummary(created);
}

/**
 * @param image as the user typed it
 * @param credential kept in the app's Secret, which the package names
 */
export async function ofImage(
  session: SpaceSession,
  app: Stored<CFApp>,
  image: string,
  credential?: ImageLogin,
): Promise<Stored<CFPackage>> {
  parseReference(image);
  const author = await authorIn(session);
  const kept = credential === undefined ? undefined : await keepImageCredential(session, app, { image, ...credential }, author);
  const pullSecrets = kept === undefined ? [] : [kept.secretName];
  const wanted = buildPackage({ guid: randomUUID(), app, type: 'docker', image, pullSecrets }, author);
  return session.cluster.create(kinds.package, wanted, { signal: session.signal });
}

async function ofFolder(session: SpaceSession, app: Stored<CFApp>, path: string): Promise<Stored<CFPackage>> {
  const info = await session.info();
  requireCompatible(info, kfVersion());
  const cache = openCache(session);
  try {
    session.report({ type: 'reading-source' });
    const listing = await listForUpload(session, { path, cacheDir: cache.dir, namedBy: 'flag' });
    try {
      return (await uploadSource(session, info, { app, listing, cacheDir: cache.dir })).package;
    } finally {
      listing.close();
    }
  } finally {
    cache.close();
  }
}

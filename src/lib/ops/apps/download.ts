// Downloads a droplet: the files that the build added to the builder's run image, as one tar archive.

import { createWriteStream } from 'node:fs';
import { rename, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { finished, pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { extract, pack, type Pack } from 'tar-stream';
import type { Stored } from '../../api/object.ts';
import { pushReference } from '../../api/repositories.ts';
import type { CFApp, CFBuild } from '../../api/types.generated.ts';
import { KfError, messageOf } from '../../errors.ts';
import type { Descriptor } from '../../oci/descriptor.ts';
import type { ConfigFile, Manifest } from '../../oci/image.ts';
import { parseReference } from '../../oci/reference.ts';
import type { RegistryClient } from '../../oci/registry.ts';
import type { SpaceSession } from '../../session/session.ts';
import { decompressor } from '../../source/extract.ts';
import { openSpaceRegistry, withNamedRegistry } from '../registry/access.ts';
import { findDroplet } from './droplets.ts';

export interface Download {
  /** Default: the app's current droplet. */
  guid?: string | undefined;
  /** A file, or a folder that gets the file `droplet_GUID.tgz`. */
  path: string;
}

export interface DownloadedDroplet {
  droplet: string;
  path: string;
}

/** @throws KfError `not-found` in cf's words */
async function dropletFor(session: SpaceSession, app: Stored<CFApp>, guid: string | undefined): Promise<Stored<CFBuild>> {
  const { displayName } = app.spec;
  const found = await findDroplet(session, app, guid ?? app.spec.currentDropletRef?.name ?? '');
  if (found !== undefined) return found;
  const message =
    guid === undefined ? `App '${displayName}' does not have a current droplet.` : `Droplet '${guid}' not found for app '${displayName}'`;
  throw new KfError('not-found', message, { hints: [`${session.bin} droplets ${displayName}`] });
}

async function fileFor(given: string, guid: string): Promise<string> {
  const isFolder = await stat(given).then(
    (found) => found.isDirectory(),
    () => false,
  );
  return isFolder ? path.join(given, `droplet_${guid}.tgz`) : given;
}

/** The layers above the run image, lowest first. The lifecycle of the builder names the run image's last layer. */
export function layersOfBuild({ layers }: Pick<Manifest, 'layers'>, { config, rootfs }: ConfigFile): Descriptor[] {
  const text = config?.Labels?.['io.buildpacks.lifecycle.metadata'];
  let top: unknown;
  try {
    top = (JSON.parse(text ?? '{}') as { runImage?: { topLayer?: unknown } }).runImage?.topLayer;
  } catch {
    top = undefined;
  }
  return layers.slice(rootfs.diff_ids.findIndex((digest) => digest === top) + 1);
}

/** A path without its leading slash. @throws KfError `failed` for one that leads out of the folder that it is unpacked in */
function pathInside(name: string): string {
  const inside = name.replace(/^(\.?\/)+/, '');
  if (inside.split('/').includes('..')) throw new KfError('failed', `The droplet has a file with the path '${name}', which leads outside.`);
  return inside;
}

/** Copies the entries of a layer. A later entry replaces an earlier one of the same path when the archive is unpacked. */
async function addLayer(client: RegistryClient, repository: string, layer: Descriptor, archive: Pack, signal: AbortSignal): Promise<void> {
  const reader = extract();
  const body = await client.getBlob(repository, layer.digest, signal);
  const decompressed = decompressor(layer.mediaType);
  const feeding = decompressed ? pipeline(body, decompressed, reader, { signal }) : pipeline(body, reader, { signal });
  feeding.catch(() => undefined);
  try {
    for await (const entry of reader) {
      const name = pathInside(entry.header.name);
      if (name === '' || name === '.') entry.resume();
      else await pipeline(entry, archive.entry({ ...entry.header, name }), { signal });
    }
  } catch (error) {
    // When the layer is cut, the reader fails first, with a less useful error than the layer's own.
    await feeding;
    throw error;
  }
  await feeding;
}

/** Writes the archive beside its place and moves it there when it is complete. @throws KfError `failed` when it cannot be written */
async function writeArchive(file: string, fill: (archive: Pack) => Promise<void>, signal: AbortSignal): Promise<void> {
  const partial = `${file}.${process.pid}.part`;
  const archive = pack();
  const output = createWriteStream(partial);
  const written = pipeline(archive, createGzip(), output, { signal });
  written.catch((error: unknown) => archive.destroy(error instanceof Error ? error : new Error(String(error))));
  try {
    await fill(archive);
    archive.finalize();
    await written;
    await rename(partial, file);
  } catch (error) {
    archive.destroy();
    await finished(output).catch(() => undefined);
    await rm(partial, { force: true });
    const cause = output.errored ?? error;
    if ((cause as NodeJS.ErrnoException).syscall === undefined || signal.aborted) throw error;
    throw new KfError('failed', `Error creating droplet file: ${messageOf(cause).replaceAll(partial, file)}`, {
      hints: ['Name another file with --path PATH.'],
      cause,
    });
  }
}

/**
 * Downloads a droplet into a gzipped tar archive.
 * @throws KfError `not-found` without the droplet, `conflict` for a ready image, `upload` when the registry does not have it, `failed` for the file
 */
export async function downloadDroplet(session: SpaceSession, app: Stored<CFApp>, wanted: Download): Promise<DownloadedDroplet> {
  const { cluster, space, signal } = session;
  const build = await dropletFor(session, app, wanted.guid);
  const droplet = build.metadata.name;
  const info = await session.info();
  const image = build.status?.droplet?.registry.image ?? '';
  const reference = build.spec.lifecycle.type === 'docker' ? undefined : pushReference(info.registry, image);
  if (reference === undefined) {
    throw new KfError('conflict', `The droplet '${droplet}' is the ready image '${image}', which kf has not built.`, {
      hints: [`skopeo copy docker://${image} oci-archive:droplet.tar`],
    });
  }
  const { repository, digest = '' } = parseReference(reference);
  const client = await openSpaceRegistry(cluster, info, space.guid, signal);
  const file = await fileFor(wanted.path, droplet);
  const transfer = async (): Promise<void> => {
    const found = await client.resolve(repository, digest, build.status?.droplet?.architecture ?? 'amd64', signal);
    if (found === undefined) throw new KfError('not-found', `The registry does not have the image of the droplet '${droplet}' any more.`);
    const layers = layersOfBuild(found.manifest, await client.readConfig(repository, found.manifest, signal));
    const fill = async (archive: Pack): Promise<void> => {
      for (const layer of layers) await addLayer(client, repository, layer, archive, signal);
    };
    await writeArchive(file, fill, signal);
  };
  await withNamedRegistry(info, transfer, 'Download it again when it answers.');
  return { droplet, path: file };
}

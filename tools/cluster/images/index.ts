// The images of the cluster, assembled with the project's own OCI code and stored by content: existing layers are not packed again.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync, utimesSync } from 'node:fs';
import { join } from 'node:path';

import { imageFromLayers } from '../../../src/lib/oci/image.ts';
import type { Image } from '../../../src/lib/oci/image.ts';
import { writeLayouts } from '../../../src/lib/oci/layout.ts';
import type { PartPaths } from '../parts.ts';
import { defineImages, pauseImage } from './definitions.ts';
import type { ImageDefinition } from './definitions.ts';

export { pauseImage } from './definitions.ts';

export interface BuildImagesOptions {
  /** The folder of layers and archives, for all clusters. */
  cacheDir: string;
  parts: PartPaths;
  log: (line: string) => void;
  /** Host of the registry in the names of images, as pods reach it: `10.244.0.1:5000`. */
  insideRegistry: string;
}

export interface BuiltImage {
  /** Full reference with tag. */
  name: string;
  /** OCI layout tar for `ctr images import`. Images share archives: import each path once. */
  archive: string;
  /** The node needs it before anything can run. */
  preload: boolean;
  /** It is in the registry too. */
  push: boolean;
  /** Digest of the manifest. */
  digest: string;
  /** Config, manifest and layers (with the paths of their blobs), for pushing. */
  image: Image;
}

const ARCHITECTURES: Partial<Record<NodeJS.Architecture, string>> = { x64: 'amd64', arm64: 'arm64' };

/** Packs missing images; if everything is in the cache this takes some milliseconds. */
export async function buildImages(options: BuildImagesOptions): Promise<BuiltImage[]> {
  const { cacheDir, insideRegistry, log } = options;
  const architecture = ARCHITECTURES[process.arch];
  if (architecture === undefined) throw new Error(`Images can be made for amd64 and arm64; this machine is ${process.arch}.`);
  mkdirSync(cacheDir, { recursive: true });
  const definitions = await defineImages(options.parts, `${insideRegistry}/`, { cacheDir, log });
  const built = definitions.map((definition) => ({
    definition,
    name: definition.name === pauseImage ? pauseImage : `${insideRegistry}/${definition.name}`,
    image: imageFromLayers({ layers: definition.layers, config: { ...definition.config, architecture, os: 'linux' } }),
  }));
  const archives = new Map<ImageDefinition['group'], string>();
  for (const group of ['cluster', 'platform'] as const) {
    const members = built.filter(({ definition }) => definition.group === group);
    archives.set(group, await storedArchive(group, members, options));
  }
  return built.map(({ definition, name, image }) => ({
    name,
    image,
    archive: archives.get(definition.group) ?? '',
    preload: true,
    push: definition.group === 'platform',
    digest: image.manifest.descriptor.digest,
  }));
}

interface Named {
  name: string;
  image: Image;
}

/** Archives that were not used for this time are removed; a newer one may belong to a cluster of another checkout. */
const KEEP_ARCHIVE_MS = 24 * 60 * 60 * 1000;

/** One archive per group, named by its digests. */
async function storedArchive(group: string, images: Named[], { cacheDir, log }: BuildImagesOptions): Promise<string> {
  const names = images.map(({ name, image }) => [name, image.manifest.descriptor.digest]);
  const key = createHash('sha256').update(JSON.stringify(names)).digest('hex').slice(0, 16);
  const path = join(cacheDir, `${group}-${key}.tar`);
  if (existsSync(path)) {
    utimesSync(path, new Date(), new Date());
    return path;
  }
  log(`images: writing the archive of ${String(images.length)} ${group} images`);
  const temporary = `${path}.${String(process.pid)}.tmp`;
  try {
    await writeLayouts(temporary, images);
    renameSync(temporary, path);
  } finally {
    rmSync(temporary, { force: true });
  }
  removeOldArchives(cacheDir, group);
  return path;
}

function removeOldArchives(cacheDir: string, group: string): void {
  for (const file of readdirSync(cacheDir).filter((name) => name.startsWith(`${group}-`) && name.endsWith('.tar'))) {
    const path = join(cacheDir, file);
    if (Date.now() - statSync(path).mtimeMs > KEEP_ARCHIVE_MS) rmSync(path, { force: true });
  }
}

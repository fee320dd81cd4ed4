// Stores images in the file store of CNCF distribution: the same files as after a push, without network traffic.
// https://github.com/distribution/distribution/blob/v3.0.0/registry/storage/paths.go specifies the paths.
import { copyFileSync, existsSync, linkSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

import type { Digest } from '../../../src/lib/oci/descriptor.ts';
import type { BuiltImage } from './index.ts';

/**
 * Stores the images that are marked for it. Works while the registry runs: it keeps no index of its own.
 * @param storage the registry's `rootdirectory`
 * @param registry host and port as in the images' names
 */
export function storeImages(images: readonly BuiltImage[], storage: string, registry: string): void {
  const root = join(storage, 'docker', 'registry', 'v2');
  for (const { name, image, push } of images) {
    if (!push || !name.startsWith(`${registry}/`)) continue;
    const [repository = '', tag = 'latest'] = name.slice(registry.length + 1).split(':');
    const folder = join(root, 'repositories', repository);
    for (const layer of image.layers) {
      putBlob(root, layer.digest, layer.path);
      putLink(join(folder, '_layers'), layer.digest);
    }
    const { config, manifest } = image;
    putBlob(root, config.descriptor.digest, config.bytes);
    putLink(join(folder, '_layers'), config.descriptor.digest);
    putBlob(root, manifest.descriptor.digest, manifest.bytes);
    putLink(join(folder, '_manifests', 'revisions'), manifest.descriptor.digest);
    const tagFolder = join(folder, '_manifests', 'tags', tag);
    putLink(join(tagFolder, 'index'), manifest.descriptor.digest);
    putFile(join(tagFolder, 'current', 'link'), manifest.descriptor.digest);
  }
}

function putBlob(root: string, digest: Digest, source: string | Buffer): void {
  const hex = digest.slice('sha256:'.length);
  const file = join(root, 'blobs', 'sha256', hex.slice(0, 2), hex, 'data');
  if (existsSync(file)) return;
  if (typeof source !== 'string') {
    putFile(file, source);
    return;
  }
  mkdirSync(dirname(file), { recursive: true });
  try {
    // The registry never changes a blob, so both can share the file.
    linkSync(source, file);
  } catch {
    // It is on another file system.
    copyFileSync(source, `${file}.tmp`);
    renameSync(`${file}.tmp`, file);
  }
}

function putLink(folder: string, digest: Digest): void {
  putFile(join(folder, 'sha256', digest.slice('sha256:'.length), 'link'), digest);
}

function putFile(file: string, content: string | Buffer): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(`${file}.tmp`, content);
  renameSync(`${file}.tmp`, file);
}

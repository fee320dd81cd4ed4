// Loads images onto a node: into containerd, and into the registry that replaces a public one.
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { nodeRegistry } from './addresses.ts';
import type { BuiltImage } from './images/index.ts';
import { storeImages } from './images/registry-store.ts';
import { runInside } from './namespaces.ts';
import { partPath } from './parts.ts';
import type { PartPaths } from './parts.ts';
import type { ProcessMark } from './process.ts';
import { containerdSocket } from './worker.ts';

/** Runs containerd's own client on a node. */
function ctr(init: ProcessMark, parts: PartPaths, args: string[]): Promise<string> {
  return runInside(init, [partPath(parts, 'ctr'), '--address', containerdSocket, '--namespace', 'k8s.io', ...args]);
}

/** Waits until containerd answers. */
export async function waitForContainerd(init: ProcessMark, parts: PartPaths, timeoutMs: number): Promise<void> {
  const end = Date.now() + timeoutMs;
  for (;;) {
    try {
      await ctr(init, parts, ['plugins', 'ls', 'id==cri']);
      return;
    } catch (error) {
      if (Date.now() > end) throw new Error(`containerd does not answer within ${String(timeoutMs / 1000)} s.`, { cause: error });
      await sleep(50);
    }
  }
}

/**
 * Imports images for pods, and puts the marked ones into the node's registry. Images that are present with the same digest are skipped.
 * @param data the cluster's data folder
 */
export async function bringImages(init: ProcessMark, parts: PartPaths, data: string, images: BuiltImage[]): Promise<void> {
  storeImages(images, join(data, 'registry'), nodeRegistry);
  await importImages(init, parts, images);
}

/** Imports images for pods. Images that are present with the same digest are skipped. */
export async function importImages(init: ProcessMark, parts: PartPaths, images: BuiltImage[]): Promise<void> {
  const listed = (await ctr(init, parts, ['images', 'ls'])).split('\n');
  const present = new Set(listed.map((line) => line.split(/\s+/)).map(([name, , digest]) => `${String(name)} ${String(digest)}`));
  const missing = images.filter((image) => image.preload && !present.has(`${image.name} ${image.digest}`));
  // An archive contains several images; common layers are unpacked once.
  const archives = new Set(missing.map((image) => image.archive));
  await Promise.all([...archives].map((archive) => ctr(init, parts, ['images', 'import', archive])));
}

// Brings images to a node: into containerd, and into the registry that stands for a public one.
import { setTimeout as sleep } from 'node:timers/promises';

import { runInside } from './namespaces.ts';
import { partPath } from './parts.ts';
import type { PartPaths } from './parts.ts';
import { tryRun } from './process.ts';
import type { ProcessMark } from './process.ts';
import { containerdSocket } from './worker.ts';

/** An image that was assembled on the host. */
export interface BuiltImage {
  /** Full name, for example 10.244.0.1:5000/kf/node:24. */
  name: string;
  /** Path of an OCI layout tar whose index carries the name. */
  archive: string;
  /** Imported into containerd, where pods find it without a pull. */
  preload: boolean;
  /** Pushed to the node's registry. */
  push: boolean;
}

/** Runs containerd's own client on a node. */
function ctr(init: ProcessMark, parts: PartPaths, namespace: string, args: string[]): Promise<string> {
  return runInside(init, [partPath(parts, 'ctr'), '--address', containerdSocket, '--namespace', namespace, ...args]);
}

/** Waits until containerd answers. */
export async function waitForContainerd(init: ProcessMark, parts: PartPaths, timeoutMs: number): Promise<void> {
  const end = Date.now() + timeoutMs;
  for (;;) {
    try {
      await ctr(init, parts, 'k8s.io', ['plugins', 'ls', 'id==cri']);
      return;
    } catch (error) {
      if (Date.now() > end) throw new Error(`containerd does not answer within ${String(timeoutMs / 1000)} s.`, { cause: error });
      await sleep(50);
    }
  }
}

/** Imports images for pods, as many at a time as the machine has processors; what containerd has already is left alone. */
export async function importImages(init: ProcessMark, parts: PartPaths, images: BuiltImage[]): Promise<void> {
  const present = new Set((await ctr(init, parts, 'k8s.io', ['images', 'ls', '-q'])).split('\n'));
  const missing = images.filter((image) => image.preload && !present.has(image.name));
  // Images may share an archive, so that layers they have in common are read once.
  const archives = [...new Set(missing.map((image) => image.archive))];
  await inTwoLanes(archives, (archive) => ctr(init, parts, 'k8s.io', ['images', 'import', archive]));
}

/** Pushes images to the registry on the node. They pass through a containerd namespace of their own, where nothing is unpacked. */
export async function pushImages(init: ProcessMark, parts: PartPaths, images: BuiltImage[]): Promise<void> {
  const pushed = images.filter((image) => image.push);
  const archives = [...new Set(pushed.map((image) => image.archive))];
  await inTwoLanes(archives, (archive) => ctr(init, parts, 'push', ['images', 'import', '--no-unpack', archive]));
  await inTwoLanes(pushed, (image) => ctr(init, parts, 'push', ['images', 'push', '--plain-http', image.name]));
  const imported = (await ctr(init, parts, 'push', ['images', 'ls', '-q'])).split('\n').filter((name) => name !== '');
  if (imported.length > 0) await ctr(init, parts, 'push', ['images', 'rm', ...imported]);
}

async function inTwoLanes<T>(items: T[], work: (item: T) => Promise<unknown>): Promise<void> {
  const queue = [...items];
  const lane = async (): Promise<void> => {
    for (let item = queue.shift(); item !== undefined; item = queue.shift()) await work(item);
  };
  await Promise.all([lane(), lane()]);
}

/** Whether the registry on the node answers. */
export async function isRegistryUp(address: string): Promise<boolean> {
  return (await tryRun('curl', ['-fsS', '-m', '2', `http://${address}/v2/`])).code === 0;
}

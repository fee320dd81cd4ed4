// Packs a listed folder into one compressed layer on disk, and pushes it. The packed layer and the upload session survive a killed run, so the
// next run continues where it stopped; a successful push removes both.

import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { KfError } from '../errors.ts';
import { RegistryError } from '../oci/errors.ts';
import { type Compression, type Layer, layerFromEntries } from '../oci/layer.ts';
import { pushSingleLayerImage, type PushOptions, type PushResult } from '../oci/push.ts';
import type { UploadMemory } from '../oci/upload.ts';
import type { SourceListing } from './listing.ts';
import { defined } from '../defined.ts';

export interface PackOptions {
  cacheDir: string;
  /**
   * Default zstd: for 10,000 files of 300 MB it was measured at 1.3 s and 98 MB; gzip's fastest level took 3.4 s and 155 MB. Only kf's own fetch
   * program needs to read this layer; tools based on go-containerregistry can read it too.
   */
  compression?: Compression;
  level?: number;
  /** Bytes of the tar so far; ends a little above the listing's `bytes`. */
  progress?: (tarBytes: number) => void;
  signal?: AbortSignal;
}

export interface PackedSource {
  layer: Layer;
  /** True when the layer of an earlier, interrupted run was reused. */
  reused: boolean;
  /** The upload session of the layer is stored next to it. */
  memory: UploadMemory;
  /** Removes layer and session. */
  discard(): void;
}

/** Throws KfError `upload` naming the file when one changed since it was listed. */
export async function packSource(listing: SourceListing, options: PackOptions): Promise<PackedSource> {
  const compression = options.compression ?? 'zstd';
  const kind = `layer-${listing.contentHash.slice('sha256:'.length)}-${compression}`;
  // The name contains the process id, so that two concurrent pushes of one folder do not share a layer or an upload session.
  const base = join(options.cacheDir, `${kind}.${process.pid}.${randomUUID().slice(0, 8)}`);
  const earlier = takeOver(options.cacheDir, kind, base);
  const layer = earlier ?? (await packNew(listing, base, { ...options, compression }));
  return { layer, reused: earlier !== undefined, memory: sessionFile(`${base}.session`), discard: () => removePacked(base) };
}

export type SourcePushOptions = Omit<PushOptions, 'layer' | 'memory'>;

/** Pushes a packed layer as an image and removes its files. After a failure, layer and session stay for the next run. */
export async function pushSource(packed: PackedSource, options: SourcePushOptions): Promise<PushResult> {
  try {
    const result = await pushSingleLayerImage({ ...options, layer: packed.layer, memory: packed.memory });
    packed.discard();
    return result;
  } catch (error) {
    // The bytes on disk are not those that were hashed. If they stayed, every later push would fail too.
    if (error instanceof RegistryError && error.has('DIGEST_INVALID')) packed.discard();
    throw error;
  }
}

async function packNew(listing: SourceListing, base: string, options: PackOptions & { compression: Compression }): Promise<Layer> {
  const { compression, level, progress, signal } = options;
  const output = `${base}.layer`;
  try {
    const layer = await layerFromEntries(listing.layerEntries(), {
      output,
      compression,
      ...defined({ level, progress, signal }),
    });
    // Written last: when the description exists, the layer is complete.
    writeWhole(`${base}.json`, JSON.stringify(layer));
    return layer;
  } catch (error) {
    rmSync(output, { force: true });
    throw isSystemError(error)
      ? new KfError('upload', `The packed source cannot be written to '${output}': ${error.message}.`, { cause: error })
      : error;
  }
}

function isSystemError(error: unknown): error is Error {
  return error instanceof Error && typeof (error as NodeJS.ErrnoException).syscall === 'string';
}

/** Takes a complete layer of a process that has ended and renames it to `base`. If two processes want it, the rename of its description decides. */
function takeOver(cacheDir: string, kind: string, base: string): Layer | undefined {
  for (const name of namesIn(cacheDir)) {
    const owner = name.startsWith(`${kind}.`) ? /\.(\d+)\.[0-9a-f]+\.json$/.exec(name)?.[1] : undefined;
    if (owner === undefined || isAlive(Number(owner))) continue;
    const old = join(cacheDir, name.slice(0, -'.json'.length));
    if (!renamed(`${old}.json`, `${base}.json`)) continue;
    renamed(`${old}.session`, `${base}.session`);
    const layer = renamed(`${old}.layer`, `${base}.layer`) ? readPacked(base) : undefined;
    if (layer) return layer;
    removePacked(base);
  }
  return undefined;
}

/** An unreadable folder has nothing to take over; the later write reports the cause. */
function namesIn(dir: string): string[] {
  try {
    return readdirSync(dir);
  } catch {
    return [];
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

function renamed(from: string, to: string): boolean {
  try {
    renameSync(from, to);
    return true;
  } catch {
    return false;
  }
}

function readPacked(base: string): Layer | undefined {
  try {
    const layer = { ...(JSON.parse(readFileSync(`${base}.json`, 'utf8')) as Layer), path: `${base}.layer` };
    return statSync(layer.path).size === layer.size ? layer : undefined;
  } catch {
    return undefined;
  }
}

function removePacked(base: string): void {
  for (const part of ['json', 'session', 'layer']) rmSync(`${base}.${part}`, { force: true });
}

function sessionFile(path: string): UploadMemory {
  return {
    load: () => {
      try {
        return readFileSync(path, 'utf8');
      } catch {
        return undefined;
      }
    },
    save: (session) => {
      if (session === undefined) rmSync(path, { force: true });
      else writeWhole(path, session);
    },
  };
}

function writeWhole(path: string, text: string): void {
  const temporary = `${path}.${randomUUID()}.tmp`;
  writeFileSync(temporary, text, { mode: 0o600 });
  renameSync(temporary, path);
}

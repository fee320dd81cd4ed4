// One repository in the registry's files: its links to manifests and layers, and its tags. The time of a link's file is when it was last used.
// https://github.com/distribution/distribution/blob/v3.0.0/registry/storage/paths.go

import { rm, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { defined } from '../../lib/defined.ts';
import { factsOf, isGone, namesOneByOne, readAtMost } from './files.ts';

export const hexDigest = /^[0-9a-f]{64}$/;
export const tagName = /^[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}$/;
export const uploadName = /^[a-zA-Z0-9-]{1,64}$/;

/** What a repository refers to. */
export type LinkKind = 'manifest' | 'layer';
/** The folder of a repository's links of a kind. */
export const linkFolders: Record<LinkKind, string> = { layer: '_layers/sha256', manifest: '_manifests/revisions/sha256' };
const tagsFolder = '_manifests/tags';
/**
 * The registry takes manifests of 4 MiB, but parsed they may need twenty times their size, and the gate has 64 MiB. An entry for a layer has about 150
 * bytes.
 */
const mostManifestBytes = 1024 * 1024;
/** A link is `sha256:` and 64 digits. */
const mostLinkBytes = 1024;

export interface Link {
  /** 64 hexadecimal digits. */
  digest: string;
  /** When it was stored, found by a push, or last known to be referenced; 0 for the remains of an interrupted removal. */
  usedAt: number;
}

export interface Tag {
  name: string;
  /** Left out if the tag names nothing. */
  digest?: string;
  usedAt: number;
}

export class Repository {
  readonly #folder: string;
  readonly #blobs: string;

  /**
   * @param root the registry's folder `docker/registry/v2`
   * @param name `<space>/<name>`
   */
  constructor(root: string, name: string) {
    this.#folder = join(root, 'repositories', name);
    this.#blobs = join(root, 'blobs/sha256');
  }

  async *links(kind: LinkKind): AsyncGenerator<Link> {
    for await (const digest of namesOneByOne(join(this.#folder, linkFolders[kind]), hexDigest)) {
      const facts = await factsOf(join(this.#linkFolder(kind, digest), 'link'));
      yield { digest, usedAt: facts?.mtimeMs ?? 0 };
    }
  }

  async *tags(): AsyncGenerator<Tag> {
    for await (const name of namesOneByOne(join(this.#folder, tagsFolder), tagName)) {
      const folder = join(this.#folder, tagsFolder, name);
      const digest = await this.digestOf(name);
      const facts = await factsOf(digest === undefined ? folder : join(folder, 'current/link'));
      yield { name, usedAt: facts?.mtimeMs ?? 0, ...defined({ digest }) };
    }
  }

  /** The manifest that a tag names now. */
  async digestOf(tag: string): Promise<string | undefined> {
    const text = await readAtMost(join(this.#folder, tagsFolder, tag, 'current/link'), mostLinkBytes);
    return /^sha256:([0-9a-f]{64})$/.exec((text ?? '').toString().trim())?.[1];
  }

  /** Remembers that a link is in use. Nothing happens if there is no such link. */
  async use(kind: LinkKind, digest: string, now: number): Promise<void> {
    try {
      await utimes(join(this.#linkFolder(kind, digest), 'link'), now / 1000, now / 1000);
    } catch (error) {
      if (!isGone(error)) throw error;
    }
  }

  /** Removes the link; the blob goes with the next sweep if no other repository refers to it. */
  async unlink(kind: LinkKind, digest: string): Promise<void> {
    await rm(this.#linkFolder(kind, digest), { recursive: true, force: true });
  }

  async removeTag(name: string): Promise<void> {
    await rm(join(this.#folder, tagsFolder, name), { recursive: true, force: true });
  }

  /** Removes what a tag named before, except the manifests that stay. */
  async forgetHistory(tag: string, isKept: (digest: string) => boolean): Promise<void> {
    const index = join(this.#folder, tagsFolder, tag, 'index/sha256');
    for await (const digest of namesOneByOne(index, hexDigest))
      if (!isKept(digest)) await rm(join(index, digest), { recursive: true, force: true });
  }

  /** True while an upload is under way. */
  async hasUploads(): Promise<boolean> {
    for await (const _ of namesOneByOne(join(this.#folder, '_uploads'), uploadName)) return true;
    return false;
  }

  /** The text of a manifest; undefined if the volume does not have it. @throws Error if it has more than 1 MiB */
  async manifest(digest: string): Promise<string | undefined> {
    return (await readAtMost(this.#blobFile(digest), mostManifestBytes))?.toString();
  }

  /** Size of a blob; 0 if the volume does not have it. */
  async sizeOf(digest: string): Promise<number> {
    return (await factsOf(this.#blobFile(digest)))?.size ?? 0;
  }

  #linkFolder(kind: LinkKind, digest: string): string {
    return join(this.#folder, linkFolders[kind], digest);
  }

  #blobFile(digest: string): string {
    return join(this.#blobs, digest.slice(0, 2), digest, 'data');
  }
}

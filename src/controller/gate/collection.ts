// Collects one repository: removes its links to manifests that nothing refers to any more, and to their layers. The sweep removes the blobs afterwards.

import type { BlobSize, Collected, CollectionRequest } from '../../lib/api/gate-status.ts';
import type { Link, LinkKind, Repository, Tag } from './repository.ts';

interface Content {
  manifests: Link[];
  layers: Link[];
  tags: Tag[];
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = [];
  for await (const item of items) list.push(item);
  return list;
}

async function contentOf(repository: Repository): Promise<Content> {
  return {
    manifests: await all(repository.links('manifest')),
    layers: await all(repository.links('layer')),
    tags: await all(repository.tags()),
  };
}

const digestText = /^sha256:([0-9a-f]{64})$/;
const hexOf = (entry: unknown): string | undefined => {
  const digest: unknown = (entry as { digest?: unknown } | null | undefined)?.digest;
  return typeof digest === 'string' ? digestText.exec(digest)?.[1] : undefined;
};
const hexesOf = (entries: unknown): string[] => (Array.isArray(entries) ? entries.flatMap((entry) => hexOf(entry) ?? []) : []);

/** What a manifest or an index refers to. @throws Error if the text is not JSON: then it is not known what it needs */
export function referencesOf(text: string): { manifests: string[]; layers: string[] } {
  const manifest = JSON.parse(text) as Partial<Record<'config' | 'layers' | 'blobs' | 'manifests', unknown>> | null;
  return {
    manifests: hexesOf(manifest?.manifests),
    layers: [...hexesOf([manifest?.config]), ...hexesOf(manifest?.layers), ...hexesOf(manifest?.blobs)],
  };
}

interface Marked {
  manifests: Set<string>;
  layers: Set<string>;
}

/**
 * Everything that the manifests need, through any number of indexes.
 * @param linked the repository's manifests; an index may also name others
 * @throws Error if it is not known what one of those needs: its text may not be on the volume yet while a backup fills it
 */
async function mark(repository: Repository, roots: readonly string[], linked: ReadonlySet<string>): Promise<Marked> {
  const marked: Marked = { manifests: new Set(roots), layers: new Set() };
  // A set is visited in the order of its growth, with what is added meanwhile.
  for (const digest of marked.manifests) {
    const text = await repository.manifest(digest);
    if (text === undefined && linked.has(digest)) throw new Error(`the volume does not have the manifest sha256:${digest}`);
    if (text === undefined) continue;
    const needed = referencesOf(text);
    for (const manifest of needed.manifests) marked.manifests.add(manifest);
    for (const layer of needed.layers) marked.layers.add(layer);
  }
  return marked;
}

/** Digests that the request keeps; a tag keeps what it names now. */
function keptBy({ keep }: CollectionRequest, tags: readonly Tag[]): Set<string> {
  const byName = new Map(tags.map(({ name, digest }) => [name, digest]));
  return new Set(keep.flatMap((text) => digestText.exec(text)?.[1] ?? byName.get(text) ?? []));
}

/**
 * Removes the links that are neither kept nor used for a time. It can end at any moment: first the tags go, then the manifests, then the layers, so a
 * manifest that is there has its layers. Nothing is removed, and the error is thrown, if it is not known what a manifest needs that stays.
 *
 * @param now Unix milliseconds of the clock that wrote the times of the files
 */
export async function collect(repository: Repository, request: CollectionRequest, now: number): Promise<Collected> {
  const before = request.unusedSince * 1000;
  const isOld = ({ usedAt }: { usedAt: number }): boolean => usedAt <= before;
  const { manifests, layers, tags } = await contentOf(repository);
  const kept = keptBy(request, tags);
  const referenced = manifests.filter(({ digest }) => kept.has(digest)).map(({ digest }) => digest);
  const young = manifests.filter((link) => !isOld(link)).map(({ digest }) => digest);
  const linked = new Set(manifests.map(({ digest }) => digest));
  const marked = await mark(repository, [...referenced, ...young], linked);
  const surplus: Record<LinkKind, string[]> = {
    manifest: manifests.filter(({ digest }) => !marked.manifests.has(digest)).map(({ digest }) => digest),
    layer: layers.filter((link) => !marked.layers.has(link.digest) && isOld(link)).map(({ digest }) => digest),
  };
  const collected: Collected = { manifests: surplus.manifest.length, layers: surplus.layer.length };
  if (request.dryRun === true) return { ...collected, blobs: await sizesOf(repository, [...surplus.manifest, ...surplus.layer]) };
  for (const digest of (await mark(repository, referenced, linked)).manifests) await repository.use('manifest', digest, now);
  for (const tag of tags) {
    if (marked.manifests.has(tag.digest ?? '')) await repository.forgetHistory(tag.name, (digest) => marked.manifests.has(digest));
    else if (isOld(tag)) await repository.removeTag(tag.name);
  }
  for (const kind of ['manifest', 'layer'] as const) for (const digest of surplus[kind]) await repository.unlink(kind, digest);
  return collected;
}

async function sizesOf(repository: Repository, digests: readonly string[]): Promise<BlobSize[]> {
  const sizes: BlobSize[] = [];
  for (const digest of digests) sizes.push({ digest, bytes: await repository.sizeOf(digest) });
  return sizes;
}

/** All manifests and layers of a repository, with their sizes. */
export async function blobsOf(repository: Repository): Promise<BlobSize[]> {
  const { manifests, layers } = await contentOf(repository);
  return sizesOf(
    repository,
    [...manifests, ...layers].map(({ digest }) => digest),
  );
}

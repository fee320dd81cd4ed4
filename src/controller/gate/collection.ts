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

type Digests<S> = Record<LinkKind, S>;

/** The values of a field: the registry does not distinguish upper and lower case in names, and Go takes a long s (U+017F) for one too. */
const fieldsOf = (object: unknown, name: string): unknown[] =>
  typeof object === 'object' && object !== null
    ? Object.entries(object).flatMap(([key, value]) => (key.toLowerCase().replaceAll('\u017F', 's') === name ? [value as unknown] : []))
    : [];
const hexesOf = (entries: readonly unknown[]): string[] =>
  entries.flatMap((entry) => fieldsOf(entry, 'digest').flatMap((digest) => digestText.exec(String(digest))?.[1] ?? []));
const inLists = (document: unknown, name: string): string[] =>
  fieldsOf(document, name).flatMap((entries) => (Array.isArray(entries) ? hexesOf(entries) : []));

/** What a manifest or an index refers to. @throws Error if the text is not JSON: then it is not known what it needs */
export function referencesOf(text: string): Digests<string[]> {
  const document: unknown = JSON.parse(text);
  return {
    manifest: inLists(document, 'manifests'),
    layer: [...hexesOf(fieldsOf(document, 'config')), ...inLists(document, 'layers'), ...inLists(document, 'blobs')],
  };
}

/**
 * Everything that the manifests need, through any number of indexes; a manifest that was stored as a blob counts, since the registry serves it. What a
 * manifest names and the repository has no link to is left out: it is no part of this repository, so it is not read either, and what is kept in memory
 * has an end.
 * @throws Error if it is not known what one of those needs: its text may not be on the volume yet while a backup fills it
 */
async function mark(
  repository: Repository,
  roots: readonly string[],
  linked: Digests<ReadonlySet<string>>,
): Promise<Digests<ReadonlySet<string>>> {
  const marked: Digests<Set<string>> = { manifest: new Set(roots), layer: new Set() };
  // A set is visited in the order of its growth, with what is added meanwhile.
  for (const digest of marked.manifest) {
    const text = await repository.manifest(digest);
    if (text === undefined) throw new Error(`the volume does not have the manifest sha256:${digest}`);
    const { manifest, layer } = referencesOf(text);
    for (const named of manifest) if (linked.manifest.has(named) || linked.layer.has(named)) marked.manifest.add(named);
    for (const named of [...manifest, ...layer]) if (linked.layer.has(named)) marked.layer.add(named);
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
  const digestsOf = (links: readonly Link[]): Set<string> => new Set(links.map(({ digest }) => digest));
  const linked = { manifest: digestsOf(manifests), layer: digestsOf(layers) };
  const marked = await mark(repository, [...referenced, ...young], linked);
  const surplus: Record<LinkKind, string[]> = {
    manifest: manifests.filter(({ digest }) => !marked.manifest.has(digest)).map(({ digest }) => digest),
    layer: layers.filter((link) => !marked.layer.has(link.digest) && isOld(link)).map(({ digest }) => digest),
  };
  const collected: Collected = { manifests: surplus.manifest.length, layers: surplus.layer.length };
  if (request.dryRun === true) return { ...collected, blobs: await sizesOf(repository, [...surplus.manifest, ...surplus.layer]) };
  for (const digest of (await mark(repository, referenced, linked)).manifest) await repository.use('manifest', digest, now);
  for (const tag of tags) {
    if (marked.manifest.has(tag.digest ?? '')) await repository.forgetHistory(tag.name, (digest) => marked.manifest.has(digest));
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

// The client of a registry: blobs and manifests of repositories. It does not know clusters; the connection is a parameter.

import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { KfError } from '../errors.ts';
import type { Scope } from './auth.ts';
import { type Blob, type Descriptor, type Digest, digestOf, isDigest, MEDIA_TYPES } from './descriptor.ts';
import { discard, type HttpResponse, readUpTo } from './http.ts';
import type { ConfigFile, Manifest } from './image.ts';
import { RegistrySession, type SessionOptions } from './session.ts';
import { DEFAULT_CHUNK_BYTES, uploadBlob, type UploadOptions, type UploadResult } from './upload.ts';

/** The fields of an index (several platforms) that kf reads. */
interface Index {
  mediaType?: string;
  manifests: Descriptor[];
}

export interface FetchedManifest {
  bytes: Buffer;
  descriptor: Descriptor;
}

export interface ResolvedImage {
  /** Digest of the manifest for the platform. */
  digest: Digest;
  /** Digest that the tag pointed to: the index's if there is one. */
  rootDigest: Digest;
  manifest: Manifest;
  /** The index that the tag pointed to has images of further architectures. */
  hasOtherArchitectures: boolean;
}

const MANIFEST_ACCEPT = [MEDIA_TYPES.index, MEDIA_TYPES.manifest, MEDIA_TYPES.dockerIndex, MEDIA_TYPES.dockerManifest].join(', ');
/** A manifest of 127 layers, or an index of all platforms, has less than a tenth of it. Parsed JSON takes many times its size in memory. */
const MAX_MANIFEST_BYTES = 1024 * 1024;
const MAX_CONFIG_BYTES = 1024 * 1024;
/** Limit for pages of tags; a registry could send another page for ever. */
const MAX_TAG_PAGES = 100;
const MAX_NAMED_PLATFORMS = 20;

export class RegistryClient {
  readonly #session: RegistrySession;

  constructor(options: SessionOptions) {
    this.#session = new RegistrySession(options);
  }

  /** Size of a blob, or undefined when the repository does not have it. */
  async headBlob(
    repository: string,
    digest: Digest,
    signal?: AbortSignal,
    actions: Scope['actions'] = 'pull',
  ): Promise<number | undefined> {
    const scope: Scope = { repository, actions };
    const doing = `looking for ${digest} in '${repository}'`;
    const response = await this.#session.request({
      method: 'HEAD',
      path: blobPath(repository, digest),
      scope,
      expect: [200, 404],
      doing,
      signal,
    });
    await discard(response);
    return response.status === 200 ? Number(response.headers['content-length'] ?? 0) : undefined;
  }

  /** The blob's bytes. The stream fails at its end when their hash is not `digest`. */
  async getBlob(repository: string, digest: Digest, signal?: AbortSignal): Promise<Readable> {
    const response = await this.#read(repository, blobPath(repository, digest), `reading ${digest} from '${repository}'`, { signal });
    return Readable.from(verified(response.body, digest), { objectMode: false });
  }

  /** Uploads a blob unless it exists. */
  async putBlob(options: UploadOptions): Promise<UploadResult> {
    const { repository, source, signal, memory, chunkBytes } = options;
    const there = await this.headBlob(repository, source.digest, signal, 'pull,push');
    if (there === undefined) return uploadBlob(this.#session, options);
    memory?.save(undefined);
    options.progress?.(source.size, source.size);
    return { bytesSent: 0, chunkBytes: chunkBytes ?? DEFAULT_CHUNK_BYTES };
  }

  /** The descriptor of a tag or digest, or undefined. */
  async headManifest(repository: string, reference: string, signal?: AbortSignal): Promise<Descriptor | undefined> {
    const scope: Scope = { repository, actions: 'pull' };
    const doing = `looking for '${repository}' ${reference}`;
    const headers = { Accept: MANIFEST_ACCEPT };
    const path = manifestPath(repository, reference);
    const response = await this.#session.request({ method: 'HEAD', path, scope, headers, expect: [200, 404], doing, signal });
    await discard(response);
    const digest = response.headers['docker-content-digest'] ?? reference;
    if (response.status === 404) return undefined;
    // The header is optional in the specification; without it, the digest is computed.
    if (!isDigest(digest)) return (await this.getManifest(repository, reference, signal))?.descriptor;
    return { mediaType: mediaTypeOf(response), digest, size: Number(response.headers['content-length'] ?? 0) };
  }

  /** A manifest or index with its exact bytes, or undefined when there is none. A wrong digest is an error. */
  async getManifest(repository: string, reference: string, signal?: AbortSignal): Promise<FetchedManifest | undefined> {
    const doing = `reading the manifest '${repository}' ${reference}`;
    const options = { headers: { Accept: MANIFEST_ACCEPT }, expect: [200, 404], signal };
    const response = await this.#read(repository, manifestPath(repository, reference), doing, options);
    if (response.status === 404) {
      await discard(response);
      return undefined;
    }
    const bytes = await readUpTo(response.body, MAX_MANIFEST_BYTES);
    const digest = digestOf(bytes);
    if (isDigest(reference) && digest !== reference) throw wrongDigest(reference);
    return { bytes, descriptor: { mediaType: mediaTypeOf(response), digest, size: bytes.length } };
  }

  /** Stores a manifest under a tag or its digest. Its blobs must exist. */
  async putManifest(repository: string, reference: string, manifest: Blob, signal?: AbortSignal): Promise<void> {
    const response = await this.#session.request({
      method: 'PUT',
      path: manifestPath(repository, reference),
      scope: { repository, actions: 'pull,push' },
      headers: { 'Content-Type': manifest.descriptor.mediaType, 'Content-Length': String(manifest.bytes.length) },
      body: () => manifest.bytes,
      expect: [200, 201, 202],
      doing: `pushing the manifest '${repository}' ${reference}`,
      signal,
    });
    await discard(response);
  }

  /** All tags of a repository; empty when the repository does not exist. */
  async tags(repository: string, signal?: AbortSignal): Promise<string[]> {
    const tags: string[] = [];
    let path: string | undefined = `/v2/${repository}/tags/list`;
    for (let pages = 0; path !== undefined && pages < MAX_TAG_PAGES; pages++) {
      const response: HttpResponse = await this.#read(repository, path, `listing the tags of '${repository}'`, {
        expect: [200, 404],
        signal,
      });
      const body = await readUpTo(response.body, MAX_MANIFEST_BYTES);
      if (response.status === 404) break;
      const { tags: page } = parseDocument(body, repository);
      if (Array.isArray(page)) tags.push(...page.filter((tag): tag is string => typeof tag === 'string'));
      path = nextPage(response.headers['link'], path);
    }
    return tags;
  }

  /** Follows a tag or digest to the manifest for linux on `architecture`. Undefined when the image does not exist. */
  async resolve(repository: string, reference: string, architecture: string, signal?: AbortSignal): Promise<ResolvedImage | undefined> {
    const root = await this.getManifest(repository, reference, signal);
    if (!root) return undefined;
    const rootDigest = root.descriptor.digest;
    const chosen = chosenFrom(root.bytes, { repository, reference, architecture });
    if ('manifest' in chosen) return { digest: rootDigest, rootDigest, ...chosen, hasOtherArchitectures: false };
    const { digest, hasOtherArchitectures } = chosen;
    const manifest = await this.getManifest(repository, digest, signal);
    if (!manifest) throw new KfError('upload', `The index '${repository}' ${reference} names a manifest that does not exist: ${digest}.`);
    return { digest, rootDigest, manifest: asManifest(parseDocument(manifest.bytes, repository), repository), hasOtherArchitectures };
  }

  /** The config of a manifest: entrypoint, user, ports, labels. */
  async readConfig(repository: string, manifest: Manifest, signal?: AbortSignal): Promise<ConfigFile> {
    const body = await this.getBlob(repository, manifest.config.digest, signal);
    const bytes = await readUpTo(body, MAX_CONFIG_BYTES);
    return parseDocument(bytes, repository) as unknown as ConfigFile;
  }

  #read(
    repository: string,
    path: string,
    doing: string,
    options: { headers?: Record<string, string>; expect?: number[]; signal?: AbortSignal | undefined },
  ): Promise<HttpResponse> {
    return this.#session.request({ method: 'GET', path, scope: { repository, actions: 'pull' }, expect: [200], doing, ...options });
  }
}

function blobPath(repository: string, digest: Digest): string {
  return `/v2/${repository}/blobs/${digest}`;
}

function manifestPath(repository: string, reference: string): string {
  return `/v2/${repository}/manifests/${reference}`;
}

function mediaTypeOf(response: HttpResponse): string {
  return (response.headers['content-type'] ?? MEDIA_TYPES.manifest).split(';', 1)[0] ?? '';
}

async function* verified(body: Readable, digest: Digest): AsyncGenerator<Buffer, void, undefined> {
  const hash = createHash('sha256');
  for await (const chunk of body as AsyncIterable<Buffer>) {
    hash.update(chunk);
    yield chunk;
  }
  if (`sha256:${hash.digest('hex')}` !== digest) throw wrongDigest(digest);
}

function wrongDigest(digest: string): KfError {
  return new KfError('upload', `The registry sent other bytes than those of ${digest}.`);
}

type Document = Record<string, unknown>;

/** A JSON object; its values may be anything. */
function parseDocument(bytes: Buffer, repository: string): Document {
  let value: unknown;
  try {
    value = JSON.parse(bytes.toString());
  } catch (error) {
    throw new KfError('upload', `The registry sent a document of '${repository}' that is not valid JSON.`, { cause: error });
  }
  if (!isObject(value)) throw new KfError('upload', `The registry sent a document of '${repository}' that is not a JSON object.`);
  return value;
}

const isObject = (value: unknown): value is Document => typeof value === 'object' && value !== null && !Array.isArray(value);

/** Entries that are not objects are left out. */
function isIndex(document: Document): document is Document & Index {
  const { manifests } = document;
  if (!Array.isArray(manifests)) return false;
  document['manifests'] = manifests.filter(isObject);
  return true;
}

/**
 * The image manifest, or what the index says about the one for linux on `architecture`. Nothing of a large index is kept while that one is read.
 * @throws KfError for an index without a manifest for the architecture
 */
function chosenFrom(
  bytes: Buffer,
  { repository, reference, architecture }: { repository: string; reference: string; architecture: string },
): { manifest: Manifest } | { digest: Digest; hasOtherArchitectures: boolean } {
  const document = parseDocument(bytes, repository);
  if (!isIndex(document)) return { manifest: asManifest(document, repository) };
  const entry = document.manifests.find(({ platform }) => platform?.os === 'linux' && platform.architecture === architecture);
  if (!entry) throw noPlatform(repository, reference, architecture, document);
  const { digest } = entry;
  if (!isDigest(String(digest))) throw new KfError('upload', `The index '${repository}' ${reference} names a manifest without a digest.`);
  const hasOtherArchitectures = document.manifests.some((other) => mayRunOnLinux(other) && other.platform?.architecture !== architecture);
  return { digest, hasOtherArchitectures };
}

function asManifest(document: Document, repository: string): Manifest {
  const { config } = document;
  if (!isObject(config) || !isDigest(String(config['digest'])))
    throw new KfError('upload', `The registry sent a manifest of '${repository}' that names no config.`);
  return document as unknown as Manifest;
}

/** `Link: </v2/…?last=b&n=2>; rel="next"` (distribution-spec, "Listing Tags"). */
function nextPage(link: string | undefined, current: string): string | undefined {
  const target = /^\s*<([^>]+)>\s*;\s*rel="?next"?/.exec(link ?? '')?.[1];
  if (target === undefined) return undefined;
  const url = new URL(target, new URL(current, 'http://registry.invalid'));
  return url.pathname.slice(Math.max(0, url.pathname.indexOf('/v2/'))) + url.search;
}

/** False for images of other systems, and for attestations, whose platform is `unknown/unknown`. An entry need not name a platform. */
const mayRunOnLinux = ({ platform }: Descriptor): boolean => (platform?.os ?? 'linux') === 'linux';

function noPlatform(repository: string, reference: string, architecture: string, index: Index): KfError {
  const known = index.manifests.flatMap(({ platform }) =>
    platform && platform.os !== 'unknown' ? [`${platform.os}/${platform.architecture}`.slice(0, 40)] : [],
  );
  const offered = [...new Set(known)].slice(0, MAX_NAMED_PLATFORMS);
  return new KfError(
    'upload',
    `The image '${repository}' ${reference} does not exist for linux/${architecture}; it exists for ${offered.join(', ') || 'nothing'}.`,
  );
}

// Image references as users type them: `node`, `ghcr.io/a/b:1`, `localhost:5000/x@sha256:…`.

import { KfError } from '../errors.ts';
import { type Digest, isDigest } from './descriptor.ts';

export interface Reference {
  /** Host and port for requests to the registry, e.g. `registry-1.docker.io`, `localhost:5000`. */
  registry: string;
  /** Path below the registry, e.g. `library/node`. */
  repository: string;
  tag?: string;
  digest?: Digest;
}

/** Docker Hub has several names; its API has this one. */
export const DOCKER_HUB = 'registry-1.docker.io';
const DOCKER_HUB_NAMES = new Set(['docker.io', 'index.docker.io', DOCKER_HUB, 'registry.hub.docker.com']);

// https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#pulling-manifests
const REPOSITORY = /^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:\/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*$/;
const TAG = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$/;
const HOST = /^(?:\[[0-9a-fA-F:]+\]|[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?)(?::\d{1,5})?$/;

/** The name for requests to a registry and for finding its credentials: all aliases of Docker Hub become one name. */
export function canonicalRegistry(host: string): string {
  const lower = host.toLowerCase();
  return DOCKER_HUB_NAMES.has(lower) ? DOCKER_HUB : lower;
}

/** Throws KfError `usage` naming the wrong part. Without tag and digest the tag is `latest`. */
export function parseReference(text: string): Reference {
  const [beforeDigest = '', digest, ...more] = text.split('@');
  if (more.length > 0 || (digest !== undefined && !isDigest(digest)))
    throw invalid(text, `'${text.slice(beforeDigest.length + 1)}' is not a sha256 digest`);
  const colon = beforeDigest.lastIndexOf(':');
  const hasTag = colon > beforeDigest.lastIndexOf('/');
  const tag = hasTag ? beforeDigest.slice(colon + 1) : undefined;
  if (tag !== undefined && !TAG.test(tag)) throw invalid(text, `'${tag}' is not a tag`);
  const { registry, repository } = splitName(hasTag ? beforeDigest.slice(0, colon) : beforeDigest);
  if (!HOST.test(registry)) throw invalid(text, `'${registry}' is not a registry host`);
  if (!REPOSITORY.test(repository))
    throw invalid(text, `'${repository}' is not a repository name (lower case letters, digits, '.', '_', '-', '/')`);
  const reference: Reference = { registry, repository: fullRepository(registry, repository) };
  if (tag !== undefined) reference.tag = tag;
  else if (digest === undefined) reference.tag = 'latest';
  if (digest !== undefined) reference.digest = digest;
  return reference;
}

/** Docker Hub's own images are in a folder that users leave out. */
function fullRepository(registry: string, repository: string): string {
  return registry === DOCKER_HUB && !repository.includes('/') ? `library/${repository}` : repository;
}

/** As in docker, the first part is a host when it has a dot or a port or is `localhost`. */
function splitName(name: string): { registry: string; repository: string } {
  const slash = name.indexOf('/');
  const first = slash < 0 ? '' : name.slice(0, slash);
  const isHost = first === 'localhost' || /[.:[]/.test(first) || first !== first.toLowerCase();
  const registry = canonicalRegistry(isHost ? first : DOCKER_HUB);
  return { registry, repository: isHost ? name.slice(slash + 1) : name };
}

/** The full text: registry, repository, and tag and digest if present. */
export function formatReference(reference: Reference): string {
  const host = reference.registry === DOCKER_HUB ? 'docker.io' : reference.registry;
  return `${host}/${reference.repository}${reference.tag === undefined ? '' : `:${reference.tag}`}${reference.digest === undefined ? '' : `@${reference.digest}`}`;
}

function invalid(text: string, why: string): KfError {
  return new KfError('usage', `The image reference '${text}' is not valid: ${why}.`);
}

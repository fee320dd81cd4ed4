// Parses the requests of the registry API version 2 that the gate supports. All others are refused before they reach the registry.
// Source: https://github.com/opencontainers/distribution-spec/blob/v1.1.0/spec.md#endpoints

import { defined } from '../../lib/defined.ts';

export type Endpoint = 'version' | 'blob' | 'upload-start' | 'upload' | 'manifest' | 'tags';

export interface RegistryPath {
  endpoint: Endpoint;
  /** `<space>/<name>`; left out for `version`. */
  repository?: string;
  /** Path and cleaned query for the registry. */
  target: string;
}

const component = '[a-z0-9]+(?:(?:\\.|_|__|-+)[a-z0-9]+)*';
/** Names that the API's own paths use: as part of a repository they could be read in two ways. */
const reserved = new Set(['blobs', 'manifests', 'tags', 'referrers', 'uploads']);
const digest = '[a-z0-9]+(?:[.+_-][a-z0-9]+)*:[a-zA-Z0-9=_-]{1,256}';
/** The digests that a request may store or mount; the gate keeps them in memory. */
const storedDigest = /^sha256:[0-9a-f]{64}$/;
const tag = '[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}';

// Repositories have exactly two parts, so a path cannot mean one repository to the registry and another one here.
const patterns: [Endpoint, RegExp, string[]][] = [
  ['upload-start', new RegExp(`^/v2/(${component}/${component})/blobs/uploads/$`), ['POST']],
  ['upload', new RegExp(`^/v2/(${component}/${component})/blobs/uploads/[a-zA-Z0-9_=-]{1,512}$`), ['GET', 'PATCH', 'PUT']],
  ['blob', new RegExp(`^/v2/(${component}/${component})/blobs/${digest}$`), ['GET', 'HEAD']],
  ['manifest', new RegExp(`^/v2/(${component}/${component})/manifests/(?:${digest}|${tag})$`), ['GET', 'HEAD', 'PUT']],
  ['tags', new RegExp(`^/v2/(${component}/${component})/tags/list$`), ['GET']],
];

const queryKeys: Record<Endpoint, string[]> = {
  version: [],
  blob: [],
  'upload-start': ['digest', 'mount', 'from'],
  upload: ['digest', '_state'],
  manifest: [],
  tags: ['n', 'last'],
};

function match(path: string): { endpoint: Endpoint; repository?: string; methods: string[] } | undefined {
  if (path === '/v2/' || path === '/v2') return { endpoint: 'version', methods: ['GET', 'HEAD'] };
  if (path.length > 1024) return undefined;
  for (const [endpoint, pattern, methods] of patterns) {
    const repository = pattern.exec(path)?.[1];
    if (repository === undefined) continue;
    return repository.split('/').some((part) => reserved.has(part)) ? undefined : { endpoint, repository, methods };
  }
  return undefined;
}

// Only known keys are forwarded, each once: the registry and the gate must read the same value.
function cleanQuery(
  endpoint: Endpoint,
  raw: string,
  ownsSource: (repository: string) => boolean,
): { query: string } | 'bad-query' | 'bad-digest' {
  const given = new URLSearchParams(raw);
  const kept = new URLSearchParams();
  for (const key of queryKeys[endpoint]) {
    const values = given.getAll(key);
    if (values.length > 1) return 'bad-query';
    if ((key === 'digest' || key === 'mount') && values[0] !== undefined && !storedDigest.test(values[0])) return 'bad-digest';
    if (values[0] !== undefined) kept.set(key, values[0]);
  }
  const from = kept.get('from');
  // Without `from`, a registry may look for the blob in every repository. So both are removed, and the client uploads as usual.
  if (kept.has('mount') && (from === null || !ownsSource(from))) kept.delete('mount');
  if (!kept.has('mount')) kept.delete('from');
  return { query: kept.size === 0 ? '' : `?${kept.toString()}` };
}

/**
 * Parses a request target exactly as it was sent: nothing is decoded or normalised, so a path with `%`, `..`, `//` or a host is simply unknown.
 *
 * @param ownsSource whether a mount may take from that repository
 */
export function parseTarget(
  method: string,
  url: string,
  ownsSource: (repository: string) => boolean,
): RegistryPath | 'not-found' | 'not-allowed' | 'bad-query' | 'bad-digest' {
  const question = url.indexOf('?');
  const path = question < 0 ? url : url.slice(0, question);
  const found = match(path);
  if (found === undefined) return 'not-found';
  if (!found.methods.includes(method)) return 'not-allowed';
  const cleaned = cleanQuery(found.endpoint, question < 0 ? '' : url.slice(question + 1), ownsSource);
  if (typeof cleaned === 'string') return cleaned;
  const target = (found.endpoint === 'version' ? '/v2/' : path) + cleaned.query;
  return { endpoint: found.endpoint, target, ...defined({ repository: found.repository }) };
}

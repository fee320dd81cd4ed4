import { expect, test } from 'vitest';
import { formatReference, parseReference } from '../../../src/lib/oci/reference.ts';

const digest = `sha256:${'a'.repeat(64)}`;
const hub = 'registry-1.docker.io';

test.each([
  ['node', { registry: hub, repository: 'library/node', tag: 'latest' }, 'docker.io/library/node:latest'],
  ['node:24', { registry: hub, repository: 'library/node', tag: '24' }, 'docker.io/library/node:24'],
  ['bitnami/nginx', { registry: hub, repository: 'bitnami/nginx', tag: 'latest' }, 'docker.io/bitnami/nginx:latest'],
  ['docker.io/node', { registry: hub, repository: 'library/node', tag: 'latest' }, 'docker.io/library/node:latest'],
  ['index.docker.io/a/b', { registry: hub, repository: 'a/b', tag: 'latest' }, 'docker.io/a/b:latest'],
  ['ghcr.io/a/b/c:v1', { registry: 'ghcr.io', repository: 'a/b/c', tag: 'v1' }, 'ghcr.io/a/b/c:v1'],
  ['localhost/x', { registry: 'localhost', repository: 'x', tag: 'latest' }, 'localhost/x:latest'],
  ['localhost:5000/x', { registry: 'localhost:5000', repository: 'x', tag: 'latest' }, 'localhost:5000/x:latest'],
  ['[::1]:5000/x:1', { registry: '[::1]:5000', repository: 'x', tag: '1' }, '[::1]:5000/x:1'],
  [`r.io/x@${digest}`, { registry: 'r.io', repository: 'x', digest }, `r.io/x@${digest}`],
  [`r.io/x:1@${digest}`, { registry: 'r.io', repository: 'x', tag: '1', digest }, `r.io/x:1@${digest}`],
])('%s is parsed as docker does', (text, reference, formatted) => {
  expect(parseReference(text)).toEqual(reference);
  expect(formatReference(parseReference(text))).toBe(formatted);
});

test.each([
  ['', "'' is not a repository name"],
  ['Node', "'Node' is not a repository name"],
  ['ghcr.io/A/b', "'A/b' is not a repository name"],
  ['node:', "'' is not a tag"],
  ['node:a b', "'a b' is not a tag"],
  ['node@sha256:12', "'sha256:12' is not a sha256 digest"],
  ['-bad-.io/x', "'-bad-.io' is not a registry host"],
  ['r.io/a//b', "'a//b' is not a repository name"],
  ['r.io/a/../b', "'a/../b' is not a repository name"],
])('%j is refused and the wrong part is named', (text, why) => {
  expect(() => parseReference(text)).toThrow(why);
});

// Who may do what at the registry's gate: credentials that need no store, and the table of rights behind them.

import { createHash, timingSafeEqual } from 'node:crypto';
import { buildUser, pullUser, pushUser, registryPassword } from '../../lib/api/registry-credentials.ts';

/** `push`: CLI and builds, through the service. `pull`: the kubelet, read-only. */
export type Door = 'push' | 'pull';

export type Scope =
  { kind: 'pull'; space: string } | { kind: 'push'; space: string } | { kind: 'build'; space: string; app: string; until: number };

/** What one request touches; `repository` is left out for the version check `/v2/`. */
export interface AccessRequest {
  door: Door;
  method: string;
  repository?: string;
}

const label = '[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?';
const spacePattern = new RegExp(`^(pull|push)\\.(${label})$`);
const buildPattern = new RegExp(`^build\\.(${label})\\.(${label}(?:\\.${label})*)\\.([1-9][0-9]{0,11})$`);
/** The repositories of an app; nothing else belongs to a build. */
const appRepositories = ['packages', 'droplets', 'cache'];
const readMethods = new Set(['GET', 'HEAD']);
const pushMethods = new Set(['GET', 'HEAD', 'POST', 'PATCH', 'PUT']);

/** The user name of a scope, as `parseScope` reads it. */
export function scopeUser(scope: Scope): string {
  if (scope.kind === 'build') return buildUser(scope.space, scope.app, scope.until);
  return scope.kind === 'pull' ? pullUser(scope.space) : pushUser(scope.space);
}

/** A scope from its user name, or undefined when the name is none. */
export function parseScope(user: string): Scope | undefined {
  const plain = spacePattern.exec(user);
  if (plain?.[1] !== undefined && plain[2] !== undefined) return { kind: plain[1] === 'pull' ? 'pull' : 'push', space: plain[2] };
  const build = buildPattern.exec(user);
  if (build?.[1] === undefined || build[2] === undefined || build[3] === undefined) return undefined;
  return { kind: 'build', space: build[1], app: build[2], until: Number(build[3]) };
}

// Comparing hashes makes both sides equally long, so that the time tells nothing about length or content.
function equalInConstantTime(a: string, b: string): boolean {
  const hash = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(hash(a), hash(b));
}

/** The scope of an HTTP Basic header, or undefined when it is missing, malformed, wrong or expired. */
export function authenticate(key: Buffer, header: string | undefined, nowSeconds: number): Scope | undefined {
  const encoded = /^Basic ([A-Za-z0-9+/]{1,1024}={0,2})$/i.exec(header ?? '')?.[1];
  if (encoded === undefined) return undefined;
  const decoded = Buffer.from(encoded, 'base64').toString('utf8');
  const colon = decoded.indexOf(':');
  if (colon < 0) return undefined;
  const user = decoded.slice(0, colon);
  const scope = parseScope(user);
  const right = equalInConstantTime(decoded.slice(colon + 1), registryPassword(key, user));
  if (scope === undefined || !right) return undefined;
  return scope.kind === 'build' && nowSeconds > scope.until ? undefined : scope;
}

/** True when the repository lies in the scope, whatever is done with it. */
export function ownsRepository(scope: Scope, repository: string): boolean {
  if (!repository.startsWith(`${scope.space}/`)) return false;
  if (scope.kind !== 'build') return true;
  return appRepositories.some((suffix) => repository === `${scope.space}/${scope.app}-${suffix}`);
}

/** True when the scope may make the request. */
export function mayAccess(scope: Scope, request: AccessRequest): boolean {
  const door: Door = scope.kind === 'pull' ? 'pull' : 'push';
  if (request.door !== door) return false;
  if (!(door === 'pull' ? readMethods : pushMethods).has(request.method)) return false;
  return request.repository === undefined ? readMethods.has(request.method) : ownsRepository(scope, request.repository);
}

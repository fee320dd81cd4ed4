// Credentials of the registry's gate, which need no store, and their rights.

import { createHash, timingSafeEqual } from 'node:crypto';
import { appOfRepository } from '../../lib/api/repositories.ts';
import { buildUser, keeperUser, pullUser, pushUser, registryPassword } from '../../lib/api/registry-credentials.ts';

/** `push`: CLI and builds, through the service. `pull`: the kubelet, read-only. */
export type GatePort = 'push' | 'pull';

/** Every credential expires, at `until` (Unix seconds). */
export type Scope = { until: number } & (
  { kind: 'pull' | 'push'; space: string } | { kind: 'build'; space: string; app: string } | { kind: 'keeper' }
);

/** The target of one request; `repository` is left out for the version check `/v2/`. */
export interface AccessRequest {
  port: GatePort;
  method: string;
  repository?: string;
}

const label = '[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?';
const seconds = '[1-9][0-9]{0,11}';
const spacePattern = new RegExp(`^(pull|push)\\.(${label})\\.(${seconds})$`);
const buildPattern = new RegExp(`^build\\.(${label})\\.(${label}(?:\\.${label})*)\\.(${seconds})$`);
const keeperPattern = new RegExp(`^keeper\\.(${seconds})$`);
/** The controller, which sets the expiry of a credential, may have a different clock than the gate. */
const slackSeconds = 60;
/** The repositories of an app. A build has access to no others, and no others are written. */
const appRepositories = ['packages', 'droplets', 'cache'];
const readMethods = new Set(['GET', 'HEAD']);
const pushMethods = new Set(['GET', 'HEAD', 'POST', 'PATCH', 'PUT']);

/** The user name of a scope, as `parseScope` reads it. */
export function scopeUser(scope: Scope): string {
  if (scope.kind === 'keeper') return keeperUser(scope.until);
  if (scope.kind === 'build') return buildUser(scope.space, scope.app, scope.until);
  return scope.kind === 'pull' ? pullUser(scope.space, scope.until) : pushUser(scope.space, scope.until);
}

/** A scope from its user name, or undefined when the name is not valid. */
export function parseScope(user: string): Scope | undefined {
  const [, kind, ofSpace, spaceUntil] = spacePattern.exec(user) ?? [];
  if (ofSpace !== undefined) return { kind: kind === 'pull' ? 'pull' : 'push', space: ofSpace, until: Number(spaceUntil) };
  const [, space, app, buildUntil] = buildPattern.exec(user) ?? [];
  if (space !== undefined && app !== undefined) return { kind: 'build', space, app, until: Number(buildUntil) };
  const until = keeperPattern.exec(user)?.[1];
  return until === undefined ? undefined : { kind: 'keeper', until: Number(until) };
}

// Compares hashes: both have the same length, so the time reveals nothing about length or content.
function equalInConstantTime(a: string, b: string): boolean {
  const hash = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(hash(a), hash(b));
}

/** The scope of an HTTP Basic header, or undefined when it is missing, malformed, signed by none of the keys, or expired. */
export function authenticate(keys: readonly Buffer[], header: string | undefined, nowSeconds: number): Scope | undefined {
  const encoded = /^Basic ([A-Za-z0-9+/]{1,1024}={0,2})$/i.exec(header ?? '')?.[1];
  if (encoded === undefined) return undefined;
  const decoded = Buffer.from(encoded, 'base64').toString('utf8');
  const colon = decoded.indexOf(':');
  if (colon < 0) return undefined;
  const user = decoded.slice(0, colon);
  const scope = parseScope(user);
  // Tries all keys even after a match, so that the time reveals nothing about them.
  const right = keys.map((key) => equalInConstantTime(decoded.slice(colon + 1), registryPassword(key, user))).includes(true);
  if (scope === undefined || !right) return undefined;
  return nowSeconds > scope.until + slackSeconds ? undefined : scope;
}

/** True when the repository lies in the scope, whatever the operation. */
export function ownsRepository(scope: Scope, repository: string): boolean {
  if (scope.kind === 'keeper' || !repository.startsWith(`${scope.space}/`)) return false;
  if (scope.kind !== 'build') return true;
  return appRepositories.some((suffix) => repository === `${scope.space}/${scope.app}-${suffix}`);
}

/** True when the scope may make the request. */
export function mayAccess(scope: Scope, request: AccessRequest): boolean {
  if (scope.kind === 'keeper') return false;
  const port: GatePort = scope.kind === 'pull' ? 'pull' : 'push';
  if (request.port !== port) return false;
  if (!(port === 'pull' ? readMethods : pushMethods).has(request.method)) return false;
  if (request.repository === undefined) return readMethods.has(request.method);
  return (
    ownsRepository(scope, request.repository) && (readMethods.has(request.method) || appOfRepository(request.repository) !== undefined)
  );
}

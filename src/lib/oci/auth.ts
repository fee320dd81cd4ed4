// Authentication to a registry: one header, and the answers to its challenges (Basic; Bearer with a token server).

import { defined } from '../defined.ts';
import { KfError } from '../errors.ts';
import { describeCredential, type RegistryCredential, type RegistryCredentialSource } from './credentials.ts';
import { registryError, type CredentialUse } from './errors.ts';
import { type HttpSendUrl, isLoopback, readUpTo } from './http.ts';

/** The rights that a request needs, in the notation of token servers: `repository:a/b:pull,push`. */
export interface Scope {
  repository: string;
  actions: 'pull' | 'pull,push';
}

/** How the request travels; see {@link credentialHeader}. */
export type Via = 'direct' | 'proxy';

export interface Authenticator {
  /** The known headers for a request of this scope. */
  headers(scope: Scope): Record<string, string>;
  /** After a 401 with this `WWW-Authenticate`: true when the request may be repeated with new headers. */
  answer(challenge: string | undefined, scope: Scope, signal?: AbortSignal): Promise<boolean>;
  /** Which credential it has sent, for messages about a refusal. */
  use(): CredentialUse;
}

/**
 * The only place that names the credential header. The Kubernetes API server uses `Authorization` itself and removes it from proxied requests, so
 * kf's gate reads another header on that way.
 */
export function credentialHeader(value: string, via: Via): Record<string, string> {
  return via === 'proxy' ? { 'X-Kf-Authorization': value } : { Authorization: value };
}

const noneSent: CredentialUse = { none: 'No credential was sent.' };
/** Before the first challenge. A firewall, or a registry that knows only some clients, refuses without one. */
const notAsked: CredentialUse = { none: 'No credential was sent: the registry refused before it asked for one.', isUnasked: true };

export const anonymous: Authenticator = { headers: () => ({}), answer: async () => false, use: () => noneSent };

interface PasswordCredential {
  username: string;
  password: string;
}

/**
 * Sends the same user and password with every request, without a challenge: for kf's own gate.
 *
 * @param renew called after a refusal; another credential that it returns is used from then on
 */
export function basicAuthenticator(credential: PasswordCredential, via: Via, renew?: () => Promise<PasswordCredential>): Authenticator {
  let sent = credential;
  let header = credentialHeader(basicValue(credential), via);
  return {
    headers: () => header,
    answer: async () => {
      if (renew === undefined) return false;
      sent = await renew();
      const renewed = credentialHeader(basicValue(sent), via);
      const isNew = JSON.stringify(renewed) !== JSON.stringify(header);
      header = renewed;
      return isNew;
    },
    use: () => ({ sent: describeCredential(sent) }),
  };
}

export interface ChallengeOptions {
  /** `host` or `host:port` */
  registry: string;
  credentials: RegistryCredentialSource;
  /** Sends requests to token servers. */
  sendUrl: HttpSendUrl;
}

/** Answers the challenges of any registry (https://distribution.github.io/distribution/spec/auth/token/). Tokens are kept per scope. */
export function challengeAuthenticator(options: ChallengeOptions): Authenticator {
  const byScope = new Map<string, Record<string, string>>();
  let basic: Record<string, string> | undefined;
  let use = notAsked;
  return {
    headers: (scope) => byScope.get(scopeText(scope)) ?? basic ?? {},
    answer: async (text, scope, signal) => {
      const challenge = parseChallenge(text ?? '');
      const credential = await options.credentials(options.registry);
      use = useOf(credential, challenge, options.registry);
      if (challenge?.scheme === 'basic') {
        if (basic !== undefined || credential === undefined || !('username' in credential)) return false;
        basic = credentialHeader(basicValue(credential), 'direct');
        return true;
      }
      if (challenge?.scheme !== 'bearer') return false;
      const token = await fetchToken(options, { challenge, credential, scope, ...defined({ signal }) });
      byScope.set(scopeText(scope), credentialHeader(`Bearer ${token}`, 'direct'));
      if ('sent' in use) use = { ...use, hasToken: true };
      return true;
    },
    use: () => use,
  };
}

/** What is done with the credential, if there is one, after a challenge. */
function useOf(credential: RegistryCredential | undefined, challenge: Challenge | undefined, registry: string): CredentialUse {
  if (credential === undefined) return { none: `No credential is configured for '${registry}'.` };
  const sent = describeCredential(credential);
  if (challenge?.scheme === 'bearer' || (challenge?.scheme === 'basic' && 'username' in credential)) return { sent };
  const none = `The registry '${registry}' does not ask for what is configured for it: ${sent}.`;
  // After a challenge to Basic, an identity token is as good as no credential.
  return challenge?.scheme === 'basic' ? { none } : { none, isUnasked: true };
}

export interface Challenge {
  scheme: string;
  parameters: Record<string, string>;
}

/** The first challenge of a `WWW-Authenticate` header (RFC 9110, 11.6.1); names in lower case. */
export function parseChallenge(text: string): Challenge | undefined {
  const scheme = /^\s*([\w-]+)(?:\s+|$)/.exec(text);
  if (!scheme?.[1]) return undefined;
  const parameters: Record<string, string> = {};
  for (const match of text.slice(scheme[0].length).matchAll(/(?<![\w-])([\w-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,]+))/g)) {
    parameters[String(match[1]).toLowerCase()] ??= (match[2] ?? match[3] ?? '').replace(/\\(.)/g, '$1');
  }
  return { scheme: scheme[1].toLowerCase(), parameters };
}

/**
 * Checks to which token server a registry may refer us with our password: always to its own host; elsewhere only over TLS, and never to an address
 * that is private to this machine or network. A hostile registry could otherwise refer to a service that only we can reach.
 */
export function checkedRealm(realm: string, registry: string): URL {
  const refuse = (why: string): KfError =>
    new KfError('upload', `The registry '${registry}' names a token server that kf does not ask: ${why}.`);
  if (!URL.canParse(realm)) throw refuse(`'${realm}' is not a URL`);
  const url = new URL(realm);
  const own = new URL(`http://${registry}`);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') throw refuse(`'${url.protocol}' is not a protocol for it`);
  if (url.hostname === own.hostname && (url.protocol === 'https:' || isLoopback(own.hostname) || own.host === url.host)) return url;
  if (url.protocol !== 'https:') throw refuse(`'${url.origin}' would get the password in plain text`);
  if (isPrivate(url.hostname)) throw refuse(`'${url.hostname}' is a private address`);
  return url;
}

function isPrivate(hostname: string): boolean {
  if (isLoopback(hostname) || hostname.endsWith('.localhost')) return true;
  if (hostname.startsWith('[')) return /^\[(::|fe[89ab]|f[cd])/i.test(hostname);
  const parts = /^(\d+)\.(\d+)\.\d+\.\d+$/.exec(hostname);
  if (!parts) return false;
  const [a, b] = [Number(parts[1]), Number(parts[2])];
  return a === 10 || a === 127 || a === 0 || (a === 172 && b >= 16 && b <= 31) || (a === 192 && b === 168) || (a === 169 && b === 254);
}

const MAX_TOKEN_BODY_BYTES = 64 * 1024;

interface TokenQuestion {
  challenge: Challenge;
  credential: RegistryCredential | undefined;
  scope: Scope;
  signal?: AbortSignal;
}

async function fetchToken(options: ChallengeOptions, question: TokenQuestion): Promise<string> {
  const { challenge, credential, scope } = question;
  const url = checkedRealm(challenge.parameters['realm'] ?? '', options.registry);
  // Requests our own scope and not the challenge's: the challenge for a HEAD is only for pull, and the upload after it would need a second token.
  const fields = { service: challenge.parameters['service'] ?? options.registry, scope: scopeText(scope) };
  const signal = defined({ signal: question.signal });
  const request =
    credential && 'identityToken' in credential
      ? refreshRequest(fields, credential.identityToken)
      : { method: 'GET', headers: defined({ Authorization: credential && basicValue(credential) }) };
  if (request.method === 'GET') for (const [name, value] of Object.entries(fields)) url.searchParams.set(name, value);
  const response = await options.sendUrl(url, { ...request, ...signal });
  if (response.status !== 200)
    throw await registryError(response, `asking '${url.host}' for a token`, { credential: useOf(credential, challenge, options.registry) });
  const token = tokenIn((await readUpTo(response.body, MAX_TOKEN_BODY_BYTES)).toString());
  if (token === undefined) throw new KfError('upload', `The token server '${url.host}' answered without a token.`);
  return token;
}

function tokenIn(body: string): string | undefined {
  try {
    const answer = JSON.parse(body) as { token?: unknown; access_token?: unknown };
    const token = answer.token ?? answer.access_token;
    return typeof token === 'string' && token !== '' ? token : undefined;
  } catch {
    return undefined;
  }
}

/** OAuth2 refresh, https://distribution.github.io/distribution/spec/auth/oauth/. */
function refreshRequest(
  fields: Record<string, string>,
  refreshToken: string,
): { method: string; headers: Record<string, string>; body: string } {
  const form = new URLSearchParams({ ...fields, grant_type: 'refresh_token', client_id: 'kf', refresh_token: refreshToken });
  return { method: 'POST', headers: { 'Content-Type': 'application/x-www-form-urlencoded' }, body: form.toString() };
}

function scopeText(scope: Scope): string {
  return `repository:${scope.repository}:${scope.actions}`;
}

function basicValue(credential: RegistryCredential): string {
  if (!('username' in credential))
    throw new KfError('upload', 'The registry asks for user and password, but only an identity token is known.');
  return `Basic ${Buffer.from(`${credential.username}:${credential.password}`).toString('base64')}`;
}

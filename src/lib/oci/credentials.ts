// Registry credentials in docker's format: config.json with auths, credential stores and helpers per registry.

import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { KfError, messageOf } from '../errors.ts';
import { canonicalRegistry, DOCKER_HUB } from './reference.ts';
import { homeFolder } from '../home.ts';

/** User and password, or a refresh token of an OAuth2 token server; and for messages where it is from, such as `Secret 'x'`. */
export type RegistryCredential = ({ username: string; password: string } | { identityToken: string }) & { from?: string };

const longestName = 100;

/** What takes the place of a password for registries that have the token as the user's name. */
const emptyPasswords = new Set(['x', 'x-oauth-basic', '_', '-', 'unused', 'nologin', 'none', 'dummy', 'token']);
/** The name that Azure's registries give every user with a token. */
const nobody = '00000000-0000-0000-0000-000000000000';
/** The beginnings of tokens of GitHub, GitLab, Docker Hub and DigitalOcean, and of JSON Web Tokens. */
const tokenStart = /^(gh[pousr]_|github_pat_|gl(pat|dt|cbt|ptt|rt)-|dckr_[op]at_|do[opr]_v1_|eyJ)/i;
/** 30 or more characters of hex or base64. */
const tokenShape = /^[\w+/=-]{30,}$/;

/** Some registries take a token as the user's name. */
function mayBeSecret({ username, password }: { username: string; password: string }): boolean {
  const name = username.trim();
  if (username.includes(password) || emptyPasswords.has(password.trim().toLowerCase())) return true;
  return tokenStart.test(name) || (tokenShape.test(name) && name !== nobody);
}

/** The credential in a message, without what is secret: where it is from, otherwise its user. */
export function describeCredential(credential: RegistryCredential): string {
  const { from } = credential;
  if (!('username' in credential)) return from === undefined ? 'an identity token' : `an identity token of ${from}`;
  if (from !== undefined) return `user and password of ${from}`;
  if (mayBeSecret(credential)) return 'user and password';
  // Quotes and line breaks of a name that others chose are no part of the message.
  return `user '${credential.username.replaceAll(/['\p{C}]/gu, '?').slice(0, longestName)}'`;
}

/** The credential for exactly this registry (`host` or `host:port`), or undefined for none. */
export type RegistryCredentialSource = (registry: string) => Promise<RegistryCredential | undefined>;

/** The format of docker's config.json and of a `kubernetes.io/dockerconfigjson` Secret. */
interface DockerConfig {
  auths?: Record<string, { auth?: string; username?: string; password?: string; identitytoken?: string }>;
  credsStore?: string;
  credHelpers?: Record<string, string>;
}

export interface HelperOptions {
  /** Run the helper programs that the text names; only for a file of the user who runs kf. Text of others could name any program. */
  runHelpers?: boolean;
  /** A helper may open a browser or wait for a locked keychain; default 10 s. */
  helperTimeoutMs?: number;
}

const DEFAULT_HELPER_TIMEOUT_MS = 10_000;
/** The name of Docker Hub in config.json and for helpers, from its first API. */
const DOCKER_HUB_KEY = 'https://index.docker.io/v1/';

/** From `$DOCKER_CONFIG/config.json` or `~/.docker/config.json`; a missing file means no credentials. */
export function dockerCredentials(env: NodeJS.ProcessEnv = process.env, options: HelperOptions = {}): RegistryCredentialSource {
  const path = join(env['DOCKER_CONFIG'] ?? join(homeFolder(env), '.docker'), 'config.json');
  let source: Promise<RegistryCredentialSource> | undefined;
  return async (registry) => {
    source ??= readConfig(path).then((text) => credentialsFromConfig(text, path, { ...options, runHelpers: true }));
    return (await source)(registry);
  };
}

/** From the text of a config.json; `name` is its name in messages. Throws KfError `usage` when it is not JSON. */
export function credentialsFromConfig(text: string, name: string, options: HelperOptions = {}): RegistryCredentialSource {
  const config = parseConfig(text, name);
  return async (registry) => {
    const wanted = canonicalRegistry(registry);
    const helper = options.runHelpers === true ? (entryFor(config.credHelpers, wanted) ?? config.credsStore) : undefined;
    if (helper !== undefined && helper !== '') {
      const found = await askHelper(helper, wanted, options.helperTimeoutMs ?? DEFAULT_HELPER_TIMEOUT_MS);
      if (found) return found;
    }
    const auth = entryFor(config.auths, wanted);
    return auth && credentialFromAuth(auth);
  };
}

async function readConfig(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    // ENOTDIR: the home is not a folder.
    if (['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return '{}';
    throw new KfError('usage', `The docker configuration '${path}' cannot be read: ${messageOf(error)}.`, { cause: error });
  }
}

function parseConfig(text: string, name: string): DockerConfig {
  try {
    const config: unknown = JSON.parse(text);
    if (typeof config === 'object' && config !== null) return config;
    throw new Error('it is not an object');
  } catch (error) {
    throw new KfError('usage', `The docker configuration '${name}' is not valid JSON: ${messageOf(error)}.`, { cause: error });
  }
}

/** Hosts must be equal: a partial match would give a password to `registry.example.com.evil.net`. */
function entryFor<T>(entries: Record<string, T> | undefined, registry: string): T | undefined {
  for (const [key, value] of Object.entries(entries ?? {})) {
    if (hostOfKey(key) === registry) return value;
  }
  return undefined;
}

/** The key of a registry in docker's configuration. @param registry as in {@link canonicalRegistry} */
export const configKeyOf = (registry: string): string => (registry === DOCKER_HUB ? DOCKER_HUB_KEY : registry);

/** Keys are hosts or URLs (`https://index.docker.io/v1/`). */
function hostOfKey(key: string): string {
  const host = key.replace(/^https?:\/\//, '').split('/', 1)[0];
  return canonicalRegistry(host ?? '');
}

/** Old docker clients padded the text with NUL characters. */
function withoutPadding(text: string): string {
  let end = text.length;
  while (text[end - 1] === '\0') end -= 1;
  return text.slice(0, end);
}

function credentialFromAuth(auth: {
  auth?: string;
  username?: string;
  password?: string;
  identitytoken?: string;
}): RegistryCredential | undefined {
  if (auth.identitytoken !== undefined && auth.identitytoken !== '') return { identityToken: auth.identitytoken };
  if (auth.username !== undefined && auth.password !== undefined) return { username: auth.username, password: auth.password };
  const decoded = Buffer.from(auth.auth ?? '', 'base64').toString();
  const colon = decoded.indexOf(':');
  return colon < 0 ? undefined : { username: decoded.slice(0, colon), password: withoutPadding(decoded.slice(colon + 1)) };
}

/** https://github.com/docker/docker-credential-helpers#development: `get` reads the server's name from stdin and answers in JSON. */
function askHelper(name: string, registry: string, timeoutMs: number): Promise<RegistryCredential | undefined> {
  const program = `docker-credential-${name}`;
  if (!/^[\w.-]+$/.test(name))
    throw new KfError('usage', `The docker configuration names a credential helper '${name}' that is not a program name.`);
  const server = configKeyOf(registry);
  return new Promise((resolve, reject) => {
    const child = execFile(program, ['get'], { timeout: timeoutMs, killSignal: 'SIGKILL', encoding: 'utf8' }, (error, stdout, stderr) => {
      if (!error) return settle(() => credentialFromHelper(program, stdout), resolve, reject);
      if (/credentials not found/i.test(stdout + stderr)) return resolve(undefined);
      const why = error.killed ? `it did not answer within ${timeoutMs / 1000} s` : stderr.trim() || stdout.trim() || error.message;
      reject(new KfError('upload', `The credential helper '${program}' failed for '${registry}': ${why.replace(/\.$/, '')}.`));
    });
    child.stdin?.on('error', () => child.kill());
    child.stdin?.end(server);
  });
}

function settle<T>(make: () => T, resolve: (value: T) => void, reject: (error: unknown) => void): void {
  try {
    resolve(make());
  } catch (error) {
    reject(error);
  }
}

function credentialFromHelper(program: string, stdout: string): RegistryCredential | undefined {
  let answer: { Username?: string; Secret?: string };
  try {
    answer = JSON.parse(stdout) as typeof answer;
  } catch (error) {
    throw new KfError('upload', `The credential helper '${program}' did not answer in JSON.`, { cause: error });
  }
  if (answer.Secret === undefined || answer.Secret === '') return undefined;
  return answer.Username === '<token>' ? { identityToken: answer.Secret } : { username: answer.Username ?? '', password: answer.Secret };
}

// Reads kubeconfig files as kubectl does: which files, how they are merged, and what a context refers to.
// Source: https://kubernetes.io/docs/concepts/configuration/organize-cluster-access-kubeconfig/

import { readFileSync } from 'node:fs';
import { delimiter, dirname, join, resolve, sep } from 'node:path';
import { KfError, messageOf } from '../errors.ts';
import { parsePlainYaml } from './plain-yaml.ts';
import { homeFolder } from '../home.ts';

type Env = Readonly<Record<string, string | undefined>>;

export interface ClusterEntry {
  server: string;
  /** Inline, base64; takes precedence over the file. */
  'certificate-authority-data'?: string;
  'certificate-authority'?: string;
  'insecure-skip-tls-verify'?: boolean;
  'tls-server-name'?: string;
  'proxy-url'?: string;
  extensions?: { name: string; extension?: unknown }[];
}

/** `users[].user.exec`; the contract is https://kubernetes.io/docs/reference/config-api/client-authentication.v1/ */
export interface ExecEntry {
  apiVersion: string;
  command: string;
  args?: string[] | null;
  env?: { name: string; value: string }[] | null;
  installHint?: string;
  provideClusterInfo?: boolean;
  interactiveMode?: 'Never' | 'IfAvailable' | 'Always';
}

export interface UserEntry {
  'client-certificate-data'?: string;
  'client-certificate'?: string;
  'client-key-data'?: string;
  'client-key'?: string;
  token?: string;
  tokenFile?: string;
  username?: string;
  password?: string;
  exec?: ExecEntry;
  'auth-provider'?: { name: string; config?: Record<string, string> };
  as?: string;
  'as-uid'?: string;
  'as-groups'?: string[];
  'as-user-extra'?: Record<string, string[]>;
}

export interface ContextEntry {
  cluster: string;
  user: string;
  namespace?: string;
}

/** All files merged; paths in it are absolute. */
export interface Kubeconfig {
  /** The files that exist, in the order of KUBECONFIG. */
  files: string[];
  /** Files that do not exist. */
  missing: string[];
  currentContext: string | undefined;
  clusters: Map<string, ClusterEntry>;
  users: Map<string, UserEntry>;
  contexts: Map<string, ContextEntry>;
}

export interface KubeconfigOptions {
  /** `--kubeconfig`: only this file, which must exist. */
  kubeconfig?: string;
  env: Env;
}

/** The cluster and user of one context. */
export interface SelectedContext {
  context: string;
  clusterName: string;
  cluster: ClusterEntry;
  userName: string;
  user: UserEntry;
  namespace: string | undefined;
}

interface FileContent {
  'current-context'?: string | null;
  clusters?: { name: string; cluster: ClusterEntry | null }[] | null;
  users?: { name: string; user: UserEntry | null }[] | null;
  contexts?: { name: string; context: ContextEntry | null }[] | null;
}

function candidateFiles({ kubeconfig, env }: KubeconfigOptions): string[] {
  if (kubeconfig !== undefined && kubeconfig !== '') return [kubeconfig];
  const list = env['KUBECONFIG'];
  if (list !== undefined && list !== '') return [...new Set(list.split(delimiter).filter((path) => path !== ''))];
  return [join(homeFolder(env), '.kube', 'config')];
}

function readIfPresent(path: string, required: boolean): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (!required && (code === 'ENOENT' || code === 'ENOTDIR')) return undefined;
    throw new KfError('usage', `The kubeconfig "${path}" cannot be read: ${messageOf(error)}.`, { cause: error });
  }
}

async function parseFile(path: string, text: string): Promise<FileContent> {
  try {
    const parsed: unknown = text.trimStart().startsWith('{')
      ? JSON.parse(text)
      : (parsePlainYaml(text) ?? (await import('./full-yaml.ts')).parseYaml(text));
    if (parsed === null || parsed === undefined) return {};
    if (typeof parsed !== 'object' || Array.isArray(parsed)) throw new Error('it is not a map');
    return parsed;
  } catch (error) {
    throw new KfError('usage', `The kubeconfig "${path}" is not valid: ${messageOf(error)}.`, {
      hints: [`kubectl config view --kubeconfig ${path}`],
      cause: error,
    });
  }
}

/** Paths are relative to the folder of their file. */
function absolute(folder: string, path: string | undefined): string | undefined {
  return path === undefined || path === '' ? undefined : resolve(folder, path);
}

function withoutUndefined<T extends object>(value: { [K in keyof T]: T[K] | undefined }): T {
  for (const key of Object.keys(value) as (keyof T)[]) if (value[key] === undefined || value[key] === null) delete value[key];
  return value as T;
}

function clusterWithPaths(entry: ClusterEntry, folder: string): ClusterEntry {
  return withoutUndefined<ClusterEntry>({ ...entry, 'certificate-authority': absolute(folder, entry['certificate-authority']) });
}

function userWithPaths(entry: UserEntry, folder: string): UserEntry {
  // A command without a separator is looked up in PATH; any other path is relative to the file's folder.
  const exec = entry.exec?.command.includes(sep) === true ? { ...entry.exec, command: resolve(folder, entry.exec.command) } : entry.exec;
  return withoutUndefined<UserEntry>({
    ...entry,
    'client-certificate': absolute(folder, entry['client-certificate']),
    'client-key': absolute(folder, entry['client-key']),
    tokenFile: absolute(folder, entry.tokenFile),
    exec,
  });
}

function addMissing<V>(known: Map<string, V>, entries: readonly (readonly [string, V | undefined])[]): void {
  for (const [name, value] of entries) if (value !== undefined && !known.has(name)) known.set(name, value);
}

/** For every entry and for the current context, the first file that has it wins. */
function mergeInto(config: Kubeconfig, content: FileContent, folder: string): void {
  const current = content['current-context'] ?? '';
  if (config.currentContext === undefined && current !== '') config.currentContext = current;
  const clusters = (content.clusters ?? []).map(
    ({ name, cluster }) => [name, cluster ? clusterWithPaths(cluster, folder) : undefined] as const,
  );
  const users = (content.users ?? []).map(({ name, user }) => [name, userWithPaths(user ?? {}, folder)] as const);
  const contexts = (content.contexts ?? []).map(({ name, context }) => [name, context ?? undefined] as const);
  addMissing(config.clusters, clusters);
  addMissing(config.users, users);
  addMissing(config.contexts, contexts);
}

/** Reads and merges the kubeconfig files; without a file the configuration is empty. Throws KfError `usage` for a broken file. */
export async function readKubeconfig(options: KubeconfigOptions): Promise<Kubeconfig> {
  const config: Kubeconfig = {
    files: [],
    missing: [],
    currentContext: undefined,
    clusters: new Map(),
    users: new Map(),
    contexts: new Map(),
  };
  for (const path of candidateFiles(options)) {
    const text = readIfPresent(path, options.kubeconfig !== undefined && options.kubeconfig !== '');
    if (text === undefined) {
      config.missing.push(resolve(path));
      continue;
    }
    const content = await parseFile(path, text);
    config.files.push(resolve(path));
    mergeInto(config, content, dirname(resolve(path)));
  }
  return config;
}

function knownUsers({ users }: Kubeconfig): string {
  return users.size === 0 ? 'It has none.' : `Users: ${[...users.keys()].map((name) => `"${name}"`).join(', ')}.`;
}

const capitalized = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** Names the missing files, of KUBECONFIG or the default one: "the kubeconfig /a/config is not there". */
export function missingFiles({ missing }: Kubeconfig): string {
  if (missing.length === 0) return 'KUBECONFIG names no file';
  return `the kubeconfig ${missing.join(' and ')} ${missing.length === 1 ? 'is' : 'are'} not there`;
}

function knownContexts(config: Kubeconfig): string {
  const names = [...config.contexts.keys()];
  if (config.files.length === 0) return `${capitalized(missingFiles(config))}.`;
  return names.length === 0 ? 'The kubeconfig has no contexts.' : `Contexts: ${names.map((name) => `"${name}"`).join(', ')}.`;
}

/** The context of that name, or the current one, with its cluster and user. Throws KfError `usage`, naming the existing ones. */
export function selectContext(config: Kubeconfig, options: { context?: string; user?: string } = {}): SelectedContext {
  const name = options.context ?? config.currentContext;
  if (name === undefined) {
    throw new KfError('usage', `The kubeconfig names no current context. ${knownContexts(config)}`, {
      hints: ['kubectl config use-context CONTEXT'],
    });
  }
  const context = config.contexts.get(name);
  if (context === undefined) {
    throw new KfError('usage', `The kubeconfig has no context "${name}". ${knownContexts(config)}`, {
      hints: ['kubectl config get-contexts'],
      details: { missingContext: name },
    });
  }
  const cluster = config.clusters.get(context.cluster);
  if (cluster === undefined || cluster.server === undefined || cluster.server === '') {
    throw new KfError('usage', `The context "${name}" points to the cluster "${context.cluster}", which the kubeconfig does not describe.`);
  }
  const userName = options.user ?? context.user ?? '';
  const user = userName === '' ? {} : config.users.get(userName);
  if (user === undefined && options.user !== undefined) {
    throw new KfError('usage', `The kubeconfig has no user "${userName}". ${knownUsers(config)}`, { hints: ['kubectl config get-users'] });
  }
  if (user === undefined) {
    throw new KfError('usage', `The context "${name}" points to the user "${userName}", which the kubeconfig does not describe.`);
  }
  return { context: name, clusterName: context.cluster, cluster, userName, user, namespace: context.namespace };
}

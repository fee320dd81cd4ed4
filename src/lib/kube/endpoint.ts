// The connection settings of one API server and one user: from the kubeconfig, otherwise from the pod's own service account.

import { join } from 'node:path';
import { KfError } from '../errors.ts';
import { pemOf, readCredentialFile } from './credential.ts';
import type { CredentialSource } from './credential.ts';
import { credentialSourceOf, tokenFileCredential } from './credentials.ts';
import type { Identity } from './errors.ts';
import { missingFiles, readKubeconfig, selectContext } from './kubeconfig.ts';
import type { Kubeconfig, SelectedContext, UserEntry } from './kubeconfig.ts';
import { proxyFor } from './proxy.ts';
import { defined } from '../defined.ts';

export interface ConnectOptions {
  /** The context's name; default: the current one. */
  context?: string | undefined;
  /** A user of the kubeconfig in place of the context's. */
  user?: string | undefined;
  /** One kubeconfig file, in place of KUBECONFIG and ~/.kube/config. */
  kubeconfig?: string;
  env: Readonly<Record<string, string | undefined>>;
  /** Sent with every request, so that the audit log shows the program. */
  userAgent?: string;
  /** The folder with a pod's own token; for tests. */
  serviceAccountDir?: string;
}

export interface Endpoint {
  identity: Identity;
  url: URL;
  /** The namespace of the context, or of the pod. */
  namespace: string | undefined;
  /** PEM; undefined: the system's certificate authorities. */
  ca: string | undefined;
  insecure: boolean;
  serverName: string | undefined;
  proxy: URL | undefined;
  credentials: CredentialSource;
  /** Impersonate-* headers. */
  headers: Record<string, string | string[]>;
}

const defaultServiceAccountDir = '/var/run/secrets/kubernetes.io/serviceaccount';

/** Source: https://kubernetes.io/docs/reference/access-authn-authz/authentication/#user-impersonation */
function impersonation(user: UserEntry): Record<string, string | string[]> {
  if (user.as === undefined || user.as === '') return {};
  const headers: Record<string, string | string[]> = { 'Impersonate-User': user.as };
  if (user['as-uid'] !== undefined) headers['Impersonate-Uid'] = user['as-uid'];
  if ((user['as-groups'] ?? []).length > 0) headers['Impersonate-Group'] = user['as-groups'] ?? [];
  for (const [key, values] of Object.entries(user['as-user-extra'] ?? {})) headers[`Impersonate-Extra-${encodeURIComponent(key)}`] = values;
  return headers;
}

function serverUrl(server: string): URL {
  const text = server.includes('://') ? server : `https://${server}`;
  if (!URL.canParse(text)) throw new KfError('usage', `The kubeconfig names the server "${server}", which is no URL.`);
  return new URL(text);
}

async function endpointOf(selected: SelectedContext, env: ConnectOptions['env']): Promise<Endpoint> {
  const { cluster } = selected;
  const url = serverUrl(cluster.server);
  return {
    identity: { context: selected.context, server: cluster.server, user: selected.userName },
    url,
    namespace: selected.namespace,
    ca: pemOf(cluster['certificate-authority-data'], cluster['certificate-authority'], 'certificate authority'),
    insecure: cluster['insecure-skip-tls-verify'] === true,
    serverName: cluster['tls-server-name'],
    proxy: proxyFor(url, cluster['proxy-url'], env),
    credentials: await credentialSourceOf(selected, env),
    headers: impersonation(selected.user),
  };
}

/** The API server for a program in a pod, or undefined outside of a pod. */
function inCluster({ env, serviceAccountDir = defaultServiceAccountDir }: ConnectOptions): Endpoint | undefined {
  const host = env['KUBERNETES_SERVICE_HOST'];
  const port = env['KUBERNETES_SERVICE_PORT'];
  if (host === undefined || host === '' || port === undefined || port === '') return undefined;
  const url = new URL(`https://${host.includes(':') ? `[${host}]` : host}:${port}`);
  const namespace = readCredentialFile(join(serviceAccountDir, 'namespace'), 'service account file').trim();
  return {
    identity: { context: 'in-cluster', server: url.origin, user: `service account of the namespace ${namespace}` },
    url,
    namespace,
    ca: readCredentialFile(join(serviceAccountDir, 'ca.crt'), 'service account file'),
    insecure: false,
    serverName: undefined,
    proxy: proxyFor(url, undefined, env),
    credentials: tokenFileCredential(join(serviceAccountDir, 'token')),
    headers: {},
  };
}

/** Why no kubeconfig leads to a cluster: missing files, or files without a context. */
function whyNone(config: Kubeconfig): string {
  const missing = config.missing.length === 0 && config.files.length > 0 ? [] : [missingFiles(config)];
  return [...missing, ...config.files.map((file) => `${file} has no context`)].join(', ');
}

/** Finds the API server as kubectl does. Throws KfError `usage` when no configuration leads to one. */
export async function resolveEndpoint(options: ConnectOptions): Promise<Endpoint> {
  const config = await readKubeconfig(options);
  if (config.contexts.size === 0 && options.context === undefined && options.kubeconfig === undefined) {
    const own = inCluster(options);
    if (own !== undefined) return own;
    throw new KfError('usage', `No Kubernetes cluster is configured: ${whyNone(config)}.`, {
      hints: ['kubectl config get-contexts', 'export KUBECONFIG=PATH'],
    });
  }
  const wanted = {
    ...defined({ context: options.context, user: options.user }),
  };
  return endpointOf(selectContext(config, wanted), options.env);
}

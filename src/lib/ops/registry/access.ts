// Connects source uploads to the registry through the API server's service proxy, so that developers need only a kubeconfig.

import type { KfInfo } from '../../api/kf-info.ts';
import { insecureRegistries, isInClusterRegistry } from '../../api/repositories.ts';
import { secretType } from '../../api/core.ts';
import { pushSecretName } from '../../api/registry-credentials.ts';
import { KfError, messageOf } from '../../errors.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { basicAuthenticator, challengeAuthenticator } from '../../oci/auth.ts';
import { isConnectionFailure, RegistryError } from '../../oci/errors.ts';
import { directConnection, type HttpSend } from '../../oci/http.ts';
import { RegistryClient } from '../../oci/registry.ts';
import type { BasicCredential } from '../../../templates/registry-secret.ts';

type RegistryPlace = Pick<KfInfo['registry'], 'namespace' | 'service' | 'port'>;

/** After two minutes without a byte in either direction, the connection is lost. */
const idleTimeoutMs = 120_000;

/** An {@link HttpSend} that goes through the API server to a port of the registry's Service. */
export function throughServiceProxy(cluster: Cluster, place: RegistryPlace): HttpSend {
  const base = `/api/v1/namespaces/${place.namespace}/services/http:${place.service}:${place.port}/proxy`;
  return (request) => cluster.raw({ ...request, path: `${base}${request.path}`, idleTimeoutMs });
}

/** A client of the in-cluster registry's push port. The API server removes `Authorization`, so the credential is in a header of ours. */
export function connectToPushPort(
  cluster: Cluster,
  place: RegistryPlace,
  credential: BasicCredential,
  renew?: () => Promise<BasicCredential>,
): RegistryClient {
  return new RegistryClient({ send: throughServiceProxy(cluster, place), authenticator: basicAuthenticator(credential, 'proxy', renew) });
}

/**
 * A client of the registry for uploads: the installation's own one through the API server, an outside one directly.
 *
 * @param renew reads the credential again when the registry rejects it: it expired during a long upload, or its key was changed
 */
export function openUploads(
  cluster: Cluster,
  info: Pick<KfInfo, 'registry' | 'builder'>,
  credential: BasicCredential,
  renew?: () => Promise<BasicCredential>,
): RegistryClient {
  if (isInClusterRegistry(info.registry)) return connectToPushPort(cluster, info.registry, credential, renew);
  const registry = info.registry.pushHost;
  const { send, sendUrl } = directConnection(registry, insecureRegistries(info).includes(registry) ? { insecure: true } : {});
  return new RegistryClient({
    send,
    authenticator: challengeAuthenticator({ registry, credentials: () => Promise.resolve(credential), sendUrl }),
  });
}

/** Runs an upload or a download. If the registry does not answer, the error names it and says whom to ask. @param later what to do when it answers */
export async function withNamedRegistry<T>(
  info: Pick<KfInfo, 'registry'>,
  transfer: () => Promise<T>,
  later = 'Push again when it answers: what was uploaded is kept.',
): Promise<T> {
  try {
    return await transfer();
  } catch (error) {
    const isOwn = isInClusterRegistry(info.registry);
    if (!isAway(error, isOwn)) throw error;
    const { namespace, service, pushHost } = info.registry;
    const name = isOwn ? `'${service}' in the namespace '${namespace}'` : `'${pushHost}'`;
    const look = isOwn ? [`kubectl -n ${namespace} get pods -l app=${service}`] : [];
    throw new KfError('upload', `The registry ${name} does not answer: ${withoutEnd(messageOf(error))}.`, {
      hints: [...look, later],
      cause: error,
    });
  }
}

/** Whether the registry, or the way to it, failed, and not what was asked of it. */
export const hasNoRegistry = (error: unknown): boolean => isAway(error, false);

/** No answer, or the answer of a proxy in front of the registry. For the in-cluster registry, a missing answer is a problem of the API server. */
function isAway(error: unknown, isOwn: boolean): boolean {
  if (!(error instanceof RegistryError)) return !isOwn && isConnectionFailure(error);
  return [502, 503, 504].includes(error.answer.status) && (!error.answer.fromRegistry || error.has('UNAVAILABLE'));
}

const withoutEnd = (text: string): string => text.replace(/^Error from registry: /, '').replace(/\.$/, '');

/** The push credential of a space. @throws KfError when the controller has not written it, or when the user has no right to read it */
export async function readPushCredential(cluster: Cluster, space: string, signal?: AbortSignal): Promise<BasicCredential> {
  const secret = await cluster.get(secretType, space, pushSecretName, signal);
  const text = (key: string): string => Buffer.from(secret?.data?.[key] ?? '', 'base64').toString('utf8');
  const credential = { username: text('username'), password: text('password') };
  if (credential.username === '' || credential.password === '') {
    throw new KfError('upload', `The space has no credential for the registry yet (Secret '${pushSecretName}').`, {
      hints: ['kubectl -n kf-system get deployment kf-controller', 'kf setup'],
    });
  }
  return credential;
}

/** {@link openUploads} with the credential of a space, which is read again when the registry rejects it. */
export async function openSpaceRegistry(
  cluster: Cluster,
  info: Pick<KfInfo, 'registry' | 'builder'>,
  space: string,
  signal?: AbortSignal,
): Promise<RegistryClient> {
  const read = (): Promise<BasicCredential> => readPushCredential(cluster, space, signal);
  return openUploads(cluster, info, await read(), read);
}

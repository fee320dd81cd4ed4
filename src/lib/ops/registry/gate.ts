// The operator's requests to the registry's gate: its keys, clock and capacity. They go through the API server, like uploads.

import { secretType } from '../../api/core.ts';
import type { KfInfo } from '../../api/kf-info.ts';
import { keeperUser, registryKeyFields, registryKeySecretName, registryPassword } from '../../api/registry-credentials.ts';
import type { GateStatus } from '../../api/gate-status.ts';
import { isInClusterRegistry } from '../../api/repositories.ts';
import { defined } from '../../defined.ts';
import { KfError } from '../../errors.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { basicAuthenticator } from '../../oci/auth.ts';
import { readUpTo } from '../../oci/http.ts';
import { throughServiceProxy } from './access.ts';

/** Long, because clocks differ; the credential is used for one request. */
const keeperSeconds = 24 * 3600;
const mostStatusBytes = 4 * 1024 * 1024;

/** The keys in the cluster. @throws KfError for an installation with an outside registry, or without a key */
export async function readRegistryKeys(
  cluster: Cluster,
  info: Pick<KfInfo, 'registry' | 'controller'>,
): Promise<{ secret: NonNullable<Awaited<ReturnType<typeof getKeys>>>; current: Buffer }> {
  if (!isInClusterRegistry(info.registry))
    throw new KfError('usage', `This installation uses the registry '${info.registry.pushHost}', and kf does not make its credentials.`, {
      hints: [
        "Change the Secrets 'kf-registry-push' and 'image-registry-credentials' in namespace 'cf'; the controller copies them into every space.",
      ],
    });
  const secret = await getKeys(cluster, info.controller.namespace);
  const current = secret?.data?.[registryKeyFields.current];
  if (secret === undefined || current === undefined)
    throw new KfError('not-found', `The key of the registry is missing (Secret '${info.controller.namespace}/${registryKeySecretName}').`, {
      hints: ['kf setup'],
    });
  return { secret, current: Buffer.from(current, 'base64') };
}

const getKeys = (cluster: Cluster, ns: string) => cluster.get(secretType, ns, registryKeySecretName);

/** The status of the gate. @throws KfError naming the registry when it does not answer */
export async function readGateStatus(
  cluster: Cluster,
  registry: Pick<KfInfo['registry'], 'namespace' | 'service' | 'port'>,
  key: Buffer,
  signal?: AbortSignal,
): Promise<GateStatus> {
  const username = keeperUser(Math.floor(Date.now() / 1000) + keeperSeconds);
  const headers = basicAuthenticator({ username, password: registryPassword(key, username) }, 'proxy').headers({
    repository: '',
    actions: 'pull',
  });
  const response = await throughServiceProxy(cluster, registry)({ method: 'GET', path: '/kf/status', headers, ...defined({ signal }) });
  const text = (await readUpTo(response.body, mostStatusBytes)).toString();
  if (response.status === 200) return JSON.parse(text) as GateStatus;
  throw new KfError('upload', `The registry does not report its state: HTTP status ${response.status}.`, {
    hints: [`kubectl -n ${registry.namespace} get pods -l app=${registry.service}`, 'kf setup'],
    details: { status: response.status },
  });
}

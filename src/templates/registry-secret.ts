// Secrets with registry credentials for the kubelet, the CLI and builds.

import type { Secret } from '../lib/api/core.ts';
import { kinds, labels, places } from '../lib/api/group.ts';
import type { OwnerReference, Stored } from '../lib/api/object.ts';
import { dockerConfigJson } from '../lib/api/registry-credentials.ts';
import type { CFApp } from '../lib/api/types.generated.ts';
import { registryKeys } from './build-scripts.ts';
import { authorOf, ownerReference, type Authorship } from './metadata.ts';

/** For HTTP Basic. */
export interface BasicCredential {
  username: string;
  password: string;
}

/** Of a Secret of the type `kubernetes.io/dockerconfigjson`. */
export const dockerConfigKey = '.dockerconfigjson';

const base64 = (text: string): string => Buffer.from(text).toString('base64');

/** The host of `localhost:32500/` or `registry.example/team/`. */
export function hostOf(prefix: string): string {
  return prefix.split('/', 1)[0] ?? prefix;
}

/** For the kubelet: Secret `image-registry-credentials`. */
export function pullSecret(ns: string, pullPrefix: string, credential: BasicCredential): Secret {
  const config = dockerConfigJson(hostOf(pullPrefix), credential.username, credential.password);
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: places.pullSecret, namespace: ns, labels: { [labels.managedBy]: 'kf' } },
    type: 'kubernetes.io/dockerconfigjson',
    data: { [dockerConfigKey]: base64(config) },
  };
}

/** For uploads of developers: Secret `kf-registry-push`. */
export function pushSecret(ns: string, credential: BasicCredential): Secret {
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: places.pushSecret, namespace: ns, labels: { [labels.managedBy]: 'kf' } },
    type: 'Opaque',
    data: { username: base64(credential.username), password: base64(credential.password) },
  };
}

export const imagePullSecretName = (app: Stored<CFApp>): string => `${app.metadata.name}-image-pull`;

/** For the images of one app in registries that ask for a password. @param config docker's configuration, as JSON */
export function imagePullSecret(app: Stored<CFApp>, config: string, author: Authorship): Secret {
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      name: imagePullSecretName(app),
      namespace: app.metadata.namespace,
      labels: { [labels.appGuid]: app.metadata.name },
      annotations: authorOf(author),
      ownerReferences: [ownerReference(kinds.app, app, false)],
    },
    type: 'kubernetes.io/dockerconfigjson',
    data: { [dockerConfigKey]: base64(config) },
  };
}

/** For one build, in the format of the CNB lifecycle (CNB_REGISTRY_AUTH) and as plain user and password. */
export function buildRegistrySecret(
  where: { ns: string; name: string; owner: OwnerReference },
  pushHost: string,
  credential: BasicCredential,
): Secret {
  const auth = JSON.stringify({ [hostOf(pushHost)]: `Basic ${base64(`${credential.username}:${credential.password}`)}` });
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: where.name, namespace: where.ns, ownerReferences: [where.owner], labels: { [labels.managedBy]: 'kf' } },
    type: 'Opaque',
    immutable: true,
    data: {
      [registryKeys.username]: base64(credential.username),
      [registryKeys.password]: base64(credential.password),
      [registryKeys.auth]: base64(auth),
    },
  };
}

// Secrets with registry credentials for the kubelet, the CLI and builds.

import type { Secret } from '../lib/api/core.ts';
import { labels, places } from '../lib/api/group.ts';
import type { OwnerReference } from '../lib/api/object.ts';
import { dockerConfigJson } from '../lib/api/registry-credentials.ts';
import { registryKeys } from './build-scripts.ts';

/** For HTTP Basic. */
export interface BasicCredential {
  username: string;
  password: string;
}

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
    data: { '.dockerconfigjson': base64(config) },
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

// User-provided service instances, their credentials and bindings to apps.

import type { Stored } from '../lib/api/object.ts';
import { secretType } from '../lib/api/core.ts';
import type { Secret } from '../lib/api/core.ts';
import { annotations, kinds, labels } from '../lib/api/group.ts';
import { apiVersionOf } from '../lib/api/object.ts';
import type { CFApp, CFServiceBinding, CFServiceInstance } from '../lib/api/types.generated.ts';
import { assemble, authorOf, encoded, ownerReference } from './metadata.ts';
import type { Authorship } from './metadata.ts';
import { defined } from '../lib/defined.ts';

export interface UserProvidedInput {
  guid: string;
  namespace: string;
  displayName: string;
  /** Name of the Secret with the credentials: any unused name, */
  secretName: string;
  /** or that of a Secret which something else maintains. */
  isFollowed?: boolean;
  tags?: string[];
  syslogDrainUrl?: string | undefined;
  routeServiceUrl?: string | undefined;
}

export function buildUserProvidedInstance(input: UserProvidedInput, author: Authorship): CFServiceInstance {
  const { guid, namespace, displayName, secretName, isFollowed = false, tags = [], syslogDrainUrl, routeServiceUrl } = input;
  return assemble(kinds.serviceInstance, {
    metadata: { name: guid, namespace, ...(isFollowed ? { annotations: { [annotations.fromSecret]: 'true' } } : {}) },
    body: {
      spec: {
        displayName,
        type: 'user-provided',
        secretName,
        planGuid: '',
        ...(tags.length === 0 ? {} : { tags }),
        ...defined({ syslogDrainUrl, routeServiceUrl }),
      },
    },
    author,
  });
}

/** The credentials of a user-provided instance, a JSON object under one key. `instance` exists already: its uid is known. */
export function buildCredentialsSecret(
  instance: Stored<CFServiceInstance>,
  credentials: Record<string, unknown>,
  author: Authorship,
): Secret {
  return {
    apiVersion: apiVersionOf(secretType),
    kind: secretType.kind,
    metadata: {
      name: instance.spec.secretName,
      ...defined({ namespace: instance.metadata.namespace }),
      labels: { [labels.serviceInstanceGuid]: instance.metadata.name },
      annotations: authorOf(author),
      ownerReferences: [ownerReference(kinds.serviceInstance, instance, false)],
    },
    type: 'Opaque',
    data: encoded({ credentials: JSON.stringify(credentials) }),
  };
}

export interface BindingInput {
  guid: string;
  app: Stored<CFApp>;
  instance: Stored<CFServiceInstance>;
  /** Name of the binding, if it differs from the instance's. */
  displayName?: string | undefined;
}

export function buildAppBinding({ guid, app, instance, displayName }: BindingInput, author: Authorship): CFServiceBinding {
  return assemble(kinds.serviceBinding, {
    metadata: {
      name: guid,
      ...defined({ namespace: app.metadata.namespace }),
      labels: { [labels.provisionedService]: 'true' },
      annotations: { [annotations.serviceInstanceType]: instance.spec.type },
    },
    body: {
      spec: {
        type: 'app',
        appRef: { name: app.metadata.name },
        service: {
          apiVersion: apiVersionOf(kinds.serviceInstance),
          kind: kinds.serviceInstance.kind,
          ...defined({ name: instance.metadata.name, namespace: instance.metadata.namespace }),
        },
        parameters: { name: '' },
        ...defined({ displayName }),
      },
    },
    author,
  });
}

// CFApp, its environment Secret and its processes.

import type { Stored } from '../lib/api/object.ts';
import { processDefaults } from '../lib/api/app.ts';
import { secretType } from '../lib/api/core.ts';
import type { Secret } from '../lib/api/core.ts';
import { annotations, kinds, labels } from '../lib/api/group.ts';
import { lostVariablesMark } from '../lib/api/lost-variables.ts';
import { processGuid } from '../lib/api/names.ts';
import { apiVersionOf } from '../lib/api/object.ts';
import type { CFApp, CFProcess, CFProcessSpec, Lifecycle, Sidecar } from '../lib/api/types.generated.ts';
import { assemble, authorOf, encoded, ownerReference } from './metadata.ts';
import type { Authorship } from './metadata.ts';
import { defined } from '../lib/defined.ts';

/** Name of the Secret that holds an app's environment. */
export function envSecretName(appGuid: string): string {
  return `${appGuid}-env`;
}

export interface AppInput {
  guid: string;
  namespace: string;
  displayName: string;
  lifecycle: Lifecycle;
  /** The push that claims the name: `kf/push-id`, and when it began. */
  pushId?: string;
  annotations?: Record<string, string>;
  labels?: Record<string, string>;
}

/** A stopped app; the push starts it. */
export function buildApp(input: AppInput, author: Authorship): CFApp {
  const push =
    input.pushId === undefined ? {} : { [annotations.pushId]: input.pushId, [annotations.pushStarted]: author.now.toISOString() };
  return assemble(kinds.app, {
    metadata: {
      name: input.guid,
      namespace: input.namespace,
      labels: { ...input.labels },
      annotations: { ...input.annotations, [annotations.appRev]: '0', ...push },
    },
    body: {
      spec: {
        displayName: input.displayName,
        desiredState: 'STOPPED',
        lifecycle: input.lifecycle,
        envSecretName: envSecretName(input.guid),
      },
    },
    author,
  });
}

/** The environment Secret of the app. `app` exists already: its uid is known. */
export function buildEnvSecret(app: Stored<CFApp>, env: Record<string, string>, author: Authorship): Secret {
  const guid = app.metadata.name;
  return {
    apiVersion: apiVersionOf(secretType),
    kind: secretType.kind,
    metadata: {
      name: app.spec.envSecretName ?? envSecretName(guid),
      ...defined({ namespace: app.metadata.namespace }),
      labels: { [labels.appGuid]: guid },
      annotations: { ...authorOf(author), ...lostVariablesMark(app) },
      ownerReferences: [ownerReference(kinds.app, app, false)],
    },
    type: 'Opaque',
    data: encoded(env),
  };
}

export interface ProcessInput {
  app: Stored<CFApp>;
  type: string;
  memoryMB: number;
  diskQuotaMB: number;
  /** Default: 1 for web, otherwise 0. */
  instances?: number | undefined;
  command?: string | undefined;
  healthCheck?: CFProcessSpec['healthCheck'] | undefined;
  readinessHealthCheck?: CFProcessSpec['readinessHealthCheck'] | undefined;
  user?: string | undefined;
  logRateLimitBPS?: number | undefined;
  sidecars?: Sidecar[] | undefined;
}

/** A process of the app; its name follows from app and type. */
export function buildProcess(input: ProcessInput, author: Authorship): CFProcess {
  const { app, type } = input;
  return assemble(kinds.process, {
    metadata: {
      name: processGuid(app.metadata.name, type),
      ...defined({ namespace: app.metadata.namespace }),
      ownerReferences: [ownerReference(kinds.app, app)],
    },
    body: {
      spec: {
        appRef: { name: app.metadata.name },
        processType: type,
        desiredInstances: input.instances ?? processDefaults.instances(type),
        memoryMB: input.memoryMB,
        diskQuotaMB: input.diskQuotaMB,
        healthCheck: input.healthCheck ?? {
          type: processDefaults.healthCheckType(type),
          data: { invocationTimeoutSeconds: 1, timeoutSeconds: processDefaults.healthCheckTimeoutSeconds },
        },
        ...defined({
          command: input.command,
          readinessHealthCheck: input.readinessHealthCheck,
          user: input.user,
          logRateLimitBPS: input.logRateLimitBPS,
          sidecars: input.sidecars,
        }),
      },
    },
    author,
  });
}

// CFPackage, CFBuild and the build's environment Secret.

import type { Stored } from '../lib/api/object.ts';
import { secretType } from '../lib/api/core.ts';
import type { Secret } from '../lib/api/core.ts';
import { annotations, kinds, labels } from '../lib/api/group.ts';
import { apiVersionOf } from '../lib/api/object.ts';
import type { CFApp, CFBuild, CFPackage, Lifecycle } from '../lib/api/types.generated.ts';
import { assemble, authorOf, encoded, ownerReference } from './metadata.ts';
import type { Authorship } from './metadata.ts';
import { defined } from '../lib/defined.ts';

/** Name of the immutable Secret with the environment of one build. */
export function buildEnvSecretName(buildGuid: string): string {
  return `${buildGuid}-env`;
}

/** What a push records in annotations of the package and the build. */
interface PushRecord {
  pushId?: string | undefined;
  /** Hash of the source's paths, modes and bytes. */
  contentHash?: string | undefined;
}

const pushAnnotations = ({ pushId, contentHash }: PushRecord): Record<string, string> =>
  defined({ [annotations.pushId]: pushId, [annotations.contentHash]: contentHash });

export interface PackageInput extends PushRecord {
  origin?: { commit?: string; ciRun?: string };
  guid: string;
  app: Stored<CFApp>;
  type: 'bits' | 'docker';
  /** bits: reference by digest behind the push port; docker: as the user typed it. */
  image: string;
  /** Names of pull secrets. */
  pullSecrets?: string[];
}

export function buildPackage(input: PackageInput, author: Authorship): CFPackage {
  const { app, image, pullSecrets = [], origin = {} } = input;
  const imagePullSecrets = pullSecrets.length === 0 ? undefined : pullSecrets.map((name) => ({ name }));
  return assemble(kinds.package, {
    metadata: {
      name: input.guid,
      namespace: app.metadata.namespace,
      annotations: { ...pushAnnotations(input), ...defined({ [annotations.commit]: origin.commit, [annotations.ciRun]: origin.ciRun }) },
      ownerReferences: [ownerReference(kinds.app, app)],
    },
    body: {
      spec: { type: input.type, appRef: { name: app.metadata.name }, source: { registry: { image, ...defined({ imagePullSecrets }) } } },
    },
    author,
  });
}

export interface BuildInput extends PushRecord {
  guid: string;
  app: Stored<CFApp>;
  packageGuid: string;
  lifecycle: Lifecycle;
  stagingMemoryMB: number;
  stagingDiskMB: number;
  /** Hash of all inputs; with an equal key the build need not run again. */
  buildKey?: string | undefined;
  /** Name of the Secret made by {@link buildBuildEnvSecret}. */
  envSecretName?: string | undefined;
}

export function buildBuild(input: BuildInput, author: Authorship): CFBuild {
  const { app } = input;
  return assemble(kinds.build, {
    metadata: {
      name: input.guid,
      namespace: app.metadata.namespace,
      annotations: {
        ...pushAnnotations(input),
        ...defined({ [annotations.buildKey]: input.buildKey, [annotations.envSecret]: input.envSecretName }),
      },
      ownerReferences: [ownerReference(kinds.app, app)],
    },
    body: {
      spec: {
        appRef: { name: app.metadata.name },
        packageRef: { name: input.packageGuid },
        lifecycle: input.lifecycle,
        stagingMemoryMB: input.stagingMemoryMB,
        stagingDiskMB: input.stagingDiskMB,
      },
    },
    author,
  });
}

/** The environment of one build, written once. `build` exists already: its uid is known. */
export function buildBuildEnvSecret(build: Stored<CFBuild>, env: Record<string, string>, author: Authorship): Secret {
  return {
    apiVersion: apiVersionOf(secretType),
    kind: secretType.kind,
    metadata: {
      name: buildEnvSecretName(build.metadata.name),
      namespace: build.metadata.namespace,
      labels: { [labels.buildGuid]: build.metadata.name },
      annotations: authorOf(author),
      ownerReferences: [ownerReference(kinds.build, build, false)],
    },
    type: 'Opaque',
    immutable: true,
    data: encoded(env),
  };
}

// Kinds that controllers create for builders and runners. Fields: contract 4.16-4.20; kf's own: docs/internals.md.

import { age, boolean, column, int32, int64, list, listBy, named, object, readyColumn, string, time } from './schema.ts';
import type { Kind } from './schema.ts';
import {
  boundService,
  buildFailure,
  droplet,
  envVar,
  instancesStatus,
  objectReference,
  mostBindings,
  mostSidecars,
  probe,
  pullSecrets,
  registry,
  resources,
  sizes,
  statusOf,
  taskEnd,
} from './shared.ts';

/** As many variables as an app may have, and those of the platform. */
const environment = list(envVar, { maxItems: 1100 });

const build: Kind = {
  kind: 'BuildWorkload',
  plural: 'buildworkloads',
  description: 'A build for the builder named in builderName.',
  columns: [],
  spec: object({
    'buildRef!': object({ 'name!': string() }),
    'builderName!': string(),
    buildpacks: list(string({ maxLength: sizes.buildpack }), { maxItems: 16 }),
    env: environment,
    services: list(objectReference(), { maxItems: mostBindings }),
    source: object({ 'registry!': registry }),
  }),
  status: statusOf({ droplet, failure: buildFailure }),
};

const app: Kind = {
  kind: 'AppWorkload',
  plural: 'appworkloads',
  description: 'One generation of a process, for the runner named in runnerName.',
  columns: [],
  spec: object({
    'GUID!': string({ description: 'GUID of the process' }),
    'appGUID!': string(),
    'processType!': string(),
    'version!': string(),
    'image!': string({ maxLength: sizes.image }),
    imagePullSecrets: pullSecrets,
    command: list(string({ maxLength: sizes.command })),
    env: environment,
    'instances!': int32({ default: 1, maximum: 1000 }),
    ports: list(int32()),
    'runnerName!': string(),
    services: listBy('guid', boundService, { maxItems: mostBindings }),
    resources,
    livenessProbe: probe,
    readinessProbe: probe,
    startupProbe: probe,
    user: string(),
    sidecars: listBy(
      'name',
      named('WorkloadSidecar', object({ 'name!': string(), 'command!': list(string({ maxLength: sizes.command })), resources })),
      { maxItems: mostSidecars },
    ),
    drainSeconds: int64({ minimum: 0, description: 'how long a stopping instance goes on answering' }),
    graceSeconds: int64({ minimum: 0, description: 'how long it may take after SIGTERM; 10 by default' }),
    architecture: string(),
  }),
  status: statusOf({ actualInstances: int32(), instancesStatus }),
};

const task: Kind = {
  kind: 'TaskWorkload',
  plural: 'taskworkloads',
  description: 'One run of a task.',
  columns: [],
  spec: object({
    'command!': list(string({ maxLength: sizes.command })),
    'image!': string({ maxLength: sizes.image }),
    imagePullSecrets: pullSecrets,
    env: environment,
    services: listBy('guid', boundService, { maxItems: mostBindings }),
    resources,
  }),
  status: statusOf(taskEnd),
};

const builderInfo: Kind = {
  kind: 'BuilderInfo',
  plural: 'builderinfos',
  description: 'What a builder offers.',
  columns: [age, readyColumn],
  spec: object({}),
  status: statusOf({
    'stacks!': list(object({ 'name!': string(), 'description!': string(), 'creationTimestamp!': time(), 'updatedTimestamp!': time() })),
    'buildpacks!': list(
      object({
        'name!': string(),
        'stack!': string(),
        'version!': string(),
        'creationTimestamp!': time(),
        'updatedTimestamp!': time(),
      }),
      { maxItems: 500 },
    ),
    builder: named(
      'BuilderFacts',
      object(
        {
          'image!': string({ maxLength: sizes.image, description: 'the reference that was read' }),
          'digest!': string(),
          runImage: string({ maxLength: sizes.image }),
          uid: int64(),
          gid: int64(),
          architecture: string(),
        },
        { description: 'facts read once from the builder image' },
      ),
    ),
  }),
};

const runnerInfo: Kind = {
  kind: 'RunnerInfo',
  plural: 'runnerinfos',
  description: 'What a runner can do.',
  columns: [],
  spec: object({ 'runnerName!': string() }),
  status: statusOf({ 'capabilities!': object({ rollingDeploy: boolean() }) }),
};

const featureFlag: Kind = {
  kind: 'CFFeatureFlag',
  plural: 'cffeatureflags',
  description: "A feature flag of cf in the root namespace, named like the flag with '-' for '_'. Without the object, the flag is enabled.",
  columns: [column('Enabled', '.spec.enabled'), age],
  spec: object({
    'enabled!': boolean(),
    errorMessage: string({ maxLength: 250, description: 'what a refusal says in place of the name of the flag' }),
  }),
};

export const runtimeKinds: Kind[] = [build, app, task, builderInfo, runnerInfo, featureFlag];

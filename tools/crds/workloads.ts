// Orgs, spaces, apps, and their builds, processes and tasks. Fields: contract 4.1-4.6 and 4.9; kf's own: docs/internals.md.

import { ownUserId } from '../../src/templates/pod-security.ts';
import {
  age,
  boolean,
  column,
  createdAt,
  immutable,
  int,
  int32,
  int64,
  list,
  listBy,
  named,
  object,
  oneOf,
  readyColumn,
  rules,
  string,
  time,
  updatedAt,
} from './schema.ts';
import type { Kind } from './schema.ts';
import {
  appRevision,
  boundService,
  buildFailure,
  droplet,
  instanceCounts,
  instancesStatus,
  keptLines,
  lifecycle,
  localReference,
  mostBindings,
  mostSidecars,
  sidecarCommand,
  registry,
  sizes,
  statusOf,
  taskEnd,
  tenantName,
} from './shared.ts';

const displayName = column('Display Name', '.spec.displayName');
const appGuid = column('AppGUID', '.spec.appRef.name');

const shortName = (noun: string) => ({
  rule: 'self.metadata.name.size() <= 63',
  message: `The GUID of ${noun} may have at most 63 characters, because it names a namespace`,
});

const org: Kind = {
  kind: 'CFOrg',
  plural: 'cforgs',
  description: 'An organization. Its namespace bears its GUID (metadata.name).',
  columns: [createdAt, updatedAt, displayName, age],
  rules: [shortName('an org')],
  spec: object({ 'displayName!': tenantName }),
  status: statusOf({ 'guid!': string() }),
};

const space: Kind = {
  kind: 'CFSpace',
  plural: 'cfspaces',
  description: "A space, in its org's namespace. Its own namespace bears its GUID (metadata.name).",
  columns: [createdAt, updatedAt, displayName, age],
  rules: [shortName('a space')],
  spec: object({ 'displayName!': tenantName }),
  status: statusOf({ 'guid!': string() }),
};

const limit = (description: string) => int32({ minimum: 0, description: `${description}; missing: no limit` });

const quota: Kind = {
  kind: 'CFQuota',
  plural: 'cfquotas',
  description:
    'What an org or a space may use: a quota for orgs in the root namespace, a quota for spaces in the namespace of their org. Orgs and spaces name it in annotation kf.cloudfoundry.org/quota.',
  columns: [displayName, age],
  spec: object({
    'displayName!': tenantName,
    totalMemoryMB: limit('memory of all instances, tasks and builds'),
    instanceMemoryMB: limit('memory of one instance or task'),
    appInstances: limit('instances of all apps'),
    routes: limit('routes'),
    serviceInstances: limit('service instances'),
  }),
};

const deployment = object(
  {
    'id!': string({ description: 'annotation kf.cloudfoundry.org/deploy-id of the CFApp that this speaks of' }),
    'phase!': oneOf('Pending', 'Starting', 'Paused', 'Serving', 'Failed', 'Stopped'),
    reason: string({ description: 'Failed: the class of the cause; Pending, Starting: what is awaited' }),
    cause: string({ maxLength: 64, description: 'Failed: the code of the cause (kf why)' }),
    message: string({ maxLength: sizes.message, description: 'one sentence for people' }),
    process: string(),
    pod: string(),
    container: string(),
    exitCode: int32(),
    restarts: int32(),
    since: time(),
    step: int32({ description: 'the step of a canary that was reached; missing: no canary' }),
    canceled: boolean({ description: 'the change was canceled, and this is about the return to the version before' }),
    generations: list(
      named(
        'GenerationStatus',
        object({
          'process!': string(),
          'hash!': string(),
          'state!': oneOf('Current', 'Old', 'Failed'),
          'instances!': int32(),
          'ready!': int32(),
          verified: boolean({ description: 'a request to this very generation was answered' }),
          served: boolean({ description: 'it was once what the app served by: what a failed successor falls back to' }),
          untouched: boolean({ description: 'it served before the change named by id, which leaves the process as it is' }),
          leaving: boolean({
            description: 'it was replaced by a version that serves; it serves again if that one fails before its instances end',
          }),
          uid: string({ description: 'of the AppWorkload that this was said of; one that was made again is judged anew', maxLength: 64 }),
        }),
      ),
      { maxItems: 128 },
    ),
    ...keptLines(30),
  },
  { description: 'how the change named by id fares' },
);

const appRollout = named(
  'AppRollout',
  object(
    {
      'id!': string({
        maxLength: 64,
        description: 'annotation kf.cloudfoundry.org/deploy-id of the change; for another one this has no effect',
      }),
      strategy: { ...oneOf('rolling', 'canary', 'recreate'), description: 'missing: rolling' },
      maxInFlight: int32({ minimum: 1, maximum: 1000, description: 'instances that are replaced at a time; missing: 1' }),
      instanceSteps: list(int32({ minimum: 1, maximum: 100 }), {
        description: 'percentages of a canary, which pauses after each; missing: one step with one instance',
        maxItems: 100,
      }),
      step: int32({ minimum: 1, maximum: 101, description: 'the step up to which a canary may go; missing: 1' }),
      canceled: boolean({ description: 'return to the version before' }),
    },
    { description: 'how the change named by id replaces the instances' },
  ),
);

const app: Kind = {
  kind: 'CFApp',
  plural: 'cfapps',
  description: 'An app: what shall run, and how it is.',
  columns: [displayName, createdAt, updatedAt, column('State', '.spec.desiredState'), age],
  spec: object({
    'displayName!': string({ pattern: '^[-\\w]+$' }),
    'desiredState!': oneOf('STOPPED', 'STARTED'),
    'lifecycle!': lifecycle(immutable('The lifecycle type of an app cannot be changed; delete the app and push it again')),
    envSecretName: string(),
    currentDropletRef: localReference(),
    rollout: appRollout,
  }),
  status: statusOf({
    actualState: string(),
    observedDesiredState: string(),
    serviceBindings: listBy('guid', boundService, { maxItems: mostBindings }),
    vcapApplicationSecretName: string(),
    vcapServicesSecretName: string(),
    spaceStrategy: {
      ...oneOf('rolling', 'recreate'),
      description: 'the default of the space, kf.cloudfoundry.org/strategy; missing: none',
    },
    deployment: named('DeploymentStatus', deployment),
    revision: appRevision,
  }),
};

const pkg: Kind = {
  kind: 'CFPackage',
  plural: 'cfpackages',
  description: 'Source of an app: an uploaded single-layer image, or a docker image as typed.',
  columns: [appGuid, createdAt, updatedAt, readyColumn, age],
  spec: object({
    'type!': { ...oneOf('bits', 'docker'), ...immutable('The type of a package cannot be changed') },
    'appRef!': localReference(),
    source: object({ 'registry!': registry }),
  }),
  status: statusOf(),
};

const build: Kind = {
  kind: 'CFBuild',
  plural: 'cfbuilds',
  description: 'A build of a package, and the droplet it made.',
  columns: [appGuid, column('State', '.status.state'), createdAt, updatedAt, age],
  spec: object({
    'appRef!': localReference(),
    'packageRef!': localReference(),
    'lifecycle!': lifecycle(),
    'stagingMemoryMB!': int(),
    'stagingDiskMB!': int(),
  }),
  status: statusOf({ state: oneOf('STAGING', 'STAGED', 'FAILED'), droplet, failure: buildFailure }),
};

const sidecar = named(
  'Sidecar',
  object({
    'name!': string({ minLength: 1, maxLength: 63 }),
    'command!': string({ minLength: 1, maxLength: sidecarCommand }),
    memoryMB: int64({ minimum: 1, description: 'a part of the memory of the process; left out: an eighth' }),
  }),
);

const healthCheckType = oneOf('http', 'port', 'process', '');

/** 0 is the default. */
const seconds = int32({ minimum: 0 });

const process: Kind = {
  kind: 'CFProcess',
  plural: 'cfprocesses',
  description: 'A process type of an app and how many instances of it shall run.',
  // The contract's two, then the columns that a list of apps needs: `kf apps` requests table rows instead of objects.
  columns: [
    createdAt,
    updatedAt,
    appGuid,
    column('Type', '.spec.processType'),
    column('Desired', '.spec.desiredInstances'),
    column('Actual', '.status.actualInstances'),
  ],
  scale: { spec: '.spec.desiredInstances', status: '.status.actualInstances', selector: '.status.selector' },
  spec: object({
    'appRef!': { ...localReference(), ...immutable('The app of a process cannot be changed') },
    'processType!': string({ maxLength: 63 }),
    command: string({ maxLength: sizes.command }),
    detectedCommand: string({ maxLength: sizes.command }),
    desiredInstances: int32({ default: 1, minimum: 0, maximum: 1000 }),
    'memoryMB!': int64({ minimum: 0 }),
    'diskQuotaMB!': int64({ minimum: 0 }),
    'healthCheck!': object({
      'type!': healthCheckType,
      'data!': object({
        httpEndpoint: string({ maxLength: sizes.url }),
        'invocationTimeoutSeconds!': seconds,
        'timeoutSeconds!': seconds,
        intervalSeconds: seconds,
      }),
    }),
    readinessHealthCheck: object({
      'type!': healthCheckType,
      data: object({ httpEndpoint: string({ maxLength: sizes.url }), invocationTimeoutSeconds: seconds, intervalSeconds: seconds }),
    }),
    ports: list(int32()),
    user: string({
      description: 'user name or id that the process runs as; empty: the one of the image',
      ...rules({ rule: `!self.matches('^0*${ownUserId}$')`, message: `Only kf's own pods run as the user ${ownUserId}` }),
    }),
    sidecars: listBy('name', sidecar, { maxItems: mostSidecars, description: 'programs that run beside each instance, with its image' }),
    logRateLimitBPS: int64({ description: 'bytes of log per second; -1: unlimited' }),
  }),
  status: statusOf({
    actualInstances: int32(),
    instancesStatus,
    instanceCounts,
    selector: string({ maxLength: 1024, description: 'label selector of all pods of the process, over all generations' }),
    serving: string({ maxLength: 4096, description: '<generation>=<weight>,...: how routes shall spread requests' }),
    rollout: named('DeploymentStatus', deployment),
    unstartedInstances: int32({
      description: 'desiredInstances when the controller last saw them; only without a generation, or with none but a canceled one',
    }),
  }),
};

const ended = 'oldSelf.status.conditions.exists(c, (c.type == "Succeeded" || c.type == "Failed") && c.status == "True")';
const canceled = (object: string) => `(has(${object}.spec) && has(${object}.spec.canceled) && ${object}.spec.canceled)`;

const task: Kind = {
  kind: 'CFTask',
  plural: 'cftasks',
  description: 'A command that runs once with the code and environment of an app.',
  columns: [createdAt, updatedAt],
  rules: [
    {
      rule: `!${canceled('self')} || ${canceled('oldSelf')} || !has(oldSelf.status) || !has(oldSelf.status.conditions) || !${ended}`,
      message: 'A task that has ended cannot be canceled',
    },
  ],
  spec: object(
    {
      // The number of kept results is limited per app.
      appRef: { ...localReference(), ...immutable('The app of a task cannot be changed') },
      command: string({ maxLength: sizes.command }),
      canceled: boolean(),
      displayName: string({ description: 'the name that people see; empty: the GUID' }),
      processType: string({ description: 'process type whose command and sizes are taken where the task gives none' }),
      memoryMB: int64({ minimum: 0 }),
      diskMB: int64({ minimum: 0 }),
    },
    {
      'x-kubernetes-validations': [
        {
          rule: '(has(self.command) && self.command != "") || (has(self.processType) && self.processType != "")',
          message: 'A task needs a command, or a process type whose command it takes',
        },
        { rule: 'has(self.appRef) && self.appRef.name != ""', message: 'A task needs the app it belongs to (appRef.name)' },
      ],
    },
  ),
  status: statusOf({
    sequenceId: int64({ minimum: 0, ...immutable('The sequence id of a task cannot be changed') }),
    memoryMB: int64(),
    diskQuotaMB: int64(),
    dropletRef: localReference(),
    ...taskEnd,
  }),
};

export const workloadKinds: Kind[] = [org, space, quota, app, pkg, build, process, task];

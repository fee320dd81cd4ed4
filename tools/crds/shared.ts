// Schemas that several kinds share: metav1.Condition, a few core/v1 types with the fields that kf's contract has, droplets, instances.

import { boolean, freeForm, int, int32, int64, list, listBy, map, named, object, oneOf, setOf, string, time } from './schema.ts';
import type { Properties, Schema } from './schema.ts';

/** Limits in characters that more than one field has. */
export const sizes = {
  /** Start commands: cf accepts 4096 characters from people; buildpacks write longer ones. */
  command: 8192,
  /** A sentence for people, with the message of a registry, a kubelet or a scheduler. */
  message: 4096,
  image: 1024,
  url: 2048,
  /** `<id>@<version>` of the builder. */
  buildpack: 255,
} as const;

const condition = named(
  'Condition',
  object({
    'type!': string({ maxLength: 316 }),
    'status!': oneOf('True', 'False', 'Unknown'),
    'reason!': string({ minLength: 1, pattern: '^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$' }),
    'message!': string({ maxLength: sizes.message }),
    'lastTransitionTime!': time(),
    observedGeneration: int64({ minimum: 0 }),
  }),
);

/** `status` with the two fields that every kind has. */
export const statusOf = (properties: Properties = {}, extra: Schema = {}): Schema =>
  object({ conditions: listBy('type', condition, { maxItems: 16 }), observedGeneration: int64(), ...properties }, extra);

export const localReference = (extra: Schema = {}): Schema =>
  named('LocalReference', object({ name: string({ default: '', maxLength: 253 }) }, { 'x-kubernetes-map-type': 'atomic', ...extra }));

export const objectReference = (extra: Schema = {}): Schema =>
  named(
    'ObjectReference',
    object(
      {
        apiVersion: string(),
        fieldPath: string(),
        kind: string(),
        name: string({ maxLength: 253 }),
        namespace: string({ maxLength: 253 }),
        resourceVersion: string(),
        uid: string(),
      },
      { 'x-kubernetes-map-type': 'atomic', ...extra },
    ),
  );

const intOrString: Schema = { anyOf: [{ type: 'integer' }, { type: 'string' }], 'x-kubernetes-int-or-string': true, maxLength: 255 };
const quantity: Schema = {
  ...intOrString,
  pattern: '^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$',
};

const keyOf = (): Schema =>
  object({ 'key!': string(), name: string({ default: '' }), optional: boolean() }, { 'x-kubernetes-map-type': 'atomic' });

export const envVar = named(
  'EnvVar',
  object({
    'name!': string(),
    value: string({ maxLength: 96 * 1024 }),
    valueFrom: object({
      configMapKeyRef: keyOf(),
      secretKeyRef: keyOf(),
      fieldRef: object({ apiVersion: string(), 'fieldPath!': string() }, { 'x-kubernetes-map-type': 'atomic' }),
      fileKeyRef: object(
        { 'key!': string(), optional: boolean(), 'path!': string(), 'volumeName!': string() },
        { 'x-kubernetes-map-type': 'atomic' },
      ),
      resourceFieldRef: object(
        { containerName: string(), divisor: quantity, 'resource!': string() },
        { 'x-kubernetes-map-type': 'atomic' },
      ),
    }),
  }),
);

export const probe = named(
  'Probe',
  object({
    exec: object({ command: list(string({ maxLength: sizes.command }), { 'x-kubernetes-list-type': 'atomic' }) }),
    failureThreshold: int32(),
    grpc: object({ 'port!': int32(), service: string({ default: '' }) }),
    httpGet: object({
      host: string(),
      httpHeaders: list(object({ 'name!': string(), 'value!': string({ maxLength: sizes.url }) }), { 'x-kubernetes-list-type': 'atomic' }),
      path: string({ maxLength: sizes.url }),
      'port!': intOrString,
      scheme: string(),
    }),
    initialDelaySeconds: int32(),
    periodSeconds: int32(),
    successThreshold: int32(),
    tcpSocket: object({ host: string(), 'port!': intOrString }),
    terminationGracePeriodSeconds: int64(),
    timeoutSeconds: int32(),
  }),
);

export const resources = named(
  'ResourceRequirements',
  object({
    claims: listBy('name', object({ 'name!': string(), request: string() })),
    limits: map(quantity),
    requests: map(quantity),
  }),
);

export const pullSecrets = listBy('name', localReference(), { maxItems: 16 });

export const registry = named('ImageRegistry', object({ 'image!': string({ maxLength: sizes.image }), imagePullSecrets: pullSecrets }));

export const lifecycle = (extra: Schema = {}): Schema =>
  named(
    'Lifecycle',
    object({
      'type!': { ...oneOf('buildpack', 'docker'), ...extra },
      'data!': object({ buildpacks: setOf(string({ maxLength: sizes.buildpack }), { maxItems: 16 }), 'stack!': string() }),
    }),
  );

export const droplet = named(
  'Droplet',
  object({
    'registry!': registry,
    stack: string(),
    ports: list(int32()),
    processTypes: listBy('type', object({ 'type!': string({ maxLength: 63 }), 'command!': string({ maxLength: sizes.command }) })),
    buildpacks: list(object({ 'name!': string(), version: string() }), { description: 'buildpacks that took part, in order' }),
    architecture: string({ description: 'as in GOARCH; decides the nodes the droplet can run on' }),
  }),
);

/** The fields of a status for the lines of a container, by default of one that failed. */
export const keptLines = (mostLast: number, of = 'the failing container') => ({
  logHead: list(string({ maxLength: 500 }), { description: `first lines of ${of}`, maxItems: 10 }),
  logOmitted: int32({ description: 'how many lines lie between logHead and logTail', minimum: 0 }),
  logTail: list(string({ maxLength: 500 }), { description: `last lines of ${of}`, maxItems: mostLast }),
});

const causeCode = string({ maxLength: 64, description: 'the code of the cause (kf why)' });
const logLost = string({ maxLength: 1024, description: 'why there are no lines, although there may have been some' });

export const appRevision = named(
  'AppRevision',
  object(
    {
      'change!': string({ maxLength: 1024, description: 'app-rev and deploy-id of the change that was looked at' }),
      'version!': int32({ description: 'the newest revision' }),
      deployed: int32({ description: 'the revision that served last' }),
      replaced: int32({
        description: 'the revision before it, if this change deployed it: it serves again if it is still there when that one fails',
      }),
      'droplets!': list(string(), { description: 'builds of the revisions that a rollback can return to', maxItems: 11 }),
      lacksSettings: boolean({ description: 'the newest revision was recorded without its variables' }),
    },
    { description: 'the records are in the ConfigMap <name>-revisions' },
  ),
);

const taskFailure = named(
  'TaskFailure',
  object(
    { cause: causeCode, pod: string(), container: string(), exitCode: int32(), ...keptLines(30), logLost },
    { description: 'why the task failed, kept before its pod goes; the sentence for people is in condition Failed' },
  ),
);

const taskOutput = named(
  'TaskOutput',
  object(
    { pod: string(), container: string(), ...keptLines(30, 'the task'), logLost },
    { description: 'what a task that succeeded has printed, kept before its pod goes' },
  ),
);

/** The fields of a status for what is kept of a task that has ended. */
export const taskEnd = { failure: taskFailure, output: taskOutput };

export const buildFailure = named(
  'BuildFailure',
  object(
    {
      lane: oneOf('source', 'registry', 'build'),
      exitCode: int32(),
      'reason!': string(),
      cause: causeCode,
      pod: string(),
      ...keptLines(60),
      logLost,
    },
    { description: 'what ended the build, for machines; the sentence for people is in condition Succeeded' },
  ),
);

export const instancesStatus = map(
  named(
    'InstanceStatus',
    object({
      'state!': oneOf('DOWN', 'CRASHED', 'STARTING', 'RUNNING'),
      timestamp: time(),
      details: string({ maxLength: 1024 }),
      ready: boolean(),
      restarts: int32(),
      exitCode: int32(),
      reason: string(),
      cause: causeCode,
      pod: string(),
      container: string({ description: 'the sidecar that failed, with exitCode; left out: the app' }),
      node: string(),
      generation: string(),
    }),
  ),
  { description: 'keys are instance indexes; the lowest ones when there are many', maxProperties: 128 },
);

export const instanceCounts = named(
  'InstanceCounts',
  object(
    { 'running!': int32(), 'starting!': int32(), 'crashed!': int32(), 'down!': int32() },
    { description: 'all instances by state, those that instancesStatus does not list included' },
  ),
);

/** Services that can be bound to one app. */
export const mostBindings = 200;

/** Of one process; with the length of their commands it decides how much a developer can write (decision 15). */
export const mostSidecars = 4;
export const sidecarCommand = 768;

export const boundService = named('BoundService', object({ 'guid!': string(), 'name!': string(), 'secret!': string() }));

/** A name for people: the name of an org or a space. */
export const tenantName = string({ pattern: '^[[:alnum:][:punct:][:print:]]+$' });

export const brokerCatalog = (features: Schema, featuresRequired: boolean): Schema =>
  object({
    'id!': string(),
    metadata: freeForm(),
    [featuresRequired ? 'features!' : 'features']: features,
  });

export const code = int({ minimum: -1, maximum: 255 });

// The JSON schema of a manifest, for editors. Keys come from the parser; each has its kind of value here, or this file does not compile.

import { defined } from '../src/lib/defined.ts';
import type { appKeys } from '../src/lib/manifest/application.ts';
import type { processKeys } from '../src/lib/manifest/process.ts';

type Schema = Readonly<Record<string, unknown>>;
type ProcessKey = (typeof processKeys)[number];
type AppKey = Exclude<(typeof appKeys)[number], ProcessKey>;

/** A variable in place of a value: `((name))`; push fills it in. */
const variable: Schema = { type: 'string', pattern: String.raw`\(\(.+\)\)` };
const orVariable = (schema: Schema): Schema => ({ anyOf: [schema, variable] });

const text = (description: string, more: Schema = {}): Schema => ({ type: ['string', 'number', 'boolean'], description, ...more });
const choice = (description: string, ...values: string[]): Schema => ({ description, ...orVariable({ enum: values }) });
const boolean = (description: string): Schema => ({
  description,
  ...orVariable({ anyOf: [{ type: 'boolean' }, { type: 'string', pattern: '^[yYnN]$' }] }),
});
const whole = (description: string, minimum: number, maximum?: number): Schema => ({
  description,
  ...orVariable({
    anyOf: [
      { type: 'integer', minimum, ...defined({ maximum }) },
      { type: 'string', pattern: String.raw`^\d+$` },
    ],
  }),
});
const size = (description: string): Schema => ({
  description,
  ...orVariable({ type: 'string', pattern: String.raw`^\s*\d+(\.\d+)?\s*([bB]|[kKmMgGtT][bB]?)\s*$` }),
});
const listOf = (description: string, items: Schema): Schema => ({ description, ...orVariable({ type: 'array', items }) });
const mapOf = (description: string, values: Schema): Schema => ({ description, type: 'object', additionalProperties: values });

/** cf accepts most keys with `-` and with `_`. */
function bothSpellings(properties: Readonly<Record<string, Schema>>): Record<string, Schema> {
  return Object.fromEntries(
    Object.entries(properties).flatMap(([key, schema]): [string, Schema][] =>
      key.includes('-')
        ? [
            [key, schema],
            [key.replaceAll('-', '_'), schema],
          ]
        : [[key, schema]],
    ),
  );
}

const object = (properties: Readonly<Record<string, Schema>>, required: string[], strict = true): Schema => ({
  type: 'object',
  properties: bothSpellings(properties),
  ...(required.length === 0 ? {} : { required }),
  ...(strict ? { additionalProperties: false } : {}),
});

const seconds = (description: string): Schema => whole(`${description}, in seconds`, 1);
const path = (description: string): Schema => ({ description, ...orVariable({ type: 'string', pattern: '^/' }) });

const processProperties: Readonly<Record<ProcessKey, Schema>> = {
  command: text('start command; null: the one that the build finds', { type: ['string', 'number', 'boolean', 'null'], maxLength: 4096 }),
  user: text('user that the process runs as'),
  instances: whole('number of instances', 0, 1000),
  memory: size('memory limit of an instance with its sidecars, e.g. 256M'),
  'disk-quota': size('disk limit of an instance, e.g. 1G'),
  'log-rate-limit-per-second': { description: 'log rate limit, e.g. 16K; 0: none at all, -1: unlimited', type: ['string', 'integer'] },
  timeout: whole('time to start, in seconds', 1, 86_400),
  'health-check-type': choice('how a start is judged', 'http', 'port', 'process', 'none'),
  'health-check-http-endpoint': path('path of an http check'),
  'health-check-interval': seconds('time between two checks'),
  'health-check-invocation-timeout': seconds('time limit of one check'),
  'readiness-health-check-type': choice('how it is judged whether an instance gets requests', 'http', 'port', 'process', 'none'),
  'readiness-health-check-http-endpoint': path('path of an http readiness check'),
  'readiness-health-check-interval': seconds('time between two readiness checks'),
  'readiness-health-check-invocation-timeout': seconds('time limit of one readiness check'),
};

const appProperties: Readonly<Record<AppKey, Schema>> = {
  name: { description: 'name of the app', type: 'string', pattern: String.raw`^([-\w]|\(\(.+\)\))+$` },
  path: text('folder, zip, jar or war to push, relative to the manifest'),
  buildpacks: listOf('buildpacks in their order; none: the build detects them', text('name of a buildpack of the builder')),
  buildpack: text("one buildpack; use 'buildpacks'", { deprecated: true }),
  stack: text('stack to build for'),
  docker: {
    description: 'an image instead of source code',
    ...object({ image: text('name of the image'), username: text('user of its registry; the password is CF_DOCKER_PASSWORD') }, ['image']),
  },
  lifecycle: choice('how the app is built', 'buildpack', 'cnb', 'docker'),
  'cnb-credentials': { description: 'credentials for buildpack images; kf ignores them', type: 'object' },
  env: { description: 'environment variables', type: 'object' },
  services: listOf('service instances to bind', {
    anyOf: [
      text('name of a service instance', { minLength: 1 }),
      object(
        {
          name: text('name of a service instance'),
          'binding-name': text('name of the binding for the app'),
          parameters: { description: 'for service brokers', type: 'object' },
        },
        ['name'],
      ),
    ],
  }),
  routes: listOf(
    'routes of the app',
    object(
      {
        route: text('host.domain/path'),
        protocol: choice('protocol between gateway and app', 'http1', 'http2', 'tcp'),
        options: { description: 'options of the route', type: 'object' },
      },
      ['route'],
      false,
    ),
  ),
  'no-route': boolean('true: the app has no routes'),
  'random-route': boolean('true: a route with random words, if it has none'),
  'default-route': boolean('true: a route with the name of the app, if it has none'),
  metadata: {
    description: 'labels and annotations of the app; null removes one',
    ...object(
      {
        labels: mapOf('labels', { type: ['string', 'number', 'boolean', 'null'] }),
        annotations: mapOf('annotations', { type: ['string', 'number', 'boolean', 'null'] }),
      },
      [],
    ),
  },
  features: mapOf('features of the app', { type: ['boolean', 'string'] }),
  processes: listOf('processes of the app', object({ type: text('process type, e.g. worker'), ...processProperties }, ['type'], false)),
  sidecars: listOf(
    'programs that run beside each instance of their processes',
    object(
      {
        name: text('name of the sidecar'),
        command: text('its command', { maxLength: 768 }),
        'process-types': listOf('the processes that it runs beside', text('process type')),
        memory: size('its part of the memory of the process'),
      },
      ['name', 'command'],
    ),
  ),
};

const schema = {
  $schema: 'http://json-schema.org/draft-07/schema#',
  title: 'Manifest of kf and cf',
  description: 'Apps for kf push and kf apply-manifest. Written by tools/generate.ts.',
  type: 'object',
  properties: {
    version: { description: 'always 1', enum: [1, '1', null] },
    applications: {
      description: 'the apps',
      type: 'array',
      minItems: 1,
      items: object({ ...appProperties, ...processProperties }, [], false),
    },
  },
  required: ['applications'],
};

/** `manifests/manifest.schema.json`. */
export const manifestSchemaFile = (): { file: string; text: string } => ({
  file: 'manifests/manifest.schema.json',
  text: `${JSON.stringify(schema, null, 2)}\n`,
});

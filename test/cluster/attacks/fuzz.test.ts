// Attacker: a developer who writes objects of all kinds with values that their schemas allow and that nobody meant. KF_FUZZ_SEED repeats a run,
// KF_FUZZ_ROUNDS makes it longer.

import { readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { chance } from '../../chaos/seed.ts';
import { controllerLine, readControllerReport } from '../../support/controller-report.ts';
import { reportTime } from '../../support/figures.ts';
import { get } from '../../support/http.ts';
import { Kf, ringEnv } from '../../support/kf.ts';
import { TestWorld, type Member } from '../../support/members.ts';
import type { Place } from '../../support/developer.ts';

/** The parts of an OpenAPI schema that the CRDs use. */
interface Schema {
  type?: 'object' | 'array' | 'string' | 'integer' | 'number' | 'boolean';
  properties?: Record<string, Schema>;
  additionalProperties?: Schema;
  items?: Schema;
  required?: string[];
  enum?: unknown[];
  anyOf?: Schema[];
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  maxItems?: number;
}

const writable = ['cfapps', 'cfprocesses', 'cfpackages', 'cfbuilds', 'cfroutes', 'cftasks', 'cfserviceinstances', 'cfservicebindings'];
const kinds = [...writable, 'cfnetworkpolicies'];
const seed = Number(process.env['KF_FUZZ_SEED'] ?? Date.now() % 1_000_000);
const rounds = Number(process.env['KF_FUZZ_ROUNDS'] ?? '4');
const perRound = 60;
const random = chance(seed);
const pick = <T>(of: readonly T[]): T => of[Math.floor(random() * of.length)] as T;
const sample = `${ringEnv('KF_CLUSTER_NODE_REGISTRY')}/kf/sample:1`;
const bystander = 'fuzz-bystander';

const names = Array.from({ length: 12 }, (_, index) => `fuzz-${index}`);
const words = [
  ...names,
  ...['', ' ', '.', '..', '../../kf-system', 'kf-system', 'cf', 'web', '*', '-', '--', '0', 'null', 'true', '__proto__', 'constructor'],
  ...[
    '\u001b]0;x\u0007',
    'a\u0000b',
    '\r\n',
    '%00%2e',
    '${HOME}',
    '$(reboot)',
    '`id`',
    "';--",
    '{{.}}',
    '\u202e',
    '\u{1F600}',
    'x'.repeat(300),
  ],
  ...[
    'http://169.254.169.254/',
    'localhost:1/x',
    '10.96.0.1',
    `${sample}`,
    'RUNNING',
    'STARTED',
    'STOPPED',
    'docker',
    'bits',
    'app',
    'key',
    'port',
  ],
];

function numberFor({ minimum = -5, maximum = 1e6 }: Schema): number {
  return pick([minimum, maximum, minimum + 1, 0, 1, 8080].filter((value) => value >= minimum && value <= maximum));
}

function valueFor(schema: Schema, depth = 0): unknown {
  if (schema.enum !== undefined) return pick(schema.enum);
  if (schema.anyOf !== undefined && schema.type === undefined && schema.properties === undefined) return pick([0, 8080, 'http', '50%']);
  switch (schema.type) {
    case 'string':
      return pick(words)
        .slice(0, schema.maxLength)
        .padEnd(schema.minLength ?? 0, 'x');
    case 'integer':
    case 'number':
      return numberFor(schema);
    case 'boolean':
      return random() < 0.5;
    case 'array':
      return Array.from({ length: Math.min(schema.maxItems ?? 3, Math.floor(random() * 4)) }, () =>
        valueFor(schema.items ?? {}, depth + 1),
      );
    default:
      return objectFor(schema, depth);
  }
}

function objectFor({ properties = {}, required = [], additionalProperties }: Schema, depth: number): object {
  const own = Object.entries(properties).filter(([key]) => required.includes(key) || random() < (depth > 4 ? 0.2 : 0.6));
  const free = additionalProperties === undefined ? [] : [pick(words), pick(words)].map((key) => [key, additionalProperties] as const);
  return Object.fromEntries([...free, ...own].map(([key, schema]) => [key, valueFor(schema, depth + 1)]));
}

interface Definition {
  spec: { names: { kind: string }; versions: { schema: { openAPIV3Schema: Schema } }[] };
}

const definitions = new Map(
  kinds.map((plural) => {
    const file = path.resolve('manifests/crds', `${plural}.yaml`);
    const { spec } = parse(readFileSync(file, 'utf8')) as Definition;
    return [plural, { kind: spec.names.kind, schema: spec.versions[0]?.schema.openAPIV3Schema.properties?.['spec'] ?? {} }];
  }),
);

function objectOf(plural: string, namespace: string): object {
  const { kind = '', schema = {} } = definitions.get(plural) ?? {};
  const metadata = {
    name: pick(names),
    namespace,
    labels: { [`korifi.cloudfoundry.org/${pick(['app-guid', 'guid', 'process-type', 'space-guid'])}`]: pick(names) },
    annotations: { [`kf.cloudfoundry.org/${pick(['push-id', 'deploy-id', 'package', 'strategy', 'held', 'unstaged'])}`]: pick(words) },
  };
  return { apiVersion: 'korifi.cloudfoundry.org/v1alpha1', kind, metadata, spec: valueFor(schema) };
}

const world = new TestWorld();
let place: Place;
let attacker: Member;
let kf: Kf;

beforeAll(async () => {
  console.log(`KF_FUZZ_SEED=${seed}`);
  kf = await Kf.create();
  place = await world.space();
  attacker = await world.member('spaceDeveloper', place);
  await kf.ok('push', bystander, '-o', sample, '-m', '64M');
});
afterAll(async () => {
  await kf.run(['delete', bystander, '-r', '-f']);
  await kf.remove();
  await world.remove();
});

/** Creates or changes some objects, then deletes a few; returns how many were accepted. */
async function round(): Promise<number> {
  const objects = Array.from({ length: perRound }, () => objectOf(pick(kinds), place.space));
  const said = await attacker.kubectl(['apply', '--server-side', '--force-conflicts', '--validate=ignore', '-f', '-'], objects);
  const gone = Array.from({ length: 5 }, () => [pick(kinds), pick(names)].join('/'));
  await attacker.kubectl(['delete', '-n', place.space, '--ignore-not-found', '--wait=false', ...gone]);
  return said.stdout.split('\n').filter((line) => line.endsWith('serverside-applied')).length;
}

test('the controller goes on working for others, whatever a developer writes into objects of all kinds', async () => {
  const before = await readControllerReport(ringEnv('KF_TEST_KUBECONFIG'));
  let accepted = 0;
  for (let done = 0; done < rounds; done += 1) {
    accepted += await round();
    const started = Date.now();
    await kf.ok('restart', bystander);
    reportTime('restart of another app beside odd objects', Date.now() - started);
  }
  const after = await readControllerReport(ringEnv('KF_TEST_KUBECONFIG'));
  console.log(`measured: ${accepted} odd objects of ${rounds * perRound} were accepted; ${after.map(controllerLine).join(', ')}`);
  expect(accepted).toBeGreaterThan(rounds * 5);
  expect(after.map(({ pod, restarts }) => [pod, restarts])).toEqual(before.map(({ pod, restarts }) => [pod, restarts]));
  expect((await get(`${bystander}.apps.localhost`)).status).toBe(200);
});

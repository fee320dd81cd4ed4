// `kill -9` at each write of a command: the same command then ends well, and leaves what one leaves that nothing disturbed. The killed command is a process;
// to run it again in this one costs a quarter of the time.

import { randomBytes } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import pLimit from 'p-limit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { annotations, kinds } from '../../../src/lib/api/group.ts';
import type { KubeObject, Stored } from '../../../src/lib/api/object.ts';
import { bundleForTests } from '../../support/cli.ts';
import { runHere, type RanHere } from '../../support/in-process.ts';
import { killedRun, writesOf, type Death } from '../../support/killed-run.ts';
import { builtWeb, ns, PushScene } from '../../support/push-scene.ts';
import { serveRegistry } from '../../support/registry-proxy.ts';
import { ScriptedRegistry } from '../../support/registry.ts';

const bundle = bundleForTests();
/** So many at a time: some wait for ten seconds, until the lock of the killed one counts as left behind. */
const atOnce = 10;
/** How long a repeated command may take. */
const mostMs = 90_000;
/** How long a test may take on a busy machine: a push is killed some 25 times. */
const longMs = 300_000;

const source = { path: 'app', memory: '64M', env: { COLOUR: 'red' }, services: ['db'] };
const changes = { env: { COLOUR: 'blue', SIZE: '1' }, services: ['db', 'cache'] };
const routes = [{ route: 'shop.apps.localhost' }, { route: 'other.apps.localhost' }];
const image = { memory: '64M', env: source.env, services: ['db'], docker: { image: 'registry.example.com/shop:1' } };
const manifests: Record<string, object> = {
  source,
  changed: { ...changes, path: 'changed', memory: '96M', instances: 2, routes },
  image,
  'image-changed': { ...image, ...changes },
};

/** The first source is larger than what is uploaded with one request, the other one smaller. */
const files: [folder: string, file: string, content: string | Buffer][] = [
  ['app', 'data', randomBytes(600 * 1024)],
  ['changed', 'server.js', 'second'],
];

/** What a command leaves in the registry. */
interface Uploads {
  /** How often each blob of a repository was completed. */
  completed: Record<string, number>;
  /** Sent bytes of blobs. */
  bytes: number;
}

/** An installation with its registry, and a user with source code. */
class Stage {
  readonly scene: PushScene;
  readonly #registry: ScriptedRegistry;

  private constructor(scene: PushScene, registry: ScriptedRegistry) {
    this.scene = scene;
    this.#registry = registry;
    serveRegistry(scene.cluster.server, registry);
    const { memory } = scene.cluster;
    const { intercept } = memory;
    memory.intercept = (verb, type, name) => {
      if (type.plural === kinds.process.plural && (verb === 'create' || verb === 'patch')) setTimeout(() => this.#runInstances(name), 5);
      return intercept(verb, type, name);
    };
    const { home } = scene.cli;
    for (const [folder, file, content] of files) {
      mkdirSync(path.join(home, folder), { recursive: true });
      writeFileSync(path.join(home, folder, file), content);
    }
    for (const [name, app] of Object.entries(manifests))
      writeFileSync(path.join(home, `${name}.yml`), JSON.stringify({ applications: [{ name: 'shop', ...app }] }));
  }

  /** @param from has the objects; left out: a new installation */
  static async set(from?: Stage): Promise<Stage> {
    const [scene, registry] = await Promise.all([PushScene.start(bundle.program), ScriptedRegistry.start()]);
    if (from !== undefined) scene.cluster.memory.becomes(from.scene.cluster.memory);
    scene.droplet = from?.scene.droplet;
    return new Stage(scene, registry);
  }

  async strike(): Promise<void> {
    await this.scene.stop();
    await this.#registry.stop();
  }

  /** Runs a command in this process. A manifest is a file of the user's home. */
  run(argv: readonly string[]): Promise<RanHere> {
    const { home, env } = this.scene.cli;
    const words = argv.map((word) => (word.endsWith('.yml') ? path.join(home, word) : word));
    return runHere(words, { HOME: home, CF_HOME: home, ...env }, mostMs);
  }

  /** @throws when the command fails */
  async ok(...argv: string[]): Promise<void> {
    const { code, stdout, stderr } = await this.run(argv);
    if (code !== 0) throw new Error(`${argv.join(' ')}: ${stdout}${stderr}`);
  }

  /** As the controller does: all wanted instances run. */
  #runInstances(name: string): void {
    const process = this.scene.cluster.memory.peek(kinds.process, ns, name);
    if (process === undefined || process.status?.observedGeneration === process.metadata.generation) return;
    const instanceCounts = { running: process.spec.desiredInstances, starting: 0, crashed: 0, down: 0 };
    this.scene.setStatus(kinds.process, name, { observedGeneration: process.metadata.generation, instanceCounts });
  }

  /** Every object, without times, status and versions; in place of the GUID of another object its kind, and `nothing` if there is no such object. */
  objects(): KubeObject[] {
    const all = this.scene.cluster.memory.everything();
    const known = new Map(all.flatMap(({ type, object: { metadata } }) => [[metadata.name, type.kind], [metadata.uid, `this ${type.kind}`]])); // prettier-ignore
    const texts = all.map(({ object }) => comparable(object, (guid) => known.get(guid) ?? 'nothing'));
    return texts.toSorted().map((text) => JSON.parse(text) as KubeObject);
  }

  uploads(): Uploads {
    const blobs = this.#registry.requests.filter(({ path: url }) => url.includes('/blobs/uploads/'));
    const completed: Record<string, number> = {};
    for (const { method, path: url } of blobs) {
      const digest = method === 'PUT' ? new URL(url, 'http://registry').searchParams.get('digest') : null;
      if (digest !== null) completed[digest] = (completed[digest] ?? 0) + 1;
    }
    return { completed, bytes: blobs.reduce((sum, { bytes }) => sum + bytes, 0) };
  }
}

function comparable({ kind, metadata, ...rest }: Stored, nameOf: (guid: string) => string): string {
  const { resourceVersion: _version, uid: _uid, generation: _generation, creationTimestamp: _created, ...kept } = metadata;
  const marks = { ...kept.annotations };
  // It has a version of the Secret.
  if (marks[annotations.instanceVersion] !== undefined) marks[annotations.instanceVersion] = 'a version';
  return JSON.stringify({ kind, ...rest, metadata: { ...kept, annotations: marks }, status: undefined })
    .replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, nameOf)
    .replaceAll(/sha256:[0-9a-f]{64}/g, 'a digest')
    .replaceAll(/\d{4}(-\d\d){2}T\d\d([:-]\d\d){2}(\.\d+)?Z?/g, 'a time');
}

/** In the first nothing was pushed; in the others an app of source code runs, and one of an image. */
let empty: Stage;
let running: Stage;
let ofImage: Stage;

beforeAll(async () => {
  empty = await Stage.set();
  empty.scene.droplet = { ...builtWeb, registry: { image: 'registry.example.com/shop@sha256:1' } };
  for (const name of ['db', 'cache']) await empty.ok('create-user-provided-service', name, '-p', '{"password":"s3cret"}');
  [running, ofImage] = await Promise.all([Stage.set(empty), Stage.set(empty)]);
  await running.ok('push', '-f', 'source.yml');
  await running.ok('create-route', 'apps.localhost', '-n', 'spare');
  await ofImage.ok('push', '-f', 'image.yml');
});

afterAll(async () => {
  for (const stage of [empty, running, ofImage]) await stage.strike();
  bundle.remove();
});

interface Left {
  objects: KubeObject[];
  uploads: Uploads;
}

const leftIn = (stage: Stage): Left => ({ objects: stage.objects(), uploads: stage.uploads() });

/** Kills a command, and runs it again. */
async function repeated(from: Stage, argv: string[], death: Death): Promise<Left> {
  const stage = await Stage.set(from);
  try {
    const { cli, cluster } = stage.scene;
    await killedRun({ cli, server: cluster.server }, argv, death);
    await stage.ok(...argv);
    return leftIn(stage);
  } finally {
    await stage.strike();
  }
}

/**
 * A write that is not done leaves the same as the one before that is done, with two exceptions: what is sent together with it takes effect, and a push keeps
 * on the disk how far it has come with an upload.
 */
const isWorthOmitting = (write: string, together: ReadonlySet<string>): boolean => together.has(write) || /^P(ATCH|UT) blobs$/.test(write);

/** Kills the command at each of its writes. @returns what a command leaves that is not killed, and what each of the others left */
async function killedAtEach(
  from: Stage,
  argv: string[],
): Promise<{ writes: string[]; undisturbed: Left; runs: [when: string, left: Left][] }> {
  const stage = await Stage.set(from);
  const { all: writes, together } = await writesOf(stage.scene.cluster.server, () => stage.ok(...argv));
  const undisturbed = leftIn(stage);
  await stage.strike();
  const done = writes.map((write) => ({ write, isDone: true }));
  const omitted = writes.filter((write) => isWorthOmitting(write, together)).map((write) => ({ write, isDone: false }));
  const runs = await pLimit(atOnce).map([...done, ...omitted], async (death): Promise<[string, Left]> => {
    const when = `killed at ${death.write}, which was ${death.isDone ? '' : 'not '}done`;
    return [when, await repeated(from, argv, death)];
  });
  return { writes, undisturbed, runs };
}

const upload = ['POST blobs', 'PUT blobs', 'POST blobs 2', 'PUT blobs 2', 'PUT manifests', 'POST cfpackages'];
const build = ['POST cfbuilds', 'POST secrets'];
const firstPush = [
  ...['POST cfapps', ...upload, 'PATCH blobs', 'POST cfservicebindings', ...build],
  ...['PATCH cfapps', 'POST cfprocesses', 'POST secrets 2', 'POST cfroutes', 'PATCH cfapps 2'],
];
const secondPush = [
  ...['PATCH cfapps', ...upload, 'POST cfservicebindings', ...build],
  ...['PATCH cfapps 2', 'PATCH cfprocesses', 'PATCH cfprocesses 2', 'PATCH secrets', 'POST cfroutes', 'PATCH cfapps 3'],
];

it.each<[command: string, from: () => Stage, writes: string[]]>([
  ['push -f source.yml', () => empty, firstPush],
  ['push -f changed.yml', () => running, secondPush],
  ['bind-service shop cache --binding-name store', () => running, ['POST cfservicebindings']],
  ['unbind-service shop db', () => running, ['PATCH cfservicebindings', 'DELETE cfservicebindings']],
  ['scale shop -i 3', () => running, ['PATCH cfprocesses']],
  ['scale shop -i 3 -m 128M -f', () => running, ['PATCH cfprocesses', 'PATCH cfprocesses 2', 'PATCH cfapps']],
  ['map-route shop apps.localhost -n other', () => running, ['POST cfroutes']],
  ['map-route shop apps.localhost -n spare', () => running, ['PATCH cfroutes']],
  ['delete shop -r -f', () => running, ['PATCH cfapps', 'DELETE cfroutes', 'DELETE cfapps']],
  ['delete-service db -f', () => running, ['PATCH cfservicebindings', 'DELETE cfservicebindings', 'DELETE cfserviceinstances']],
  ['create-user-provided-service queue -p {"url":"x"}', () => empty, ['POST cfserviceinstances', 'POST secrets']],
])(
  'killed at any of its writes and repeated, leaves no more and no less than undisturbed: %s',
  async (command, from, writes) => {
    const ended = await killedAtEach(from(), command.split(' '));
    expect(ended.writes).toEqual(expect.arrayContaining(writes));
    expect(Object.values(ended.undisturbed.uploads.completed).filter((count) => count !== 1)).toEqual([]);
    for (const [when, left] of ended.runs) expect(left, when).toEqual(ended.undisturbed);
  },
  longMs,
);

function without(object: KubeObject, annotation: string): KubeObject {
  const { [annotation]: _, ...kept } = object.metadata.annotations ?? {};
  return { ...object, metadata: { ...object.metadata, annotations: kept } };
}

it(
  'killed at any of its writes and repeated, a push of an image gives the app all its settings, and at most one package and build more',
  async () => {
    const { writes, undisturbed, runs } = await killedAtEach(ofImage, ['push', '-f', 'image-changed.yml']);
    expect(writes).toEqual(expect.arrayContaining(['POST cfpackages', 'POST cfbuilds', 'PATCH secrets', 'POST cfservicebindings']));
    expect(runs.map(([when]) => when)).toContain('killed at PATCH secrets, which was not done');
    // Each push resolves the tag again. What a killed one leaves of that belongs to the app, and counts for the retention of the controller
    // (builds/retention.ts); the app says that another package than the newest is in use.
    const isOfTag = ({ kind }: KubeObject): boolean => kind === 'CFPackage' || kind === 'CFBuild';
    const others = ({ objects }: Left) =>
      objects.filter((object) => !isOfTag(object)).map((object) => without(object, annotations.package));
    for (const [when, left] of runs) {
      expect(others(left), when).toEqual(others(undisturbed));
      const ofTag = left.objects.filter(isOfTag);
      expect(
        ofTag.map(({ metadata }) => metadata.ownerReferences?.[0]?.uid).filter((uid) => uid !== 'this CFApp'),
        when,
      ).toEqual([]);
      for (const kind of ['CFPackage', 'CFBuild'])
        expect(ofTag.filter((object) => object.kind === kind).length, when).toBeLessThanOrEqual(2);
    }
  },
  longMs,
);

it('a deleted app leaves no object of its own', async () => {
  const stage = await Stage.set(running);
  await stage.ok('delete', 'shop', '-r', '-f');
  await stage.ok('delete-route', 'apps.localhost', '-n', 'spare', '-f');
  expect(stage.objects()).toEqual(empty.objects());
  await stage.strike();
});

// The contract's objects, org to route, written by hand and applied by kubectl, without kf's CLI.

import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { parseAllDocuments } from 'yaml';
import { afterAll, describe, expect, test } from 'vitest';
import { findCondition } from '../../src/lib/api/conditions.ts';
import { indexLabels } from '../../src/lib/api/labels.ts';
import type { Condition, KubeObject } from '../../src/lib/api/object.ts';
import { feed } from '../support/feed.ts';
import { get } from '../support/http.ts';
import { kubectl, kubectlJson, ringEnv } from '../support/kf.ts';
import { until } from '../support/until.ts';

const execute = promisify(execFile);
const folder = path.resolve('test/fixtures/contract');
const space = '22222222-2222-4222-8222-222222222222';
const org = '33333333-3333-4333-8333-333333333333';

interface Live extends KubeObject {
  status?: { conditions?: Condition[] };
}

async function textOf(file: string): Promise<string> {
  return (await readFile(path.join(folder, file), 'utf8')).replaceAll('$REGISTRY', ringEnv('KF_CLUSTER_NODE_REGISTRY'));
}

/** Applies one file and returns kubectl's line for each object. */
async function apply(file: string): Promise<string> {
  const child = execute('kubectl', ['apply', '-f', '-'], { env: { ...process.env, KUBECONFIG: ringEnv('KF_TEST_KUBECONFIG') } });
  feed(child.child, await textOf(file));
  return (await child).stdout;
}

async function readLive({ kind = '', metadata }: KubeObject): Promise<Live> {
  return kubectlJson<Live>('get', kind, metadata.name ?? '', '-n', metadata.namespace ?? '');
}

async function objectsOf(file: string): Promise<KubeObject[]> {
  return parseAllDocuments(await textOf(file)).map((document) => document.toJS() as KubeObject);
}

async function isReady(object: KubeObject): Promise<boolean> {
  const live = await readLive(object);
  const ready = findCondition(live, 'Ready');
  return ready?.status === 'True' && ready.observedGeneration === live.metadata.generation;
}

async function applyAndWait(file: string): Promise<void> {
  await apply(file);
  for (const object of await objectsOf(file)) {
    if (object.kind !== 'Secret') await until(`${object.kind ?? ''} ${object.metadata.name ?? ''} to be Ready`, () => isReady(object));
  }
}

const envOf = async (): Promise<Record<string, string>> =>
  JSON.parse((await get('by-hand.apps.localhost', '/env')).body) as Record<string, string>;

const instances = async (): Promise<number> => {
  const pods = await kubectlJson<{ items: { status: { conditions?: { type: string; status: string }[] } }[] }>(
    'get',
    'pods',
    '-n',
    space,
    '-l',
    'korifi.cloudfoundry.org/process-type=web',
  );
  return pods.items.filter((pod) => pod.status.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True')).length;
};

afterAll(async () => {
  await kubectl('delete', 'cforg', org, '-n', 'cf', '--ignore-not-found', '--wait', '--timeout=120s');
});

describe('objects written by hand', () => {
  test('become an app that answers through the gateway with its own environment, although only specs were written', async () => {
    for (const file of ['1-org.yaml', '2-space.yaml', '3-app.yaml', '4-route.yaml']) await applyAndWait(file);
    await until('the app to answer', async () => (await get('by-hand.apps.localhost')).status === 200);
    const env = await envOf();
    expect(env['WRITTEN_BY']).toBe('hand');
    expect(JSON.parse(env['VCAP_APPLICATION'] ?? '{}')).toMatchObject({
      application_name: 'by-hand',
      space_name: 'workshop',
      organization_name: 'by-hand',
    });
  });

  test('have the index labels and owners of the contract', async () => {
    for (const file of await readdir(folder)) {
      if (file.startsWith('5')) continue;
      for (const wanted of await objectsOf(file)) {
        const live = await readLive(wanted);
        if (live.kind === 'Secret') continue;
        expect(live.metadata.labels, live.kind).toMatchObject(indexLabels(live));
        expect(live.metadata.labels?.['korifi.cloudfoundry.org/guid'], live.kind).toBe(wanted.metadata.name);
        if (['CFPackage', 'CFBuild'].includes(live.kind ?? ''))
          expect(live.metadata.ownerReferences?.[0]).toMatchObject({ kind: 'CFApp', controller: true });
      }
    }
    const route = await kubectlJson<Live & { status: { uri: string } }>(
      'get',
      'cfroute',
      '-n',
      space,
      '77777777-7777-4777-8777-777777777777',
    );
    expect(route.status.uri).toBe('by-hand.apps.localhost');
    expect(route.metadata.annotations?.['korifi.cloudfoundry.org/app-guids']).toBe('11111111-1111-4111-8111-111111111111');
  });

  test('get a label back that somebody removed', async () => {
    const app = ['cfapp', '-n', space, '11111111-1111-4111-8111-111111111111'];
    await kubectl('label', ...app, 'korifi.cloudfoundry.org/display-name-', 'korifi.cloudfoundry.org/guid-');
    await until('the labels', async () => {
      const { labels = {} } = (await kubectlJson<Live>('get', ...app)).metadata;
      return labels['korifi.cloudfoundry.org/guid'] !== undefined && labels['korifi.cloudfoundry.org/display-name'] !== undefined;
    });
  });

  test('change nothing when they are applied again: no object, no pod', async () => {
    const files = ['1-org.yaml', '2-space.yaml', '3-app.yaml', '4-route.yaml'];
    const objects = (await Promise.all(files.map(objectsOf))).flat();
    // The status of an object may still change, but not its spec.
    const declared = async (object: KubeObject): Promise<unknown> => {
      const { kind, metadata, ...content } = await readLive(object);
      const { name, uid, generation, labels, annotations, ownerReferences, finalizers } = metadata;
      return { kind, name, uid, generation, labels, annotations, ownerReferences, finalizers, ...content, status: undefined };
    };
    const snapshot = async (): Promise<unknown[]> => [
      ...(await Promise.all(objects.map(declared))),
      await kubectl('get', 'pods', '-n', space, '-o', 'name'),
    ];
    const before = await snapshot();
    for (const file of files) {
      const said = (await apply(file)).trim().split('\n');
      expect(said.filter((line) => !line.endsWith(' unchanged'))).toEqual([]);
    }
    expect(await snapshot()).toEqual(before);
  });

  test('set instances and memory if a process is among them', async () => {
    await applyAndWait('5-process.yaml');
    await until('two instances', async () => (await instances()) === 2);
    await until('their memory', async () => /^128m$/i.test((await envOf())['MEMORY_LIMIT'] ?? ''));
    expect((await apply('5-process.yaml')).trim()).toMatch(/ unchanged$/);
  });

  test('are deleted with all that belongs to them when the app is deleted', async () => {
    await kubectl('delete', 'cfapp', '-n', space, '11111111-1111-4111-8111-111111111111');
    await until(
      'pods and sets to go',
      async () => (await kubectl('get', 'pods,statefulsets,cfbuilds,cfpackages,cfprocesses', '-n', space, '-o', 'name')).trim() === '',
    );
    await until('its route to lead nowhere', async () => (await get('by-hand.apps.localhost')).status === 404);
  });
});

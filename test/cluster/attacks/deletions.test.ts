// Somebody deletes everything of an app that they can name, one object after the other, while users ask it: no request fails, or the deletion is
// refused by a sentence. Tried as a developer, and as somebody who was given Kubernetes' own role `edit` in the space beside it.

import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { probe } from '../../chaos/probe.ts';
import { get } from '../../support/http.ts';
import { kubectl, kubectlJson, ringEnv } from '../../support/kf.ts';
import { applyAsAdmin, TestWorld, type Member } from '../../support/members.ts';
import { until } from '../../support/until.ts';

const sample = `${ringEnv('KF_CLUSTER_NODE_REGISTRY')}/kf/sample:1`;
const app = `kept-${randomUUID().slice(0, 6)}`;
const host = `${app}.apps.localhost`;
const world = new TestWorld();
let developer: Member;
let space: string;
let guid: string;

interface Item {
  metadata: {
    name: string;
    uid: string;
    labels?: Record<string, string>;
    deletionTimestamp?: string;
    ownerReferences?: { apiVersion: string; uid: string }[];
  };
}

interface Process {
  status?: { instancesStatus?: Record<string, { ready: boolean }> };
}

/** What is the app itself, or a route of it, is deleted to have it gone; Events tell of what was. */
const meant = new Set(['cfapps.korifi.cloudfoundry.org', 'cfroutes.korifi.cloudfoundry.org', 'events', 'events.events.k8s.io']);

async function kindsThere(): Promise<string[]> {
  const names = await kubectl('api-resources', '--namespaced', '--verbs=delete,list', '-o', 'name');
  return names.split('\n').filter((name) => name !== '' && !meant.has(name));
}

/** Objects of a kind in the app's space, pods of nothing but the app. */
async function objectsOf(kind: string): Promise<string[]> {
  const { items } = await kubectlJson<{ items: Item[] }>('get', kind, '-n', space);
  return items.filter(({ metadata }) => metadata.deletionTimestamp === undefined).map(({ metadata }) => metadata.name);
}

async function untilBothServe(): Promise<void> {
  await until(
    'two ready instances',
    async () => {
      const own = `korifi.cloudfoundry.org/app-guid=${guid}`;
      const { items } = await kubectlJson<{ items: Process[] }>('get', 'cfprocess', '-n', space, '-l', own);
      const instances = Object.values(items[0]?.status?.instancesStatus ?? {});
      const pods = await kubectlJson<{ items: Item[] }>('get', 'pods', '-n', space, '-l', own);
      const isEnding = pods.items.some(({ metadata }) => metadata.deletionTimestamp !== undefined);
      return instances.filter(({ ready }) => ready).length === 2 && !isEnding;
    },
    60_000,
  );
}

type Delete = (kind: string, name: string) => Promise<{ code: number; stderr: string }>;

/** Deletes all there is, one after the other; gives the kinds of which something went, and every refusal. */
async function deleteEverything(remove: Delete): Promise<{ gone: Set<string>; refusals: string[] }> {
  const [gone, refusals] = [new Set<string>(), [] as string[]];
  for (const kind of await kindsThere()) {
    for (const name of await objectsOf(kind)) {
      const { code, stderr } = await remove(kind, name);
      if (code !== 0) refusals.push(stderr.trim());
      else {
        gone.add(kind.split('.')[0] ?? '');
        await untilBothServe();
      }
    }
  }
  return { gone, refusals };
}

/** kubectl as a user of that name, who has what RoleBindings give them. */
const asUser =
  (name: string): Delete =>
  (kind, object) =>
    new Promise((resolve) => {
      const args = [
        'delete',
        kind,
        object,
        '-n',
        space,
        '--wait=false',
        '--ignore-not-found',
        `--as=${name}`,
        '--as-group=system:authenticated',
      ];
      const env = { ...process.env, KUBECONFIG: ringEnv('KF_TEST_KUBECONFIG') };
      execFile('kubectl', args, { env }, (error, _stdout, stderr) => resolve({ code: error === null ? 0 : 1, stderr }));
    });

beforeAll(async () => {
  const place = await world.space();
  space = place.space;
  developer = await world.member('spaceDeveloper', place);
  const { kf } = developer;
  await kf.ok('push', app, '-o', sample, '-m', '64M', '-i', '2');
  await kf.ok('create-user-provided-service', 'kept-db', '-p', '{"uri":"postgres://db.example.com/x"}');
  await kf.ok('bind-service', app, 'kept-db');
  await kf.ok('set-env', app, 'COLOUR', 'green');
  await kf.ok('restart', app);
  guid = (await kf.ok('app', app, '--guid')).stdout.trim();
  await untilBothServe();
});
afterAll(() => world.remove());

const envOf = async (): Promise<Record<string, string>> => JSON.parse((await get(host, '/env')).body) as Record<string, string>;

/** Everything that is deleted, while somebody asks: returns what went. */
async function underLoad(remove: Delete): Promise<{ gone: Set<string>; refusals: string[] }> {
  const user = probe(host);
  const done = await deleteEverything(remove);
  const { asked, failures } = await user.end();
  expect(failures).toEqual([]);
  expect(asked).toBeGreaterThan(100);
  return done;
}

describe('under load, no request fails', () => {
  test('for all that a developer may delete', async () => {
    const { gone, refusals } = await underLoad((kind, name) =>
      developer.kubectl(['delete', kind, name, '-n', space, '--wait=false', '--ignore-not-found']),
    );
    expect([...gone].toSorted()).toEqual(['cfbuilds', 'cfpackages', 'cfservicebindings', 'cfserviceinstances', 'pods']);
    expect(refusals.filter((text) => !text.includes('is forbidden: User'))).toEqual([]);
    expect(refusals.filter((text) => /appworkloads|statefulsets|secrets|httproutes/.test(text))).not.toEqual([]);
  });

  test('for all that somebody with the role edit may delete beside it', async () => {
    const subject = { apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'editor' };
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'edit' };
    const apiVersion = 'rbac.authorization.k8s.io/v1';
    await applyAsAdmin({ apiVersion, kind: 'RoleBinding', metadata: { name: 'editor', namespace: space }, roleRef, subjects: [subject] });
    const { refusals } = await underLoad(asUser('editor'));
    const told = refusals.filter((text) => text.includes('belongs to an app of kf and goes with it, never by itself'));
    for (const kind of ['StatefulSet', 'Secret', 'Service', 'PodDisruptionBudget'])
      expect(told.some((text) => text.includes(`: ${kind} '`))).toBe(true);
    expect(told.every((text) => text.includes("'kf restart', 'kf stop', 'kf delete'"))).toBe(true);
  });

  test('and the app can be restarted after all of it, or says what it takes', async () => {
    const ran = await developer.kf.run(['restart', app]);
    expect([ran.code, ran.stderr]).toEqual([1, expect.stringMatching(/droplet was deleted.*'kf push'/s)]);
    expect((await get(host)).status).toBe(200);
    await developer.kf.ok('push', app, '-o', sample, '-m', '64M', '-i', '2');
    await untilBothServe();
  });
});

describe('what an admin deletes in spite of it', () => {
  test('an AppWorkload comes back whole, and the app does not claim to serve meanwhile', async () => {
    const workloads = await kubectlJson<{ items: (Item & { spec: { instances: number } })[] }>('get', 'appworkloads', '-n', space);
    const workload = workloads.items.find(({ spec }) => spec.instances === 2)?.metadata.name;
    const phases = new Set<string>();
    await kubectl('delete', 'appworkload', workload ?? '', '-n', space, '--wait=false');
    await until(
      'the app to say that it does not serve, and to serve again',
      async () => {
        const said = await kubectl('get', 'cfapp', guid, '-n', space, '-o', 'jsonpath={.status.deployment.phase}');
        phases.add(said);
        return phases.size > 1 && said === 'Serving' && (await get(host)).status === 200;
      },
      60_000,
    );
    await untilBothServe();
    expect((await envOf())['COLOUR']).toBe('green');
    const { metadata } = await kubectlJson<Item>('get', 'appworkload', workload ?? '', '-n', space);
    const frozen = await kubectlJson<Item>('get', 'secret', `${workload ?? ''}-env`, '-n', space);
    expect(frozen.metadata.ownerReferences?.map(({ uid }) => uid)).toEqual([metadata.uid]);
  });

  test('VCAP_SERVICES, a Service, the HTTPRoute, the set and its budget come back by themselves', async () => {
    const own = `korifi.cloudfoundry.org/app-guid=${guid}`;
    const gone: [string, string][] = [['secret', `${guid}-vcap-services`]];
    for (const kind of ['service', 'statefulset', 'poddisruptionbudget']) {
      const { items } = await kubectlJson<{ items: Item[] }>('get', kind, '-n', space, '-l', own);
      gone.push(...items.map(({ metadata }): [string, string] => [kind, metadata.name]));
    }
    expect(gone.length).toBeGreaterThanOrEqual(4);
    for (const [kind, name] of gone) {
      const { metadata } = await kubectlJson<Item>('get', kind, name, '-n', space);
      await kubectl('delete', kind, name, '-n', space, '--wait=false');
      await until(`${kind} ${name} to come back`, async () => {
        const again = await kubectlJson<Item>('get', kind, name, '-n', space);
        return again.metadata.uid !== metadata.uid && again.metadata.deletionTimestamp === undefined;
      });
    }
    await untilBothServe();
    await until('the app to answer', async () => (await get(host)).status === 200);
  });
});

// A user deletes all objects of an app, one after the other, while others send requests to it: no request fails, or the deletion is refused with a
// sentence. Tried as a developer, and as a user with Kubernetes' own role `edit` in the space.

import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { probe } from '../../chaos/probe.ts';
import { get } from '../../support/http.ts';
import { kubectl, kubectlJson, ringEnv } from '../../support/kf.ts';
import { applyAsAdmin, TestWorld, type Member } from '../../support/members.ts';
import { until } from '../../support/until.ts';
import { watchObject } from '../../support/watch.ts';

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

interface Workload extends Item {
  spec: { instances: number };
}

interface Pod extends Item {
  status: { conditions?: { type: string; status: string }[] };
}

interface App {
  status?: { deployment?: { phase: string; generations?: { uid?: string; state: string; ready: number }[] } };
}

/** The app itself and its routes are not deleted; Events only report what happened. */
const meant = new Set(['cfapps.korifi.cloudfoundry.org', 'cfroutes.korifi.cloudfoundry.org', 'events', 'events.events.k8s.io']);

async function kindsThere(): Promise<string[]> {
  const names = await kubectl('api-resources', '--namespaced', '--verbs=delete,list', '-o', 'name');
  return names.split('\n').filter((name) => name !== '' && !meant.has(name));
}

/** Objects of a kind in the app's space; of pods only the app's. */
async function objectsOf(kind: string): Promise<string[]> {
  const { items } = await kubectlJson<{ items: Item[] }>('get', kind, '-n', space);
  return items.filter(({ metadata }) => metadata.deletionTimestamp === undefined).map(({ metadata }) => metadata.name);
}

const ofApp = (): string => `korifi.cloudfoundry.org/app-guid=${guid}`;

async function ownOf<T extends Item>(kind: string): Promise<T[]> {
  const { items } = await kubectlJson<{ items: T[] }>('get', kind, '-n', space, '-l', ofApp());
  return items;
}

const isReady = ({ status }: Pod): boolean => status.conditions?.some((one) => one.type === 'Ready' && one.status === 'True') === true;

/**
 * Waits for two ready instances of one version, and for the end of all others: the previous version exists for seconds after a push has ended, with
 * all its instances. Returns the AppWorkload of the new version.
 */
async function untilSettled(): Promise<Workload> {
  return until('two ready instances of the newest version, and none of another', async () => {
    const [workloads, pods, services] = await Promise.all([ownOf<Workload>('appworkload'), ownOf<Pod>('pods'), ownOf('services')]);
    const [workload] = workloads;
    const isOne = workloads.length === 1 && workload?.spec.instances === 2;
    const isServed = pods.length === 2 && pods.every((pod) => isReady(pod) && pod.metadata.deletionTimestamp === undefined);
    return isOne && isServed && services.length === 1 && workload;
  });
}

type Delete = (kind: string, name: string) => Promise<{ code: number; stderr: string }>;

/** Deletes all objects, one after the other; returns the kinds of which something was deleted, and every refusal. */
async function deleteEverything(remove: Delete): Promise<{ gone: Set<string>; refusals: string[] }> {
  const [gone, refusals] = [new Set<string>(), [] as string[]];
  for (const kind of await kindsThere()) {
    for (const name of await objectsOf(kind)) {
      const { code, stderr } = await remove(kind, name);
      if (code !== 0) refusals.push(stderr.trim());
      else {
        gone.add(kind.split('.')[0] ?? '');
        await untilSettled();
      }
    }
  }
  return { gone, refusals };
}

/** kubectl as a user of that name, with the rights of its RoleBindings. */
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
  await untilSettled();
});
afterAll(() => world.remove());

/** Deletes everything while a client sends requests; returns the deleted kinds. */
async function underLoad(remove: Delete): Promise<{ gone: Set<string>; refusals: string[] }> {
  const user = probe(host);
  const done = await deleteEverything(remove);
  const { asked, failures } = await user.end();
  expect(failures).toEqual([]);
  expect(asked).toBeGreaterThan(100);
  return done;
}

describe('under load, no request fails', () => {
  test('when a developer deletes everything that the role allows', async () => {
    const { gone, refusals } = await underLoad((kind, name) =>
      developer.kubectl(['delete', kind, name, '-n', space, '--wait=false', '--ignore-not-found']),
    );
    expect([...gone].toSorted()).toEqual(['cfbuilds', 'cfpackages', 'cfservicebindings', 'cfserviceinstances', 'pods']);
    expect(refusals.filter((text) => !text.includes('is forbidden: User'))).toEqual([]);
    expect(refusals.filter((text) => /appworkloads|statefulsets|secrets|httproutes/.test(text))).not.toEqual([]);
  });

  test('when a user with the role edit deletes everything else that this role allows', async () => {
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

  test('and the app can be restarted afterwards, or kf says what a restart needs', async () => {
    const ran = await developer.kf.run(['restart', app]);
    expect([ran.code, ran.stderr]).toEqual([1, expect.stringMatching(/droplet was deleted.*'kf push'/s)]);
    expect((await get(host)).status).toBe(200);
    await developer.kf.ok('push', app, '-o', sample, '-m', '64M', '-i', '2');
    await untilSettled();
  });
});

describe('objects that an admin deletes anyway', () => {
  test('an AppWorkload is created again with all its objects, and the app does not report Serving until then', async () => {
    const { metadata: before } = await untilSettled();
    const seen = await watchObject<App>('cfapp', space, guid);
    const currentOf = ({ status }: App) => status?.deployment?.generations?.find(({ state }) => state === 'Current');
    const serves = ({ status }: App): boolean => status?.deployment?.phase === 'Serving';
    // Until the controller has seen the deletion, the app's status is about the deleted object.
    const isNew = (state: App): boolean => (currentOf(state)?.uid ?? before.uid) !== before.uid;
    try {
      await kubectl('delete', 'appworkload', before.name, '-n', space, '--wait=false');
      const served = await seen.until('the app to serve again', (state) => isNew(state) && serves(state));
      expect(seen.states.find(isNew)).not.toBe(served);
      expect(currentOf(served)?.ready).toBe(2);
    } finally {
      seen.end();
    }
    const { metadata } = await untilSettled();
    expect(metadata.name).toBe(before.name);
    expect(metadata.uid).not.toBe(before.uid);
    const answer = await get(host, '/env');
    expect([answer.status, (JSON.parse(answer.body) as Record<string, string>)['COLOUR']]).toEqual([200, 'green']);
    const frozen = await kubectlJson<Item>('get', 'secret', `${metadata.name}-env`, '-n', space);
    expect(frozen.metadata.ownerReferences?.map(({ uid }) => uid)).toEqual([metadata.uid]);
  });

  test('VCAP_SERVICES, a Service, the HTTPRoute, the StatefulSet and its budget are created again', async () => {
    await untilSettled();
    const gone: [string, string][] = [['secret', `${guid}-vcap-services`]];
    for (const kind of ['service', 'statefulset', 'poddisruptionbudget'])
      gone.push(...(await ownOf(kind)).map(({ metadata }): [string, string] => [kind, metadata.name]));
    gone.push(['httproute', await kubectl('get', 'httproute', '-n', space, '-o', 'jsonpath={.items[*].metadata.name}')]);
    expect(gone.map(([kind]) => kind)).toEqual(['secret', 'service', 'statefulset', 'poddisruptionbudget', 'httproute']);
    for (const [kind, name] of gone) {
      const { metadata } = await kubectlJson<Item>('get', kind, name, '-n', space);
      await kubectl('delete', kind, name, '-n', space, '--wait=false');
      await until(`${kind} ${name} to come back`, async () => {
        const again = await kubectlJson<Item>('get', kind, name, '-n', space);
        return again.metadata.uid !== metadata.uid && again.metadata.deletionTimestamp === undefined;
      });
    }
    await untilSettled();
    await until('the app to answer', async () => (await get(host)).status === 200);
  });
});

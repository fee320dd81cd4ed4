// kf with faults: what must hold if pushes collide, programs die and objects are deleted. A short selection; `npm run chaos` continues.

import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { once } from 'node:events';
import { randomBytes, randomUUID } from 'node:crypto';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  apiServerAnswers,
  controllerReady,
  deleteControllerPod,
  killApiServer,
  killApiServerWithHistory,
  killControllerProcess,
  signalAll,
} from '../chaos/faults.ts';
import { annotations, places } from '../../src/lib/api/group.ts';
import { interrupted } from '../chaos/interrupt.ts';
import { probe } from '../chaos/probe.ts';
import { chance, seedOfRun } from '../chaos/seed.ts';
import { auditEnd, auditFrom, type AuditEntry } from '../support/audit.ts';
import { reportTime } from '../support/figures.ts';
import { get } from '../support/http.ts';
import { Kf, kubectl, kubectlJson, ringEnv, type Ran } from '../support/kf.ts';
import { podsOf } from '../support/pods.ts';
import { until } from '../support/until.ts';
import { watchObject } from '../support/watch.ts';

interface Listed {
  items: {
    metadata: { name: string; uid: string; deletionTimestamp?: string; annotations?: Record<string, string> };
    spec: { displayName?: string };
  }[];
}

const sample = (version: number): string => `${process.env['KF_CLUSTER_NODE_REGISTRY'] ?? ''}/kf/sample:${version}`;
const seed = seedOfRun();
const random = chance(seed);
let kf: Kf;
let folder: string;
let orphan = '';
const space = (): string => ringEnv('KF_TEST_SPACE_GUID');
const listed = (kind: string, selector = ''): Promise<Listed> =>
  kubectlJson<Listed>('get', kind, '-n', space(), ...(selector === '' ? [] : ['-l', selector]));

beforeAll(async () => {
  process.stderr.write(`KF_CHAOS_SEED=${seed}\n`);
  kf = await Kf.create();
  folder = await mkdtemp(path.join(tmpdir(), 'kf-chaos-'));
});
afterAll(async () => {
  for (const app of ['chaos-twenty', 'chaos-cut', 'chaos-app', 'chaos-gap']) await kf.run(['delete', app, '-f', '-r']);
  await kf.remove();
  await rm(folder, { recursive: true, force: true });
});

describe('several pushes of one app at the same time', () => {
  test('of twenty first pushes one wins and its app serves, and all others name the later push', async () => {
    const runs = await Promise.all(
      Array.from({ length: 20 }, (_, n) => kf.run(['push', 'chaos-twenty', '-o', sample((n % 2) + 1), '-m', '64M'])),
    );
    const failed = runs.filter(({ code }) => code !== 0);
    for (const { code, stderr } of failed)
      expect([code, stderr]).toEqual([1, expect.stringContaining('A later push, rollback or apply-manifest of app')]);
    expect(runs.length - failed.length).toBeGreaterThanOrEqual(1);
    const apps = (await listed('cfapps')).items.filter(({ spec }) => spec.displayName === 'chaos-twenty');
    expect(apps).toHaveLength(1);
    expect((await get('chaos-twenty.apps.localhost')).status).toBe(200);
    if (apps[0] !== undefined) orphan = await leaveOrphan(apps[0]);
  });

  test('the later push wins, with its source and its settings', async () => {
    const first = await begun('chaos-twenty', ['push', 'chaos-twenty', '-o', sample(1), '-m', '64M', '--force']);
    await sleep(random() * 700);
    const second = await kf.run(['push', 'chaos-twenty', '-o', sample(2), '-m', '96M']);
    expect(second.stderr + String(second.code)).toMatch(/0$/);
    const { code, stderr } = await first.ran;
    if (code !== 0) expect(stderr).toMatch(/later (push|change)/);
    await answers('chaos-twenty', 'kf sample 2');
    expect((await kf.ok('app', 'chaos-twenty')).stdout).toContain('96M');
  });
});

describe('an interrupted push', () => {
  test('ends wherever it is interrupted, and the next push continues from its state', async () => {
    const source = path.join(folder, 'cut');
    await cp(path.resolve('test/fixtures/apps/node-hello'), source, { recursive: true });
    await writeFile(path.join(source, 'data'), randomBytes(24 * 1024 * 1024));
    const push = ['push', 'chaos-cut', '-p', source, '-m', '64M'];
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGKILL', 'SIGTERM'] as const) {
      const child = kf.start(push);
      // A signal before kf has begun is Node's: it ends the program without a word, and nothing has been written.
      await Promise.race([once(child.stdout ?? child, 'data'), once(child, 'exit')]);
      const { code, milliseconds, stderr } = await interrupted(child, signal, random() * 3500);
      reportTime('a push ends after a signal', milliseconds);
      if (signal !== 'SIGKILL' && code !== 0) expect([code, stderr]).toEqual([130, expect.stringContaining('Interrupted.')]);
    }
    const last = await kf.json<{ apps: { guid: string }[] }>(...push);
    expect((await get('chaos-cut.apps.localhost')).status).toBe(200);
    const own = `korifi.cloudfoundry.org/app-guid=${last.apps[0]?.guid ?? ''}`;
    // Whatever failed, the registry has the content once, and it was built at most once after its build had begun.
    expect((await listed('cfpackages', own)).items.length).toBeLessThanOrEqual(3);
    expect((await listed('cfapps')).items.filter(({ spec }) => spec.displayName === 'chaos-cut')).toHaveLength(1);
    const again = await kf.json<{ apps: { unchanged: boolean; layerBytesSent: number }[] }>(...push);
    expect(again.apps[0]).toMatchObject({ unchanged: true, layerBytesSent: 0 });
  });
});

/** Starts a push of an existing app; returns when it has taken the app over. */
async function begun(app: string, args: string[]): Promise<{ ran: Promise<Ran> }> {
  const guid = (await kf.ok('app', app, '--guid')).stdout.trim();
  const watch = await watchObject<Listed['items'][number]>('cfapp', space(), guid);
  try {
    const pushOf = ({ metadata }: Listed['items'][number]): string | undefined => metadata.annotations?.['kf.cloudfoundry.org/push-id'];
    const before = watch.states.map(pushOf).at(-1);
    const ran = kf.run(args);
    await watch.until('the push to take the app over', (state) => pushOf(state) !== before);
    return { ran };
  } finally {
    watch.end();
  }
}

/** A killed push leaves an app without its name if another push of that name is faster. */
async function leaveOrphan(holder: Listed['items'][number]): Promise<string> {
  const whole = await kubectlJson<{ spec: Record<string, unknown> }>('get', 'cfapp', holder.metadata.name, '-n', space());
  const name = randomUUID();
  const metadata = { name, namespace: space(), annotations: { 'kf.cloudfoundry.org/push-id': randomUUID() } };
  const { displayName, lifecycle } = whole.spec;
  const file = path.join(folder, 'orphan.json');
  await writeFile(
    file,
    JSON.stringify({ ...whole, metadata, status: undefined, spec: { displayName, lifecycle, desiredState: 'STOPPED' } }),
  );
  await kubectl('create', '-f', file);
  return name;
}

describe('one instance behind a route', () => {
  test('answers every request while the app changes and the controller is killed', async () => {
    await kf.ok('push', 'chaos-app', '-o', sample(1), '-m', '64M');
    const user = probe('chaos-app.apps.localhost');
    // Both, in random order: a process that is killed again and again only tests the back-off of its kubelet.
    const faults = random() < 0.5 ? [killControllerProcess, deleteControllerPod] : [deleteControllerPod, killControllerProcess];
    const injectFault = async (): Promise<void> => {
      await sleep(200 + random() * 1500);
      await faults.pop()?.();
    };
    const [pushed] = await Promise.all([kf.run(['push', 'chaos-app', '-o', sample(2), '-m', '64M']), injectFault()]);
    expect([pushed.code, pushed.stderr]).toEqual([0, expect.any(String)]);
    const bad = await kf.run(['push', 'chaos-app', '-o', `${process.env['KF_CLUSTER_NODE_REGISTRY'] ?? ''}/kf/crash:1`, '-m', '64M']);
    expect(bad.code).toBe(1);
    const [scaled] = await Promise.all([kf.run(['scale', 'chaos-app', '-i', '2']), injectFault()]);
    expect(scaled.code).toBe(0);
    await kf.ok('push', 'chaos-app', '-o', sample(1), '-m', '64M');
    await kf.ok('scale', 'chaos-app', '-i', '1');
    await sleep(5_000);
    const { asked, failures } = await user.end();
    expect(asked).toBeGreaterThan(100);
    expect(failures).toEqual([]);
  });

  test('a push survives a restart of the API server, whose etcd has no history: the controller lists again', async () => {
    const before = await auditEnd();
    const pushing = await begun('chaos-app', ['push', 'chaos-app', '-o', sample(2), '-m', '64M']);
    await sleep(random() * 1200);
    expect(await killApiServerWithHistory()).toBeGreaterThan(1);
    await apiServerAnswers();
    const { code, stderr } = await pushing.ran;
    expect([code, code === 0 ? '' : stderr]).toEqual([0, '']);
    await answers('chaos-app', 'kf sample 2');
    // Each watch connects again after a pause of its own, which can be longer than the push.
    const isNewList = ({ user, verb }: AuditEntry): boolean => user.username.endsWith(':kf-controller') && verb === 'list';
    for (const kind of ['cfapps', 'cfbuilds', 'statefulsets', 'pods'])
      await until(`a new list of ${kind}`, async () =>
        (await auditFrom(before)).some((entry) => isNewList(entry) && entry.objectRef?.resource === kind),
      );
  });

  test('a controller that starts after a restart of the API server gives the gateway time to catch up', async () => {
    await killApiServer();
    const killed = Date.now();
    await apiServerAnswers();
    await until('the leader to record the outage', async () => (await steadySince()) > killed);
    killControllerProcess();
    await controllerReady();
    const pushing = kf.run(['push', 'chaos-gap', '-o', sample(1), '-m', '64M', '-c', 'sleep 10; exec node /app/server.cjs']);
    try {
      const guid = await until('the app', async () => {
        const { items } = await listed('cfapps');
        return items.find(({ spec }) => spec.displayName === 'chaos-gap')?.metadata.name;
      });
      await until('a pod of it', async () => (await podsOf(guid)).length > 0);
      // The gateway hears of no instance that gets ready from now on, and answers 503.
      expect(signalAll('kube-controller-manager', 'SIGSTOP')).toBeGreaterThan(0);
      await until('the instance', async () => (await podsOf(guid)).some(({ status }) => status.containerStatuses?.[0]?.ready === true));
      await sleep(22_000);
    } finally {
      signalAll('kube-controller-manager', 'SIGCONT');
    }
    const { code, stderr } = await pushing;
    expect([code, code === 0 ? '' : stderr]).toEqual([0, '']);
    await answers('chaos-gap', 'kf sample 1');
  });

  test('map-route waits for addresses of a Service that Kubernetes writes late', async () => {
    const host = 'chaos-late';
    expect(signalAll('kube-controller-manager', 'SIGSTOP')).toBeGreaterThan(0);
    const mapping = kf.run(['map-route', 'chaos-app', 'apps.localhost', '-n', host]);
    try {
      await until('the gateway to miss the addresses', async () => {
        const routes = await kubectlJson<{ items: object[] }>('get', 'httproutes', '-n', space());
        return routes.items.map((route) => JSON.stringify(route)).some((text) => text.includes(host) && text.includes('BackendNotFound'));
      });
      await sleep(20_000);
    } finally {
      signalAll('kube-controller-manager', 'SIGCONT');
    }
    const { code, stderr } = await mapping;
    expect([code, code === 0 ? '' : stderr]).toEqual([0, '']);
    expect((await get(`${host}.apps.localhost`)).status).toBe(200);
  });

  test('requests of a route lose nothing while an app is mapped whose addresses Kubernetes writes late', async () => {
    const host = 'chaos-both';
    await kf.ok('map-route', 'chaos-twenty', 'apps.localhost', '-n', host);
    const user = probe(`${host}.apps.localhost`);
    expect(signalAll('kube-controller-manager', 'SIGSTOP')).toBeGreaterThan(0);
    const mapping = kf.run(['map-route', 'chaos-gap', 'apps.localhost', '-n', host]);
    await sleep(8_000);
    signalAll('kube-controller-manager', 'SIGCONT');
    const { code, stderr } = await mapping;
    expect([code, code === 0 ? '' : stderr]).toEqual([0, '']);
    const { asked, failures } = await user.end();
    expect([asked > 100, failures]).toEqual([true, []]);
    const bodies = new Set<string>();
    for (let sent = 0; sent < 4; sent += 1) bodies.add((await get(`${host}.apps.localhost`)).body);
    expect(bodies.size).toBe(2);
  });

  test('a restart that begins while the only controller is frozen ends well after it goes on', async () => {
    await controllerReady();
    expect(signalAll('controller.mjs', 'SIGSTOP')).toBe(1);
    const pushing = kf.run(['restart', 'chaos-app']);
    await sleep(14_000);
    signalAll('controller.mjs', 'SIGCONT');
    const { code, stderr } = await pushing;
    expect([code, code === 0 ? '' : stderr]).toEqual([0, '']);
    await controllerReady();
  });

  test('an app that a killed push left without a name is deleted', async () => {
    expect(orphan).not.toBe('');
    await until('the orphan to go', async () => !(await listed('cfapps')).items.some(({ metadata }) => metadata.name === orphan));
    expect((await listed('cfapps')).items.some(({ spec }) => spec.displayName === 'chaos-twenty')).toBe(true);
  });

  test('objects that declare a lasting state are created again after a deletion', async () => {
    await kf.ok('scale', 'chaos-app', '-i', '2');
    const guid = (await kf.ok('app', 'chaos-app', '--guid')).stdout.trim();
    const hash = await currentGeneration(guid);
    const own = `korifi.cloudfoundry.org/app-guid=${guid}`;
    const serving = `${own},kf.cloudfoundry.org/generation=${hash}`;
    const frozen = (await listed('secrets', own)).items.find(({ metadata }) => metadata.name.endsWith(`-${hash}-env`));
    await untilLookedAt(frozen?.metadata.name ?? '');
    const kept: [string, string][] = [
      ['rolebinding', 'kf-controller-space'],
      ['secret', 'image-registry-credentials'],
      ['secret', 'kf-registry-push'],
      ['secret', frozen?.metadata.name ?? ''],
      ['serviceaccount', 'korifi-app'],
    ];
    for (const [kind, selector] of [
      ['service', serving],
      ['statefulset', serving],
      ['poddisruptionbudget', own],
    ] as const)
      kept.push([kind, (await listed(kind, selector)).items[0]?.metadata.name ?? '']);
    kept.push(['httproute', await routeOf('chaos-app')]);
    expect(kept.filter(([, name]) => name === '')).toEqual([]);
    await Promise.all(kept.map(([kind, name]) => comesBack(kind, name)));
  });
});

/** Hash of the version that serves: the previous one exists for some seconds. */
async function currentGeneration(guid: string): Promise<string> {
  const { status } = await kubectlJson<{ status: { deployment: { generations: { hash: string; state: string }[] } } }>(
    ...['get', 'cfapp', guid, '-n', space()],
  );
  return status.deployment.generations.find(({ state }) => state === 'Current')?.hash ?? '';
}

/** A controller can make a frozen Secret again only after it has read it once; it reads every few seconds. */
async function untilLookedAt(secret: string): Promise<void> {
  const from = await auditEnd();
  await until(`the controller to look at the Secret ${secret}`, async () =>
    (await auditFrom(from)).some(
      ({ user, verb, objectRef }) =>
        user.username === 'system:serviceaccount:kf-system:kf-controller' && verb === 'get' && objectRef?.name === secret,
    ),
  );
}

/** When the outage ended that the leader of the controllers knows of; 0 for none. */
async function steadySince(): Promise<number> {
  const record = await kubectlJson<{ metadata: { annotations: Record<string, string> } }>(
    ...['get', 'runnerinfo', places.leaderRecord, '-n', places.systemNamespace],
  );
  return Date.parse(record.metadata.annotations[annotations.steadySince] ?? '') || 0;
}

/** The gateway needs a moment to load what the API server has accepted. */
async function answers(app: string, text: string): Promise<void> {
  await until(`${app} to answer '${text}'`, async () => (await get(`${app}.apps.localhost`)).body.includes(text));
}

/** The route that the push gave to the app; its HTTPRoute has the same name. */
async function routeOf(app: string): Promise<string> {
  const { items } = await kubectlJson<{ items: { metadata: { name: string }; spec: { host: string } }[] }>(
    'get',
    'cfroutes',
    '-n',
    space(),
  );
  return items.find(({ spec }) => spec.host === app)?.metadata.name ?? '';
}

async function comesBack(kind: string, name: string): Promise<void> {
  const read = async (): Promise<Listed['items'][number]> => kubectlJson<Listed['items'][number]>('get', kind, name, '-n', space());
  const before = (await read()).metadata.uid;
  const started = Date.now();
  await kubectl('delete', kind, name, '-n', space(), '--wait=false');
  const isBack = async (): Promise<boolean> => {
    const { uid, deletionTimestamp } = (await read()).metadata;
    return uid !== before && deletionTimestamp === undefined;
  };
  await until(`${kind} ${name} to come back`, isBack);
  reportTime(`${kind} comes back`, Date.now() - started);
}

// The controller is down. What a space developer can do then (docs/troubleshooting.md): reads work, changes of running instances take effect at once,
// and everything else is written, says what waits, and happens when the controller is back. It comes back once, at the end.

import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { controllerReady } from '../chaos/faults.ts';
import { get } from '../support/http.ts';
import { Kf, kubectl, kubectlJson, ringEnv, type Ran } from '../support/kf.ts';
import { podsOf } from '../support/pods.ts';
import { until } from '../support/until.ts';

const app = 'break-glass';
const host = `${app}.apps.localhost`;
const service = `${app}-db`;
/** How long the controller is down before the first command; `npm run chaos -- break-glass` sets an hour. */
const stoppedMs = Number(process.env['KF_TEST_STOPPED_MINUTES'] ?? '0') * 60_000;
/** Class of a change that was written, and that no controller has processed (docs/exit-codes.md). */
const accepted = 12;
let kf: Kf;
let guid = '';

const sample = (version: number): string => `${ringEnv('KF_CLUSTER_NODE_REGISTRY')}/kf/sample:${version}`;
const run = (...args: string[]): Promise<Ran> => kf.run(args, { env: { KF_EXIT_CODES: 'class' } });
const livePods = async (): Promise<string[]> =>
  (await podsOf(guid)).filter(({ metadata }) => metadata.deletionTimestamp === undefined).map(({ metadata }) => metadata.uid);

async function stopController(): Promise<void> {
  await kubectl('-n', 'kf-system', 'scale', 'deployment/kf-controller', '--replicas=0');
  await kubectl('-n', 'kf-system', 'wait', '--for=delete', 'pod', '-l', 'app=kf-controller', '--timeout=60s');
}

async function startController(): Promise<void> {
  await kubectl('-n', 'kf-system', 'scale', 'deployment/kf-controller', '--replicas=1');
  await controllerReady();
}

/** A change that must take effect although nobody reconciles. */
async function works(...args: string[]): Promise<void> {
  const { code, stderr } = await run(...args);
  expect([code, code === 0 ? '' : stderr], args.join(' ')).toEqual([0, '']);
}

/** Sends requests during `work`. @returns what was answered other than with 200 */
async function failuresDuring(work: Promise<void>): Promise<string[]> {
  const failures: string[] = [];
  let isOver = false;
  const ask = async (): Promise<void> => {
    while (!isOver) {
      const answer = await get(host).then(({ status }) => String(status), String);
      if (answer !== '200') failures.push(answer);
      await sleep(50);
    }
  };
  const asking = ask();
  await work.finally(() => (isOver = true));
  await asking;
  return failures;
}

beforeAll(async () => {
  kf = await Kf.create();
  await kf.ok('push', app, '-o', sample(1), '-m', '64M');
  await kf.ok('create-user-provided-service', service, '-p', '{"url":"x"}');
  guid = (await kf.ok('app', app, '--guid')).stdout.trim();
  await stopController();
  await sleep(stoppedMs);
}, 600_000 + stoppedMs);
afterAll(async () => {
  await startController();
  await kf.run(['delete', app, '-f', '-r']);
  await kf.run(['delete-service', service, '-f']);
  await kf.remove();
});

describe('with the controller down', () => {
  test.each([
    [['app', app], 'running'],
    [['apps'], app],
    [['routes'], app],
    [['services'], service],
    [['env', app], 'VCAP_APPLICATION'],
    [['revisions', app], 'Initial revision'],
    [['events', app], 'audit.app.create'],
    [['logs', app, '--recent'], 'listening on port'],
    [['ssh', app, '-c', 'echo from-$CF_INSTANCE_INDEX'], 'from-0'],
    [['why', app], `App '${app}' runs.`],
  ])('%j works as always', async (args, text) => {
    const { code, stdout, stderr } = await run(...args);
    expect([code, stderr]).toEqual([0, expect.any(String)]);
    expect(stdout).toContain(text);
  });

  test('restart-app-instance, scale -i, stop, start and restart take effect at once', async () => {
    const [first] = await livePods();
    await works('restart-app-instance', app, '0');
    await until('another instance', async () => {
      const pods = await livePods();
      return pods.length === 1 && pods[0] !== first && (await get(host)).status === 200;
    });
    await works('scale', app, '-i', '2');
    expect(await livePods()).toHaveLength(2);
    await works('stop', app);
    await until('the instances to end', async () => (await livePods()).length === 0);
    await works('start', app);
    const started = await livePods();
    expect(started).toHaveLength(2);
    await until('the app to answer', async () => (await get(host)).status === 200);
    // One of the two instances serves all the time.
    expect(await failuresDuring(works('restart', app))).toEqual([]);
    const restarted = await livePods();
    expect(restarted).toHaveLength(2);
    expect(restarted.filter((uid) => started.includes(uid))).toEqual([]);
  });

  test('kf why names the controller that is absent, since a change waits for it', async () => {
    const { code, stdout } = await run('why', app);
    expect([code, stdout]).toEqual([
      0,
      expect.stringContaining('The last change of the app is accepted, but no controller has taken it up; it waits in the cluster.'),
    ]);
    expect(stdout).toMatch(/^cause: +controller-absent \(no controller takes up the change\)$/m);
    expect(stdout).toContain('kubectl get pods -n kf-system');
  });

  test('kf app says that the deployment stands still, and since when the instances of the restart run', async () => {
    const { stdout } = await run('app', app);
    expect(stdout).toContain('The controller does not answer: the deployment stands still until it runs again.');
    const created = (await podsOf(guid)).map(({ metadata }) => Date.parse(metadata.creationTimestamp));
    const since = [...stdout.matchAll(/^#\d +running +(\S+Z) /gm)].map(([, time]) => Date.parse(time ?? ''));
    expect(since).toHaveLength(2);
    expect(Math.min(...since)).toBeGreaterThanOrEqual(Math.min(...created));
  });

  test('bind-service, map-route and push are written and say what waits, and the app serves on', async () => {
    const ran = await Promise.all([run('bind-service', app, service), run('map-route', app, 'apps.localhost', '-n', `${app}-extra`)]);
    const pushed = await run('push', app, '-o', sample(2), '-m', '64M');
    for (const { code, stderr } of [...ran, pushed]) expect([code, stderr]).toEqual([accepted, expect.stringMatching(/controller|waits/)]);
    expect((await get(host)).body).toContain('kf sample 1');
    expect(await livePods()).toHaveLength(2);
  });
});

test('the controller that comes back takes up what it finds, the app answers with as many instances, and the push can be made again', async () => {
  await startController();
  interface Served {
    metadata: { annotations: Record<string, string> };
    status: { deployment?: { id: string; phase: string } };
  }
  await until('the controller to serve the last change', async () => {
    const { metadata, status } = await kubectlJson<Served>('get', 'cfapp', guid, '-n', ringEnv('KF_TEST_SPACE_GUID'));
    const { id, phase } = status.deployment ?? {};
    return id === metadata.annotations['kf.cloudfoundry.org/deploy-id'] && phase === 'Serving';
  });
  expect((await get(host)).status).toBe(200);
  await until('two instances', async () => (await kf.ok('app', app)).stdout.includes('2/2'));
  await until('the new route to answer', async () => (await get(`${app}-extra.apps.localhost`)).status === 200);
  expect((await kf.ok('services')).stdout).toMatch(new RegExp(`${service}.*${app}.*create succeeded`));
  expect((await kf.ok('why', app)).stdout).toContain(`App '${app}' runs.`);
  // A push that ended before its build has changed nothing: it is made again.
  await kf.ok('push', app, '-o', sample(2), '-m', '64M');
  await until('the new version to answer', async () => (await get(host)).body.includes('kf sample 2'));
});

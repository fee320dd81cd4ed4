// The gateway's part in whether an app serves: the reasons NotServing, RouteNotAccepted and RouteNotVerified, each with a real gateway.

import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import type { AppDetails } from '../../src/lib/api/results.ts';
import { probe } from '../chaos/probe.ts';
import { Kf, kubectl, kubectlJson, ringEnv } from '../support/kf.ts';
import { podsOf } from '../support/pods.ts';
import { until } from '../support/until.ts';
import { why } from '../support/why.ts';

const sample = (version: number): string => `${ringEnv('KF_CLUSTER_NODE_REGISTRY')}/kf/sample:${version}`;
const image = sample(1);
const names = { deaf: 'takes-and-drops', refusing: 'answers-503', unrouted: 'route-not-taken', unverified: 'route-not-asked' };
const info = ['-n', 'cf', 'configmap/kf-info'];
let kf: Kf;
let before: string;

interface Settings {
  gateway: { name: string; internalAddress?: string };
}

async function writeInfo(text: string): Promise<void> {
  await kubectl('patch', ...info, '--type=merge', '-p', JSON.stringify({ data: { 'info.json': text } }));
}

/** Configures the controller with a gateway that does not exist. */
async function describeGateway(more: Partial<Settings['gateway']>): Promise<void> {
  const settings = JSON.parse(before) as Settings;
  await writeInfo(JSON.stringify({ ...settings, gateway: { ...settings.gateway, ...more } }));
}

interface App {
  spec: { displayName: string };
  status: { deployment: { phase: string; reason?: string; message?: string } };
}

async function deploymentOf(name: string): Promise<App['status']['deployment'] | undefined> {
  const { items } = await kubectlJson<{ items: App[] }>('get', 'cfapps', '-n', ringEnv('KF_TEST_SPACE_GUID'));
  return items.find(({ spec }) => spec.displayName === name)?.status.deployment;
}

beforeAll(async () => {
  kf = await Kf.create();
  before = (await kubectlJson<{ data: Record<string, string> }>('get', ...info)).data['info.json'] ?? '';
});
afterEach(async () => writeInfo(before));
afterAll(async () => {
  for (const name of Object.values(names)) await kf.run(['delete', name, '-r', '-f']);
  await kf.remove();
});

const push = (name: string, ...more: string[]) => kf.run(['push', name, '-o', image, '-m', '64M', ...more]);

test('NotServing: an app accepts requests and answers none', async () => {
  const program = 'require("net").createServer((s) => s.once("data", () => s.end())).listen(process.env.PORT)';
  const { code, stderr } = await push(names.deaf, '-c', `exec node -e '${program}'`);
  const message = `Requests to ${names.deaf}.apps.localhost/ are answered with 502.`;
  expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining(`Start unsuccessful: ${message}`) as string });
  expect(await deploymentOf(names.deaf)).toMatchObject({ phase: 'Failed', reason: 'NotServing', message });
  expect((await why(kf, names.deaf)).cause).toBe('not-serving');
});

test('NotServing: a version that answers only 503 gets no request of a user, and the one before answers all of them', async () => {
  const host = `${names.refusing}.apps.localhost`;
  expect(await push(names.refusing)).toMatchObject({ code: 0 });
  const guid = (await kf.ok('app', names.refusing, '--guid')).stdout.trim();
  const [before] = await podsOf(guid);
  const user = probe(host);
  const program = 'require("http").createServer((_, r) => { r.statusCode = 503; r.end("down"); }).listen(process.env.PORT)';
  const { code, stderr } = await kf.run(['push', names.refusing, '-o', sample(2), '-c', `exec node -e '${program}'`]);
  const message = `Requests to ${host}/ are answered with 503.`;
  await until('the instance of 503 to end', async () => (await podsOf(guid)).length === 1);
  const { asked, bodies, failures } = await user.end();
  expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining(`Start unsuccessful: ${message}`) as string });
  expect([failures, bodies]).toEqual([[], ['kf sample 1, instance 0\n']]);
  // For most of the 15 s that the new version had.
  expect(asked).toBeGreaterThan(200);
  expect(await deploymentOf(names.refusing)).toMatchObject({ phase: 'Failed', reason: 'NotServing', message });
  expect(await why(kf, names.refusing)).toMatchObject({ state: 'failed', cause: 'not-serving', message });
  const [process] = (await kf.json<AppDetails>('app', names.refusing)).processes;
  expect(process).toMatchObject({ running: 1, instances: 1, instanceDetails: [{ pod: before?.metadata.name }] });
  expect((await kf.ok('app', names.refusing)).stdout).toMatch(
    /\nlast deployment: +failed\nreason: +Requests to .* are answered with 503\.\n/,
  );
});

test('RouteNotAccepted: the gateway does not accept the route', async () => {
  await describeGateway({ name: 'absent' });
  const { code, stderr } = await push(names.unrouted);
  const message = `The gateway did not take the route ${names.unrouted}.apps.localhost: no gateway controller looked at it`;
  expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining(message) as string });
  expect(await deploymentOf(names.unrouted)).toMatchObject({ phase: 'Failed', reason: 'RouteNotAccepted', message });
  expect((await why(kf, names.unrouted)).cause).toBe('gateway-down');
  await writeInfo(before);
  await until('the app to serve once the gateway has its route', async () => (await deploymentOf(names.unrouted))?.phase === 'Serving');
});

test('RouteNotVerified: the gateway cannot be asked from inside the cluster', async () => {
  await describeGateway({ internalAddress: 'http://127.0.0.1:9' });
  const { code, stderr } = await push(names.unverified);
  expect({ code, stderr }).toMatchObject({ code: 0 });
  const deployment = await deploymentOf(names.unverified);
  expect(deployment).toMatchObject({ phase: 'Serving', reason: 'RouteNotVerified' });
});

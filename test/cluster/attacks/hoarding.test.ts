// A developer of one space makes objects that are small one by one, and that would fill the controller's memory together. Others must not notice.

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readControllerReport, type ControllerReport } from '../../support/controller-report.ts';
import { kubectl, kubectlJson, ringEnv, type Kf } from '../../support/kf.ts';
import { TestWorld, untilReady, type Member, type Said } from '../../support/members.ts';
import { until } from '../../support/until.ts';

const api = 'korifi.cloudfoundry.org/v1alpha1';
const app = 'hoarding-victim';
/** Half of what the controller's container may have. */
const mostBytes = 384 * 1024 ** 2;
const world = new TestWorld();
let attacker: Member;
let attacked: string;
let victim: Kf;
let folder: string;
let before: ControllerReport[];

const meta = (name: string): { name: string; namespace: string } => ({ name, namespace: attacked });
const base64 = (text: string): string => Buffer.from(text).toString('base64');
const expectDone = ({ code, stderr }: Said): void => expect([code, stderr]).toEqual([0, '']);
const create = async (...objects: object[]): Promise<void> => expectDone(await attacker.kubectl(['create', '-f', '-'], objects));

async function createApp(name: string): Promise<void> {
  const lifecycle = { type: 'docker', data: { stack: '' } };
  await create({ apiVersion: api, kind: 'CFApp', metadata: meta(name), spec: { displayName: name, desiredState: 'STOPPED', lifecycle } });
  const claimed = '-o=jsonpath={.status.conditions[?(@.type=="Claimed")].status}';
  await until('the app to have its name', async () => (await kubectl('get', 'cfapp', name, '-n', attacked, claimed)).includes('True'));
}

/** The controller is the process of before, and took no more memory than many apps take. */
async function expectWell(): Promise<void> {
  await victim.ok('restart', app);
  const after = await readControllerReport(ringEnv('KF_TEST_KUBECONFIG'));
  expect(after.map(({ pod, restarts }) => [pod, restarts])).toEqual(before.map(({ pod, restarts }) => [pod, restarts]));
  for (const { peakBytes = 0 } of after) expect(peakBytes).toBeLessThan(mostBytes);
}

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'kf-hoarding-'));
  const [ours, theirs] = [await world.space(), await world.space()];
  attacked = theirs.space;
  attacker = await world.member('spaceDeveloper', theirs);
  victim = (await world.member('spaceDeveloper', ours)).kf;
  await untilReady('cfspace', ours.org, ours.space);
  await untilReady('cfspace', theirs.org, theirs.space);
  await victim.ok('push', app, '-o', `${ringEnv('KF_CLUSTER_NODE_REGISTRY')}/kf/sample:1`, '-m', '64M');
  before = await readControllerReport(ringEnv('KF_TEST_KUBECONFIG'));
});
afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
  await world.remove();
});

test('sixty bindings of one app to one Secret, whose JSON takes twenty times as much memory as its text', async () => {
  const count = 60;
  await create({ apiVersion: 'v1', kind: 'Secret', metadata: meta('large'), data: { credentials: base64('{"a":1}') } });
  await createApp('bound');
  const names = Array.from({ length: count }, (_, n) => `service-${String(n)}`);
  await create(
    ...names.flatMap((name) => [
      {
        apiVersion: api,
        kind: 'CFServiceInstance',
        metadata: meta(name),
        spec: { displayName: name, type: 'user-provided', secretName: 'large', planGuid: '', tags: [] },
      },
      {
        apiVersion: api,
        kind: 'CFServiceBinding',
        metadata: meta(name),
        spec: { type: 'app', parameters: {}, service: { kind: 'CFServiceInstance', name, apiVersion: api }, appRef: { name: 'bound' } },
      },
    ]),
  );
  await until('the bindings', async () => {
    const { status } = await kubectlJson<{ status?: { serviceBindings?: unknown[] } }>('get', 'cfapp', 'bound', '-n', attacked);
    return status?.serviceBindings?.length === count;
  });
  const data = { credentials: base64(`{"a":[${'{},'.repeat(190_000)}{}]}`) };
  const file = path.join(folder, 'patch.json');
  await writeFile(file, JSON.stringify({ data }));
  expectDone(await attacker.kubectl(['patch', 'secret', 'large', '-n', attacked, '--type=merge', `--patch-file=${file}`]));
  const look = JSON.stringify({ metadata: { annotations: { 'kf.cloudfoundry.org/deploy-id': '11111111-2222-4333-8444-555555555555' } } });
  await attacker.kubectl(['patch', 'cfapp', 'bound', '-n', attacked, '--type=merge', '-p', look]);
  const ready = '-o=jsonpath={.status.conditions[?(@.type=="Ready")].message}';
  await until('the refusal', async () =>
    (await kubectl('get', 'cfapp', 'bound', '-n', attacked, ready)).includes('more than 768 KiB together'),
  );
  await expectWell();
});

test('ninety builds of an image with sixteen large pull secrets', async () => {
  const secrets = Array.from({ length: 16 }, (_, n) => ({ name: `pull-${String(n)}` }));
  const config = base64(JSON.stringify({ x: 'y'.repeat(590 * 1024) }));
  // One by one: together they are larger than one request may be.
  for (const { name } of secrets)
    await create({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: meta(name),
      type: 'kubernetes.io/dockerconfigjson',
      data: { '.dockerconfigjson': config },
    });
  await createApp('pulled');
  const source = { registry: { image: '10.244.0.250:5000/x/y:1', imagePullSecrets: secrets } };
  await create({
    apiVersion: api,
    kind: 'CFPackage',
    metadata: meta('package'),
    spec: { type: 'docker', appRef: { name: 'pulled' }, source },
  });
  const spec = {
    appRef: { name: 'pulled' },
    packageRef: { name: 'package' },
    lifecycle: { type: 'docker', data: { stack: '' } },
    stagingMemoryMB: 128,
    stagingDiskMB: 128,
  };
  await create(...Array.from({ length: 90 }, (_, n) => ({ apiVersion: api, kind: 'CFBuild', metadata: meta(`build-${String(n)}`), spec })));
  await until('the builds to be refused', async () => {
    const { items } = await kubectlJson<{ items: { status?: { state?: string } }[] }>('get', 'cfbuilds', '-n', attacked);
    return items.length >= 5 && items.every(({ status }) => status?.state === 'FAILED');
  });
  await expectWell();
});

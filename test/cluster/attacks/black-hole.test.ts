// A developer of one space pushes two hundred images from an address that accepts connections and never answers. Others must not wait for it.

import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { get } from '../../support/http.ts';
import { kubectl, kubectlJson, ringEnv, type Kf } from '../../support/kf.ts';
import { applyAsAdmin, TestWorld, untilReady, type Member } from '../../support/members.ts';
import { until } from '../../support/until.ts';

const api = 'korifi.cloudfoundry.org/v1alpha1';
const sample = (version: number): string => `${ringEnv('KF_CLUSTER_NODE_REGISTRY')}/kf/sample:${version}`;
const builds = 200;
const app = `victim-${randomUUID().slice(0, 6)}`;
const world = new TestWorld();
let attacker: Member;
let attacked: string;
let victim: Kf;
let alone = 0;

interface Builds {
  items: { status?: { state?: string } }[];
}

const meta = (name: string): object => ({ name, namespace: attacked });
const lifecycle = { type: 'docker', data: { stack: '' } };

/** A pod that accepts connections and never answers. */
async function silentAddress(): Promise<string> {
  const info = await kubectlJson<{ data: Record<string, string> }>('get', 'configmap', 'kf-info', '-n', 'cf');
  const { programImage } = JSON.parse(info.data['info.json'] ?? '{}') as { programImage: string };
  const security = {
    runAsNonRoot: true,
    runAsUser: 1000,
    allowPrivilegeEscalation: false,
    capabilities: { drop: ['ALL'] },
    seccompProfile: { type: 'RuntimeDefault' },
  };
  const container = {
    name: 'silent',
    image: programImage,
    command: ['node', '-e', 'require("net").createServer(() => {}).listen(8080)'],
    resources: { requests: { cpu: '10m', memory: '32Mi' }, limits: { memory: '128Mi' } },
    securityContext: security,
  };
  // The controller's connections must reach it and stay open: the space's own policy would refuse them at once.
  const spec = { podSelector: {}, policyTypes: ['Ingress'], ingress: [{}] };
  await applyAsAdmin({ apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', metadata: meta('open'), spec });
  await applyAsAdmin({ apiVersion: 'v1', kind: 'Pod', metadata: meta('silent'), spec: { containers: [container] } });
  return until('the silent pod', async () => {
    const { status } = await kubectlJson<{ status: { podIP?: string; phase: string } }>('get', 'pod', 'silent', '-n', attacked);
    return status.phase === 'Running' ? status.podIP : undefined;
  });
}

async function attack(address: string): Promise<void> {
  const appObject = {
    apiVersion: api,
    kind: 'CFApp',
    metadata: meta('hole'),
    spec: { displayName: 'hole', desiredState: 'STOPPED', lifecycle },
  };
  expect(await attacker.kubectl(['apply', '-f', '-'], appObject)).toMatchObject({ code: 0 });
  await untilReadyOrClaimed();
  const objects = Array.from({ length: builds }, (_, count) => [
    {
      apiVersion: api,
      kind: 'CFPackage',
      metadata: meta(`package-${count}`),
      spec: { type: 'docker', appRef: { name: 'hole' }, source: { registry: { image: `${address}:8080/kf/none:${count}` } } },
    },
    {
      apiVersion: api,
      kind: 'CFBuild',
      metadata: meta(`build-${count}`),
      spec: {
        appRef: { name: 'hole' },
        packageRef: { name: `package-${count}` },
        lifecycle,
        stagingMemoryMB: 128,
        stagingDiskMB: 128,
      },
    },
  ]).flat();
  expect(await attacker.kubectl(['create', '-f', '-'], objects)).toMatchObject({ code: 0 });
}

async function untilReadyOrClaimed(): Promise<void> {
  await until('the app to have its name', async () =>
    (await kubectl('get', 'cfapp', 'hole', '-n', attacked, '-o', 'jsonpath={.status.conditions[?(@.type=="Claimed")].status}')).includes(
      'True',
    ),
  );
}

async function unended(): Promise<number> {
  const { items } = await kubectlJson<Builds>('get', 'cfbuilds', '-n', attacked);
  return items.filter(({ status }) => status?.state === 'STAGING').length;
}

beforeAll(async () => {
  const [ours, theirs] = [await world.space(), await world.space()];
  attacked = theirs.space;
  attacker = await world.member('spaceDeveloper', theirs);
  victim = (await world.member('spaceDeveloper', ours)).kf;
  await untilReady('cfspace', ours.org, ours.space);
  await victim.ok('push', app, '-o', sample(1), '-m', '64M');
  alone = (await victim.ok('restart', app)).milliseconds;
  await attack(await silentAddress());
  await until('the builds to be begun', async () => (await unended()) > builds / 2);
});
afterAll(() => world.remove());

describe('while two hundred builds of another space wait for a registry that does not answer', () => {
  test('a restart in another space ends long before them', async () => {
    const { milliseconds } = await victim.ok('restart', app);
    const left = await unended();
    process.stderr.write(
      `kf restart: ${(alone / 1000).toFixed(1)} s alone, ${(milliseconds / 1000).toFixed(1)} s beside ${builds} black-hole builds (${left} left)\n`,
    );
    expect(left).toBeGreaterThan(builds / 2);
    expect((await get(`${app}.apps.localhost`)).status).toBe(200);
  });

  test('a push of an image from a registry that answers ends long before them too', async () => {
    await victim.ok('push', app, '-o', sample(2), '-m', '64M');
    expect(await unended()).toBeGreaterThan(builds / 4);
    await until('the new version', async () => (await get(`${app}.apps.localhost`)).body.includes('kf sample 2'));
  });
});

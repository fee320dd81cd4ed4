// When setup starts a second gateway, and what it does if it cannot. That no request is lost is shown on a cluster (https-switch).

import { PassThrough } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import { afterEach, expect, test, vi } from 'vitest';
import { deploymentType, serviceType } from '../../../src/lib/api/core.ts';
import type { PodTemplateSpec } from '../../../src/lib/api/pod.ts';
import { podType } from '../../../src/lib/api/pod-kind.ts';
import type { OpEvent } from '../../../src/lib/events.ts';
import { beginHandover, endHandover } from '../../../src/lib/ops/install/gateway-handover.ts';
import type { SetupRun } from '../../../src/lib/ops/install/part.ts';
import { resolvePlan, type SetupRequest } from '../../../src/lib/ops/install/request.ts';
import { buildTraefik } from '../../../src/templates/setup/gateway.ts';
import { buildHandoverPod, buildHandoverService } from '../../../src/templates/setup/gateway-handover.ts';
import { apiError, MemoryCluster } from '../../support/memory-cluster.ts';

const namespace = 'kf-node';
const name = 'kf-gateway-handover';
const isReady = { type: 'Ready', status: 'True' };
const first = 'kf-gateway-1';
const gateway = { apiVersion: 'apps/v1', kind: deploymentType.kind, metadata: { name: 'kf-gateway', namespace } };

interface Scene {
  cluster: Answering;
  run: SetupRun;
  told: OpEvent[];
}

afterEach(() => vi.useRealTimers());

/** Its second gateways start at once; `silent` pods do not answer. */
class Answering extends MemoryCluster {
  silent = '';

  override create: MemoryCluster['create'] = (type, object) =>
    super.create(type, object.metadata.name === name && type.kind === 'Pod' ? { ...object, status: { conditions: [isReady] } } : object);

  override openChannels = (({ path }: { path: string }) => {
    if (path.includes(`/pods/${this.silent}/`)) throw new Error('nothing listens');
    const [data, errors] = [new PassThrough(), new PassThrough()];
    data.write(Buffer.alloc(2));
    const send = async (): Promise<void> => {
      data.end('HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n');
      return Promise.resolve();
    };
    return Promise.resolve({ readable: (channel: number) => (channel === 0 ? data : errors), send, close: () => undefined });
  }) as never;
}

/** Lets the time pass until this is done. */
async function ended(work: Promise<void>): Promise<void> {
  let isDone = false;
  const done = work.finally(() => (isDone = true));
  while (!isDone) {
    await setImmediate();
    await vi.advanceTimersByTimeAsync(50);
  }
  await done;
}

/** A gateway that runs, and a setup that replaces it. */
async function scene(
  exposure: 'hostport' | 'loadbalancer',
  action: 'change' | 'keep' = 'change',
  ready: 'True' | 'False' = 'True',
): Promise<Scene> {
  const cluster = new Answering();
  await cluster.create(podType, {
    metadata: { namespace, name: first, labels: { app: 'kf-gateway' } },
    spec: { nodeName: 'node-1', containers: [] },
    status: { conditions: [{ ...isReady, status: ready }] },
  });
  const told: OpEvent[] = [];
  const report = (event: OpEvent): void => void told.push(event);
  const changes: SetupRun['changes'] = () => [{ action, object: gateway }] as never;
  return { cluster, told, run: { cluster, report, plan: resolvePlan({}, '1.0.0', exposure), asked: {}, changes } };
}

const types = (told: readonly OpEvent[]): string[] => told.map(({ type }) => type);
const isLeft = ({ cluster }: Scene): boolean =>
  cluster.peek(podType, namespace, name) !== undefined || cluster.peek(serviceType, namespace, name) !== undefined;

test('a cluster that refuses the second gateway is told of, and setup goes on', async () => {
  const made = await scene('hostport');
  made.cluster.intercept = (verb, { kind }) => {
    if (verb === 'create' && kind === 'Pod') throw apiError(403, 'Forbidden', 'pods are refused here', name);
  };
  await beginHandover(made.run);
  expect(made.told).toMatchObject([
    { step: 'gateway-handover' },
    { type: 'gateway-gap', why: expect.stringContaining('pods are refused here') as string },
  ]);
  expect(isLeft(made)).toBe(false);
});

test.each([
  ['the gateway stays as it is', 'hostport', 'keep', 'True'],
  ['a load balancer leads to the gateway', 'loadbalancer', 'change', 'True'],
  ['the first one does not serve', 'hostport', 'change', 'False'],
] as const)('there is no second gateway when %s', async (_, exposure, action, ready) => {
  const made = await scene(exposure, action, ready);
  await beginHandover(made.run);
  expect(types(made.told)).toEqual([]);
  expect(isLeft(made)).toBe(false);
});

test('connections to the second gateway end by themselves, so that its end cuts none', () => {
  const plan = resolvePlan({}, '1.0.0', 'hostport');
  const argsOf = (containers: readonly { args?: string[] }[] = []): string[] =>
    containers.flatMap(({ args = [] }) => args).filter((arg) => arg.includes('keepalivemaxtime'));
  const { template } = (buildTraefik(plan) as { spec: { template: PodTemplateSpec } }).spec;
  expect(argsOf(template.spec.containers)).toEqual([]);
  expect(argsOf(buildHandoverPod(plan, 'node-1').spec?.containers)).toEqual([
    '--entrypoints.web.transport.keepalivemaxtime=1s',
    '--entrypoints.websecure.transport.keepalivemaxtime=1s',
  ]);
});

test('when nothing is left of a handover, its end asks for that and writes nothing', async () => {
  const made = await scene('hostport');
  const verbs: string[] = [];
  made.cluster.intercept = (verb) => void verbs.push(verb);
  await endHandover(made.run);
  expect(verbs).toEqual(['get', 'get']);
});

/** A setup that goes on where one with these settings was killed. */
async function interrupted(request: SetupRequest): Promise<Scene & { left: string; begin: () => Promise<string | undefined> }> {
  const made = await scene('hostport');
  const { cluster, run } = made;
  const former = resolvePlan(request, '1.0.0', 'hostport');
  const left = (await cluster.create(podType, buildHandoverPod(former, 'node-1'))).metadata.uid;
  await cluster.create(serviceType, buildHandoverService(former, ['192.0.2.1']));
  const begin = async (): Promise<string | undefined> => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    await ended(beginHandover(run));
    expect(made.told).toEqual([{ type: 'install-step', step: 'gateway-handover' }]);
    expect(cluster.peek(serviceType, namespace, name)).toBeDefined();
    return cluster.peek(podType, namespace, name)?.metadata.uid;
  };
  return { ...made, left, begin };
}

test('a second gateway that an interrupted setup left is used again when it does what this one needs', async () => {
  const { left, begin } = await interrupted({});
  expect(await begin()).toBe(left);
});

test.each<[string, SetupRequest]>([
  ['its entry points', { httpRedirect: 'on' }],
  ['its image', { images: { traefik: 'traefik:3.6.0' } }],
])('one that differs in %s gives its connections back to the first gateway, and is replaced', async (_, request) => {
  const { cluster, left, run, begin } = await interrupted(request);
  expect(await begin()).not.toBe(left);
  expect(cluster.peek(podType, namespace, name)?.spec).toEqual(buildHandoverPod(run.plan, 'node-1').spec);
  const ends = cluster.writes.filter(({ verb }) => verb === 'delete');
  expect(ends.map(({ kind, body }) => [kind, body])).toEqual([
    ['Service', {}],
    ['Pod', {}],
  ]);
});

test('one that differs stays while the first gateway does not answer: it is the only one that serves', async () => {
  const { cluster, left, begin } = await interrupted({ httpRedirect: 'on' });
  cluster.silent = first;
  expect(await begin()).toBe(left);
  expect(cluster.writes.filter(({ verb }) => verb === 'delete')).toEqual([]);
});

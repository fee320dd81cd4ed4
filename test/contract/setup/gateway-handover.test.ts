// When setup starts a second gateway, and what it does if it cannot. That no request is lost is shown on a cluster (https-switch).

import { expect, test } from 'vitest';
import { deploymentType, serviceType } from '../../../src/lib/api/core.ts';
import type { PodTemplateSpec } from '../../../src/lib/api/pod.ts';
import { podType } from '../../../src/lib/api/pod-kind.ts';
import type { OpEvent } from '../../../src/lib/events.ts';
import { beginHandover, endHandover } from '../../../src/lib/ops/install/gateway-handover.ts';
import type { SetupRun } from '../../../src/lib/ops/install/part.ts';
import { resolvePlan } from '../../../src/lib/ops/install/request.ts';
import { buildTraefik } from '../../../src/templates/setup/gateway.ts';
import { buildHandoverPod } from '../../../src/templates/setup/gateway-handover.ts';
import { apiError, MemoryCluster } from '../../support/memory-cluster.ts';

const namespace = 'kf-node';
const name = 'kf-gateway-handover';
const gateway = { apiVersion: 'apps/v1', kind: deploymentType.kind, metadata: { name: 'kf-gateway', namespace } };

interface Scene {
  cluster: MemoryCluster;
  run: SetupRun;
  told: OpEvent[];
}

/** A gateway that runs, and a setup that replaces it. */
async function scene(
  exposure: 'hostport' | 'loadbalancer',
  action: 'change' | 'keep' = 'change',
  ready: 'True' | 'False' = 'True',
): Promise<Scene> {
  const cluster = new MemoryCluster();
  await cluster.create(podType, {
    metadata: { namespace, name: 'kf-gateway-1', labels: { app: 'kf-gateway' } },
    spec: { nodeName: 'node-1', containers: [] },
    status: { conditions: [{ type: 'Ready', status: ready }] },
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

// A gateway whose Traefik cannot run kf's middlewares must not start: without them it would answer 404 to everything.

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, expect, test } from 'vitest';
import type { Pod } from '../../src/lib/api/pod-kind.ts';
import { kubectl, kubectlJson, ringEnv } from '../support/kf.ts';
import { feed } from '../support/feed.ts';
import { until } from '../support/until.ts';

const execute = promisify(execFile);
const name = 'broken-gateway';
const namespace = 'kf-node';

interface Gateway {
  spec: { template: { spec: Record<string, unknown> & { containers: Record<string, unknown>[]; volumes: Record<string, unknown>[] } } };
}

async function apply(object: object): Promise<void> {
  const applied = execute('kubectl', ['apply', '-f', '-'], { env: { ...process.env, KUBECONFIG: ringEnv('KF_TEST_KUBECONFIG') } });
  feed(applied.child, JSON.stringify(object));
  await applied;
}

afterAll(() => kubectl('delete', 'pod,configmap', name, '-n', namespace, '--ignore-not-found', '--grace-period=0'));

test('ends with the cause when the guard cannot be loaded, where kf setup reads it', async () => {
  const { data } = await kubectlJson<{ data: Record<string, string> }>('get', 'configmap', 'kf-gateway-request-id', '-n', namespace);
  const { spec } = (await kubectlJson<Gateway>('get', 'deployment', 'kf-gateway', '-n', namespace)).spec.template;
  const broken = (data['guard.go'] ?? '').replace('httptrace.ClientTrace', 'httptrace.NoSuchType');
  expect(broken).toContain('NoSuchType');
  await apply({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace }, data: { ...data, 'guard.go': broken } });
  await apply({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace },
    spec: {
      ...spec,
      restartPolicy: 'Never',
      containers: spec.containers.map((container) => ({ ...container, ports: [] })),
      volumes: spec.volumes.map((volume) =>
        'configMap' in volume ? { ...volume, configMap: { ...(volume['configMap'] as object), name } } : volume,
      ),
    },
  });
  const ended = await until('the gateway ends', async () => {
    const { status } = await kubectlJson<Pod>('get', 'pod', name, '-n', namespace);
    return status?.containerStatuses?.[0]?.state?.terminated;
  });
  expect(ended.exitCode).toBe(1);
  expect(ended.message).toMatch(/plugin: failed to .*kf\.cloudfoundry\.org\/guard/);
});

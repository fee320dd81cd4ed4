// A space with 200 apps is listed with a few requests, however many apps there are.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { annotations, kinds, labels } from '../../../src/lib/api/group.ts';
import { bundleForTests, Cli } from '../../support/cli.ts';
import { ServedCluster } from '../../support/served-cluster.ts';

const count = 200;
const ns = 'space-guid';
const bundle = bundleForTests();
let cluster: ServedCluster;
let cli: Cli;

async function addApp(at: number): Promise<void> {
  const app = `app-${at}`;
  const place = (name: string) => ({ name, namespace: ns });
  const lifecycle = { type: 'docker' as const, data: { stack: '' } };
  await cluster.add(kinds.app, { metadata: place(app), spec: { displayName: app, desiredState: 'STARTED', lifecycle } });
  const healthCheck = { type: 'port' as const, data: { invocationTimeoutSeconds: 1, timeoutSeconds: 60 } };
  const size = { desiredInstances: 1, memoryMB: 64, diskQuotaMB: 64 };
  await cluster.add(kinds.process, {
    metadata: place(`${app}-web`),
    spec: { appRef: { name: app }, processType: 'web', ...size, healthCheck },
  });
  const metadata = { ...place(`${app}-route`), annotations: { [annotations.appGuids]: app } };
  const spec = { host: app, domainRef: { name: 'default-domain' }, destinations: [] };
  await cluster.add(kinds.route, { metadata, spec });
  await cluster.memory.mergePatch(kinds.route, ns, `${app}-route`, { status: { uri: `${app}.apps.localhost` } }, { subresource: 'status' });
  const service = { displayName: `${app}-db`, type: 'user-provided' as const, secretName: `${app}-db`, planGuid: '' };
  await cluster.add(kinds.serviceInstance, { metadata: place(`${app}-db`), spec: service });
  const binding = {
    type: 'app' as const,
    appRef: { name: app },
    parameters: { name: '' },
    service: { apiVersion: '', kind: 'CFServiceInstance', name: `${app}-db` },
  };
  await cluster.add(kinds.serviceBinding, { metadata: { ...place(`${app}-binding`), labels: { [labels.appGuid]: app } }, spec: binding });
}

beforeAll(async () => {
  cluster = await (await ServedCluster.start()).installed();
  cli = new Cli(bundle.program, { KUBECONFIG: cluster.server.kubeconfig() });
  expect((await cli.run(['target', '-o', 'example-org', '-s', 'example-space'])).code).toBe(0);
  for (let at = 0; at < count; at += 1) await addApp(at);
});

afterAll(async () => {
  await cluster.stop();
  cli.remove();
  bundle.remove();
});

it.each(['apps', 'routes', 'services'])('kf %s of 200 apps needs at most 5 requests', async (command) => {
  const before = cluster.server.calls.length;
  const run = await cli.run([command, '--json']);
  expect(run).toMatchObject({ code: 0, stderr: '' });
  expect((JSON.parse(run.stdout) as { result: unknown[] }).result).toHaveLength(count);
  const asked = cluster.server.calls.slice(before).map(({ method, path }) => `${method} ${path}`);
  expect(asked.length, asked.join('\n')).toBeLessThanOrEqual(5);
});

import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { kinds } from '../../../src/lib/api/group.ts';
import { bundleForTests, Cli } from '../../support/cli.ts';
import { ServedCluster } from '../../support/served-cluster.ts';

const bundle = bundleForTests();
const ns = 'space-guid';
let cluster: ServedCluster;
let cli: Cli;

beforeEach(async () => {
  cluster = await (await ServedCluster.start()).installed();
  cli = new Cli(bundle.program, { KUBECONFIG: cluster.server.kubeconfig(), KF_ORG: 'example-org', KF_SPACE: 'example-space' });
});
afterEach(async () => {
  await cluster.stop();
  cli.remove();
});
afterAll(() => bundle.remove());

async function addApp(): Promise<void> {
  await cluster.add(kinds.app, {
    metadata: { name: 'my-app-guid', namespace: ns },
    spec: { displayName: 'my-app', desiredState: 'STOPPED', lifecycle: { type: 'buildpack', data: { stack: '' } } },
  });
}

describe('bind-service', () => {
  async function addService(name: string): Promise<void> {
    const spec = { displayName: name, secretName: `${name}-secret`, type: 'user-provided' as const, planGuid: '' };
    await cluster.add(kinds.serviceInstance, { metadata: { name: `${name}-guid`, namespace: ns }, spec });
  }

  it('refuses a second binding with one name before anything is written, and names the service that has it', async () => {
    await addApp();
    for (const name of ['db', 'other']) await addService(name);
    const labels = { 'korifi.cloudfoundry.org/app-guid': 'my-app-guid' };
    const spec = { type: 'app' as const, appRef: { name: 'my-app-guid' }, service: { name: 'db-guid' }, parameters: { name: '' } };
    await cluster.add(kinds.serviceBinding, { metadata: { name: 'b-1', namespace: ns, labels }, spec });
    const run = await cli.run(['bind-service', 'my-app', 'other', '--binding-name', 'db']);
    expect(run).toMatchObject({ code: 1, stdout: expect.stringContaining('FAILED') as string });
    expect(run.stderr).toContain("App 'my-app' already has a binding named 'db', to service instance 'db'.");
    expect(run.stderr).toContain('bind-service my-app SERVICE_INSTANCE --binding-name OTHER_NAME');
    expect(cluster.memory.all(kinds.serviceBinding)).toHaveLength(1);
    expect((await cli.run(['bind-service', 'my-app', 'db'])).stdout).toContain('App my-app is already bound to service instance db.');
  });
});

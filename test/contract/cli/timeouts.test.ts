// cf's variables for time limits, as scripts set them.

import { createServer, type Server, type Socket } from 'node:net';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeEach, expect, it } from 'vitest';
import { annotations, kinds } from '../../../src/lib/api/group.ts';
import { bundleForTests, Cli } from '../../support/cli.ts';
import { ServedCluster } from '../../support/served-cluster.ts';

const bundle = bundleForTests();
const [ns, guid] = ['space-guid', 'app-guid'];
let cluster: ServedCluster;
let cli: Cli;

beforeEach(async () => {
  cluster = await (await ServedCluster.start()).installed();
  cli = new Cli(bundle.program, { KUBECONFIG: cluster.server.kubeconfig(), KF_ORG: 'example-org', KF_SPACE: 'example-space' });
  await cluster.add(kinds.app, {
    metadata: { name: guid, namespace: ns, annotations: { [annotations.appRev]: '3' } },
    spec: {
      displayName: 'my-app',
      desiredState: 'STOPPED',
      lifecycle: { type: 'buildpack', data: { stack: '' } },
      currentDropletRef: { name: 'droplet' },
    },
  });
});
afterEach(async () => {
  await cluster.stop();
  cli.remove();
});
afterAll(() => bundle.remove());

/** Acts as the controller, which processes each change and ends in this phase. */
function judge(phase: 'Starting' | 'Serving'): void {
  cluster.memory.intercept = (verb) => {
    const app = cluster.memory.peek(kinds.app, ns, guid);
    const id = app?.metadata.annotations?.[annotations.deployId];
    if (verb !== 'watch' || id === undefined || id === app?.status?.deployment?.id) return;
    const status = { deployment: { phase, id, message: 'Waiting for instance 0 to listen on port 8080.' } };
    setTimeout(() => void cluster.memory.mergePatch(kinds.app, ns, guid, { status }, { subresource: 'status' }), 20);
  };
}

it('a fraction of a minute works, and is printed as given', async () => {
  judge('Starting');
  const { code, stderr } = await cli.run(['start', 'my-app'], { env: { CF_STARTUP_TIMEOUT: '0.02' } });
  expect(code).toBe(1);
  expect(stderr).toContain("Start app timeout: after 0.02 min app 'my-app' still waits for: instance 0 to listen on port 8080\n");
  expect(stderr).toContain("The change of app 'my-app' goes on in the cluster:\n   kf app my-app\n");
  expect(stderr).toContain('   CF_STARTUP_TIMEOUT=0.04 gives it 0.04 minutes.\n');
});

it('a value that is not a number causes a warning, and the command continues', async () => {
  judge('Serving');
  const { code, stderr } = await cli.run(['start', 'my-app'], { env: { CF_STARTUP_TIMEOUT: 'abc' } });
  expect([code, stderr]).toEqual([0, "CF_STARTUP_TIMEOUT is 'abc', which is not a number of minutes above 0; 5 minutes are taken.\n"]);
});

it('kf waits for a server that does not accept the connection as long as CF_DIAL_TIMEOUT says', async () => {
  const sockets: Socket[] = [];
  const silent: Server = createServer((socket) => void sockets.push(socket));
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  const proxy = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
  const kubeconfig = cluster.server.kubeconfig({ cluster: { 'proxy-url': proxy } });
  const { code, stderr } = await cli.run(['orgs'], { env: { KUBECONFIG: kubeconfig, CF_DIAL_TIMEOUT: '0.3' } });
  for (const socket of sockets) socket.destroy();
  silent.close();
  expect(code).toBe(1);
  expect(stderr).toContain(`the proxy ${proxy} does not answer within 0.3 s`);
});

// `kf delete` waits until the app is gone, and names what keeps it.

import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { kinds } from '../../../src/lib/api/group.ts';
import type { CFApp } from '../../../src/lib/api/types.generated.ts';
import { bundleForTests, Cli } from '../../support/cli.ts';
import { ServedCluster } from '../../support/served-cluster.ts';
import { until } from '../../support/until.ts';

const bundle = bundleForTests();
const ns = 'space-guid';
const held = "CFApp 'my-app-guid' has the finalizer 'example.org/hold'";
const deleting = 'Deleting app my-app in org example-org / space example-space as alice...\n';
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

const appNow = (): CFApp | undefined => cluster.memory.peek(kinds.app, ns, 'my-app-guid');

async function addApp(...finalizers: string[]): Promise<void> {
  const spec = { displayName: 'my-app', desiredState: 'STOPPED' as const, lifecycle: { type: 'buildpack' as const, data: { stack: '' } } };
  await cluster.add(kinds.app, { metadata: { name: 'my-app-guid', namespace: ns, finalizers }, spec });
}

async function addRoute(...finalizers: string[]): Promise<void> {
  const destinations = [{ guid: 'd', appRef: { name: 'my-app-guid' }, processType: 'web' }];
  const spec = { host: 'own', domainRef: { name: 'default-domain' }, destinations };
  await cluster.add(kinds.route, { metadata: { name: 'r', namespace: ns, finalizers }, spec });
}

const release = () => cluster.memory.mergePatch(kinds.app, ns, 'my-app-guid', { metadata: { finalizers: null } });

/** A minute is too long for a test. */
function waitSeconds(seconds: number): void {
  const file = path.join(cli.home, '.cf', 'settings.json');
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, JSON.stringify({ AsyncTimeout: seconds / 60 }));
}

describe('the deletion of an app', () => {
  it('costs one request after the DELETE if nothing keeps the app', async () => {
    await addApp();
    expect(await cli.run(['delete', 'my-app', '-f'])).toMatchObject({ code: 0, stdout: `${deleting}OK\n\n`, stderr: '' });
    const calls = cluster.server.calls.map(({ method, path: at }) => `${method} ${at.split('/').slice(-2).join('/')}`);
    expect(calls.slice(calls.indexOf('DELETE cfapps/my-app-guid') + 1)).toEqual(['GET cfapps/my-app-guid']);
  });

  it('that a finalizer of others keeps fails with its name and the commands that help', async () => {
    waitSeconds(1);
    await addApp('example.org/hold');
    const run = await cli.run(['delete', 'my-app', '-f'], { env: { KF_EXIT_CODES: 'class' } });
    expect([run.code, run.stdout]).toEqual([12, `${deleting}FAILED\n`]);
    expect(run.stderr).toBe(
      [
        `Waiting: ${held}`,
        `App 'my-app' is still being deleted: ${held}.`,
        '',
        'TIP:',
        '   Whoever set a finalizer must take it away. If nothing else does:',
        `   kubectl patch cfapps.korifi.cloudfoundry.org my-app-guid -n space-guid --type=merge -p '{"metadata":{"finalizers":null}}'`,
        '   kf delete my-app',
        '',
      ].join('\n'),
    );
    expect(appNow()?.metadata.deletionTimestamp).toBeDefined();
  });

  it('says the same with --json', async () => {
    waitSeconds(1);
    await addApp('example.org/hold');
    const run = await cli.run(['delete', 'my-app', '-f', '--json']);
    expect(run.code).toBe(1);
    const error = { code: 'accepted', message: `App 'my-app' is still being deleted: ${held}.` };
    expect(JSON.parse(run.stdout)).toMatchObject({ status: 1, error });
  });

  it('ends when the last finalizer is taken away', async () => {
    await addApp('example.org/hold');
    const running = cli.run(['delete', 'my-app', '-f']);
    await until('the command to watch the app', () => Promise.resolve(cluster.server.calls.some(({ query }) => query.has('watch'))));
    await release();
    expect(await running).toMatchObject({ code: 0, stdout: `${deleting}OK\n\n`, stderr: `Waiting: ${held}\n` });
    expect(appNow()).toBeUndefined();
  });

  it('that was interrupted is waited for by the next one, which deletes nothing twice', async () => {
    await addApp('example.org/hold');
    const first = await cli.run(['delete', 'my-app', '-f'], { kill: { after: 'Waiting: CFApp', signal: 'SIGINT' } });
    expect([first.code, first.stderr]).toEqual([130, expect.stringContaining('The deletion goes on in the cluster: kf apps')]);
    waitSeconds(1);
    const second = await cli.run(['delete', 'my-app', '-f']);
    expect([second.code, second.stderr]).toEqual([1, expect.stringContaining(`App 'my-app' is still being deleted: ${held}.`)]);
    expect(cluster.server.callsOf('DELETE .*')).toHaveLength(1);
    await release();
    const third = await cli.run(['delete', 'my-app', '-f']);
    expect(third).toMatchObject({ code: 0, stdout: `${deleting}OK\n\n`, stderr: "App 'my-app' does not exist.\n" });
  });

  it('is that of a later app with the name, not of the one that is kept', async () => {
    await addApp('example.org/hold');
    await cluster.memory.delete(kinds.app, ns, 'my-app-guid');
    const { spec } = appNow() ?? {};
    if (spec !== undefined) await cluster.add(kinds.app, { metadata: { name: 'later-guid', namespace: ns }, spec });
    expect((await cli.run(['delete', 'my-app', '-f'])).code).toBe(0);
    expect([cluster.memory.peek(kinds.app, ns, 'later-guid'), appNow()]).toEqual([undefined, expect.anything()]);
  });

  it('-r names what keeps a route too', async () => {
    waitSeconds(1);
    await addApp('example.org/hold');
    await addRoute('example.org/route');
    const run = await cli.run(['delete', 'my-app', '-fr']);
    expect(run.code).toBe(1);
    const route = "Route 'own' is still being deleted: CFRoute 'r' has the finalizer 'example.org/route'.";
    expect(run.stderr).toContain(`App 'my-app' is still being deleted: ${held}. ${route}\n`);
  });

  it('without a controller says that the app goes when it is back, if only it can remove a finalizer', async () => {
    await addApp('cfApp.korifi.cloudfoundry.org');
    const run = await cli.run(['delete', 'my-app', '-f'], { env: { KF_EXIT_CODES: 'class' } });
    expect(run.code).toBe(12);
    const message = "App 'my-app' is marked for deletion, but no controller answers: it goes when the controller is back.";
    expect(run.stderr).toContain(`${message}\n\nTIP:\n   kubectl get pods -n kf-system\n   kf delete my-app\n`);
  }, 40_000);

  it('by curl does not wait: its job tells how it stands', async () => {
    await addApp('example.org/hold');
    expect((await cli.run(['curl', '/v3/apps/my-app-guid', '-X', 'DELETE'])).code).toBe(0);
    const job = await cli.run(['curl', '/v3/jobs/app.delete~my-app-guid']);
    expect(JSON.parse(job.stdout)).toMatchObject({ state: 'PROCESSING' });
  }, 20_000);
});

describe('the stop before the deletion of an app', () => {
  it('that no controller confirms in time is reported, and delays the deletion for half of its time at most', async () => {
    waitSeconds(4);
    await addApp();
    await addRoute();
    await cluster.memory.mergePatch(kinds.app, ns, 'my-app-guid', { spec: { desiredState: 'STARTED' } });
    const from = performance.now();
    const run = await cli.run(['delete', 'my-app', '-f']);
    const warning = "The gateway may still send requests to 'my-app' until its instances have ended.\n";
    expect([run.code, run.stderr]).toEqual([0, warning]);
    expect(performance.now() - from).toBeLessThan(10_000);
    expect(appNow()).toBeUndefined();
  }, 20_000);
});

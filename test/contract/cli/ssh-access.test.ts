// enable-ssh, disable-ssh, ssh-enabled, allow-space-ssh, disallow-space-ssh, space-ssh-allowed.

import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { kinds, labels } from '../../../src/lib/api/group.ts';
import { bundleForTests, Cli, type CliRun } from '../../support/cli.ts';
import { ServedCluster } from '../../support/served-cluster.ts';

const bundle = bundleForTests();
const ns = 'space-guid';
let cluster: ServedCluster;
let cli: Cli;

beforeEach(async () => {
  cluster = await (await ServedCluster.start()).installed();
  cli = new Cli(bundle.program, { KUBECONFIG: cluster.server.kubeconfig(), KF_ORG: 'example-org', KF_SPACE: 'example-space' });
  const spec = { displayName: 'shop', desiredState: 'STARTED' as const, lifecycle: { type: 'buildpack' as const, data: { stack: '' } } };
  await cluster.add(kinds.app, { metadata: { name: 'shop-guid', namespace: ns }, spec });
});

afterEach(async () => {
  await cluster.stop();
  cli.remove();
});
afterAll(() => bundle.remove());

const run = (...argv: string[]): Promise<CliRun> => cli.run(argv);
const onApp = (): string | undefined => cluster.memory.peek(kinds.app, ns, 'shop-guid')?.metadata.labels?.[labels.ssh];
const onSpace = (): string | undefined => cluster.memory.peek(kinds.space, 'org-guid', ns)?.metadata.labels?.[labels.ssh];

/** Acts as the controller, which labels the namespace and then says so. */
function control(): void {
  cluster.memory.intercept = (verb, { plural }) => {
    if (verb !== 'watch' || plural !== kinds.space.plural) return;
    const condition = { reason: 'x', message: '', lastTransitionTime: '2026-08-07T10:16:20Z' };
    const conditions = [{ type: 'SSHAllowed', status: onSpace() === 'disabled' ? ('False' as const) : ('True' as const), ...condition }];
    setTimeout(
      () =>
        void cluster.memory
          .mergePatch(kinds.space, 'org-guid', ns, { status: { conditions } }, { subresource: 'status' })
          .catch(() => undefined),
      20,
    );
  };
}

describe('of an app', () => {
  it('disable-ssh and enable-ssh change its label, and say when it is so already', async () => {
    const first = 'Disabling ssh support for app shop as alice...\n';
    expect(await run('disable-ssh', 'shop')).toMatchObject({ code: 0, stdout: `${first}OK\n\n`, stderr: '' });
    expect(onApp()).toBe('disabled');
    const again = await run('disable-ssh', 'shop');
    expect(again).toMatchObject({ code: 0, stdout: `${first}ssh support for app 'shop' is already disabled.\nOK\n\n` });
    expect((await run('enable-ssh', 'shop')).stdout).toBe('Enabling ssh support for app shop as alice...\nOK\n\n');
    expect(onApp()).toBeUndefined();
    expect(JSON.parse((await run('enable-ssh', 'shop', '--json')).stdout)).toMatchObject({
      result: { app: 'shop', enabled: true, changed: false },
    });
  });

  it('ssh-enabled says why ssh is disabled', async () => {
    expect((await run('ssh-enabled', 'shop')).stdout).toBe("ssh support is enabled for app 'shop'.\n");
    await run('disable-ssh', 'shop');
    expect((await run('ssh-enabled', 'shop')).stdout).toBe("ssh support is disabled for app 'shop'.\nDisabled for app\n");
    control();
    await run('disallow-space-ssh', 'example-space');
    expect((await run('ssh-enabled', 'shop')).stdout).toBe("ssh support is disabled for app 'shop'.\nDisabled for space\n");
    expect((await run('enable-ssh', 'shop')).stdout).toContain('TIP: Ensure ssh is also enabled on the space and global level.\n');
  });

  it('kf ssh is refused, and names the command that allows it', async () => {
    await run('disable-ssh', 'shop');
    const refused = await run('ssh', 'shop', '-c', 'ls');
    expect([refused.code, refused.stderr]).toEqual([1, "ssh support is disabled for app 'shop'.\n\nTIP:\n   kf enable-ssh shop\n"]);
  });

  it('curl reads and changes the feature', async () => {
    expect((await run('curl', '-X', 'PATCH', '/v3/apps/shop-guid/features/ssh', '-d', '{"enabled": false}', '--fail')).code).toBe(0);
    expect(onApp()).toBe('disabled');
    expect(JSON.parse((await run('curl', '/v3/apps/shop-guid/ssh_enabled')).stdout)).toEqual({
      enabled: false,
      reason: 'Disabled for app',
    });
    expect((await run('curl', '-X', 'PATCH', '/v3/apps/shop-guid/features/ssh', '-d', '{"enabled": 1}', '--fail')).code).toBe(22);
  });
});

describe('of a space', () => {
  it('disallow-space-ssh ends when the controller has seen it', async () => {
    control();
    const first = 'Disabling ssh support for space example-space as alice...\n';
    expect(await run('disallow-space-ssh', 'example-space')).toMatchObject({ code: 0, stdout: `${first}OK\n\n` });
    expect((await run('space-ssh-allowed', 'example-space')).stdout).toBe("ssh support is disabled in space 'example-space'.\n");
    expect((await run('disallow-space-ssh', 'example-space')).stdout).toBe(
      `${first}ssh support for space 'example-space' is already disabled.\nOK\n\n`,
    );
    expect((await run('allow-space-ssh', 'example-space')).stdout).toBe('Enabling ssh support for space example-space as alice...\nOK\n\n');
    expect(onSpace()).toBe('enabled');
    expect(JSON.parse((await run('curl', `/v3/spaces/${ns}/features/ssh`)).stdout)).toMatchObject({ name: 'ssh', enabled: true });
  });
});

describe('bad input', () => {
  it.each([
    [['enable-ssh', 'shap'], "App 'shap' not found."],
    [['ssh-enabled'], 'the required argument `APP_NAME` was not provided'],
    [['disallow-space-ssh', 'nowhere'], "Space 'nowhere' not found."],
    [['space-ssh-allowed', 'example-space', 'x'], 'unexpected argument "x"'],
    [['disable-ssh', 'shop', '--org', 'nowhere'], "Organization 'nowhere' not found."],
  ])('%j prints %s', async (argv, message) => {
    const { code, stderr } = await cli.run(argv);
    expect([code, stderr]).toEqual([1, expect.stringContaining(message)]);
  });

  it('without the right says who may do it', async () => {
    const text = 'cfspaces.korifi.cloudfoundry.org "x" is forbidden: Only a manager of x, or an admin, may change its labels';
    cluster.server.on('PATCH .*/cfspaces/.*', (call) => call.fail(403, 'Forbidden', text));
    const { code, stderr } = await run('disallow-space-ssh', 'example-space');
    const hint = 'A manager of the space or of its org, or an administrator of the cluster, can do it.';
    expect([code, stderr]).toEqual([1, `You may not change space 'example-space'.\n\nTIP:\n   ${hint}\n`]);
    cluster.server.on('PATCH .*/cfspaces/.*', (call) =>
      call.fail(403, 'Forbidden', 'cfspaces "x" is forbidden: User "alice" cannot patch'),
    );
    expect((await run('disallow-space-ssh', 'example-space')).stderr).toContain('cannot patch');
  });
});

// feature-flags, feature-flag, enable-feature-flag, disable-feature-flag.

import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { bundleForTests, Cli } from '../../support/cli.ts';
import { ServedCluster } from '../../support/served-cluster.ts';

const bundle = bundleForTests();
let cluster: ServedCluster;
let cli: Cli;

beforeEach(async () => {
  cluster = await (await ServedCluster.start()).installed();
  cli = new Cli(bundle.program, { KUBECONFIG: cluster.server.kubeconfig() });
});
afterEach(async () => {
  await cluster.stop();
  cli.remove();
});
afterAll(() => bundle.remove());

describe('feature flags', () => {
  it('are listed and shown as cf does', async () => {
    const listed = await cli.run(['feature-flags']);
    expect(listed).toMatchObject({ code: 0, stderr: '' });
    expect(listed.stdout).toMatch(/^Getting feature flags as alice\.\.\.\n\nname +state\napp_bits_upload +enabled\n/);
    expect(listed.stdout).toMatch(/\nuser_org_creation +disabled\n$/);
    expect((await cli.run(['feature-flag', 'diego_docker'])).stdout).toBe(
      'Retrieving status of diego_docker as alice...\n\nFeatures       State\ndiego_docker   enabled\n',
    );
    const { result } = JSON.parse((await cli.run(['feature-flag', 'route_sharing', '--json'])).stdout) as { result: unknown };
    expect(result).toEqual({ name: 'route_sharing', enabled: false });
    const { stdout } = await cli.run(['curl', '/v3/feature_flags/diego_docker']);
    expect(JSON.parse(stdout)).toMatchObject({ name: 'diego_docker', enabled: true });
    expect(JSON.parse((await cli.run(['curl', '/v3/feature_flags'])).stdout)).toMatchObject({ pagination: { total_results: 17 } });
  });

  it('are enabled or disabled if they are so already, and otherwise say what decides it', async () => {
    expect(await cli.run(['enable-feature-flag', 'diego_docker'])).toMatchObject({
      code: 0,
      stdout: 'Enabling feature flag diego_docker as alice...\nOK\n\n',
      stderr: '',
    });
    expect((await cli.run(['disable-feature-flag', 'user_org_creation'])).stdout).toContain('OK\n');
    const refused = await cli.run(['enable-feature-flag', 'user_org_creation']);
    expect([refused.code, refused.stderr]).toEqual([
      1,
      "The feature flag 'user_org_creation' is always disabled in kf.\n\nTIP:\n   An admin creates orgs: kf create-org ORG\n",
    ]);
    expect((await cli.run(['disable-feature-flag', 'task_creation'])).code).toBe(1);
  });

  it.each([
    [
      ['feature-flag', 'diego_doker'],
      "Feature flag 'diego_doker' not found.\n\nTIP:\n   Did you mean 'diego_docker'?\n   kf feature-flags\n",
    ],
    [['enable-feature-flag'], 'the required argument `FEATURE_NAME` was not provided'],
    [['feature-flags', 'x'], 'unexpected argument "x"'],
  ])('%j prints %s', async (argv, message) => {
    const { code, stderr } = await cli.run(argv);
    expect([code, stderr]).toEqual([1, expect.stringContaining(message)]);
  });
});

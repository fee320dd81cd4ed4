// feature-flags, feature-flag, enable-feature-flag, disable-feature-flag.

import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { annotations, kinds } from '../../../src/lib/api/group.ts';
import type { CFFeatureFlag } from '../../../src/lib/api/types.generated.ts';
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

const flag = (name = 'diego-docker'): CFFeatureFlag | undefined => cluster.memory.peek(kinds.featureFlag, 'cf', name);

describe('feature flags', () => {
  it('are listed and shown as cf does', async () => {
    const listed = await cli.run(['feature-flags']);
    expect(listed).toMatchObject({ code: 0, stderr: '' });
    expect(listed.stdout).toMatch(/^Getting feature flags as alice\.\.\.\n\nname +state\napp_bits_upload +enabled\n/);
    expect(listed.stdout).toMatch(/\nuser_org_creation +disabled\n$/);
    expect((await cli.run(['feature-flag', 'diego_docker'])).stdout).toBe(
      'Retrieving status of diego_docker as alice...\n\nFeatures       State\ndiego_docker   enabled\n',
    );
    const { result } = JSON.parse((await cli.run(['feature-flag', 'user_org_creation', '--json'])).stdout) as { result: unknown };
    expect(result).toEqual({ name: 'user_org_creation', enabled: false });
    const { stdout } = await cli.run(['curl', '/v3/feature_flags/diego_docker']);
    expect(JSON.parse(stdout)).toMatchObject({ name: 'diego_docker', enabled: true });
    expect(JSON.parse((await cli.run(['curl', '/v3/feature_flags'])).stdout)).toMatchObject({ pagination: { total_results: 17 } });
  });

  it('are disabled and enabled by an operator', async () => {
    expect(await cli.run(['disable-feature-flag', 'diego_docker'])).toMatchObject({
      code: 0,
      stdout: 'Disabling feature flag diego_docker as alice...\nOK\n\n',
      stderr: '',
    });
    expect(flag()).toMatchObject({ metadata: { annotations: { [annotations.changedBy]: 'alice' } }, spec: { enabled: false } });
    expect((await cli.run(['feature-flag', 'diego_docker'])).stdout).toMatch(/\ndiego_docker +disabled\n$/);
    expect((await cli.run(['feature-flags'])).stdout).toMatch(/\ndiego_docker +disabled\nenv_var_visibility +enabled\n/);
    expect((await cli.run(['enable-feature-flag', 'diego_docker', '--json'])).stdout).toContain('"enabled": true');
    expect(flag()?.spec).toEqual({ enabled: true });
    expect((await cli.run(['feature-flag', 'diego_docker'])).stdout).toMatch(/\ndiego_docker +enabled\n$/);
  });

  it('are not written if they are so already, and otherwise say what decides it if nobody can change them', async () => {
    for (const argv of [
      ['enable-feature-flag', 'diego_docker'],
      ['disable-feature-flag', 'user_org_creation'],
    ])
      expect(await cli.run(argv)).toMatchObject({ code: 0, stdout: expect.stringContaining('OK\n') as string, stderr: '' });
    expect(cluster.memory.all(kinds.featureFlag)).toEqual([]);
    const refused = await cli.run(['enable-feature-flag', 'user_org_creation']);
    expect([refused.code, refused.stderr]).toEqual([
      1,
      "The feature flag 'user_org_creation' is always disabled in kf.\n\nTIP:\n   An admin creates orgs: kf create-org ORG\n",
    ]);
    expect((await cli.run(['disable-feature-flag', 'resource_matching'])).code).toBe(1);
    expect(cluster.memory.all(kinds.featureFlag)).toEqual([]);
  });

  it.each([
    ['POST', 'create', undefined],
    ['PATCH', 'patch', { enabled: true }],
  ])('are not changed by others, who learn which right they lack and who can give it (%s)', async (method, verb, spec) => {
    if (spec !== undefined) await cluster.add(kinds.featureFlag, { metadata: { name: 'task-creation', namespace: 'cf' }, spec });
    const kind = 'cffeatureflags.korifi.cloudfoundry.org';
    const text = `${kind} is forbidden: User "alice" cannot ${verb} resource "cffeatureflags" in API group "korifi.cloudfoundry.org" in the namespace "cf"`;
    cluster.server.on(`${method} /apis/korifi.cloudfoundry.org/v1alpha1/namespaces/cf/cffeatureflags.*`, (call) =>
      call.fail(403, 'Forbidden', text),
    );
    const run = await cli.run(['disable-feature-flag', 'task_creation']);
    expect(run.code).toBe(1);
    expect(run.stderr).toContain(`may not ${verb === 'patch' ? 'change' : 'create'} feature flags`);
    expect(run.stderr).toContain('An administrator of the cluster must grant it.');
  });

  it('are as in a new installation where an earlier release has no such kind', async () => {
    cluster.missing.add(kinds.featureFlag.plural);
    expect((await cli.run(['feature-flag', 'task_creation'])).stdout).toMatch(/\ntask_creation +enabled\n$/);
    expect((await cli.run(['feature-flags'])).stdout).toMatch(/\ntask_creation +enabled\n/);
    const run = await cli.run(['disable-feature-flag', 'task_creation']);
    expect([run.code, run.stderr]).toEqual([1, expect.stringContaining('is of an earlier release of kf')]);
  });

  it('are changed by the v3 API, with a text for refusals', async () => {
    const patch = (name: string, body: object) =>
      cli.run(['curl', '-X', 'PATCH', `/v3/feature_flags/${name}`, '-d', JSON.stringify(body), '--fail']);
    const changed = await patch('diego_docker', { enabled: false, custom_error_message: 'no images here' });
    const wanted = { name: 'diego_docker', enabled: false, custom_error_message: 'no images here' };
    expect(JSON.parse(changed.stdout)).toMatchObject({ ...wanted, updated_at: expect.stringMatching(/^\d{4}-.*Z$/) as string });
    expect(JSON.parse((await cli.run(['curl', '/v3/feature_flags/diego_docker'])).stdout)).toMatchObject(wanted);
    await patch('diego_docker', { enabled: false, custom_error_message: null });
    expect(flag()?.spec).toEqual({ enabled: false });
    for (const [name, body, refusal] of [
      ['diego_docker', {}, 'Enabled must be a boolean'],
      ['diego_docker', { enabled: true, custom_error_message: 1 }, 'Custom error message must be a string'],
      ['user_org_creation', { enabled: true }, 'is always disabled in kf'],
      ['no_such_flag', { enabled: true }, 'Feature flag not found'],
    ] as const)
      expect((await patch(name, body)).stderr).toContain(refusal);
    expect(flag()?.spec).toEqual({ enabled: false });
  });

  it('that refuse a role say so, in place of who can give it', async () => {
    const policy = "ValidatingAdmissionPolicy 'kf-feature-flags' with binding 'kf-feature-flags' denied request";
    const why = 'Feature Disabled: set_roles_by_username; an operator enables it (kf enable-feature-flag set_roles_by_username)';
    cluster.server.on('POST .*/rolebindings.*', (call) =>
      call.fail(403, 'Forbidden', `rolebindings.rbac.authorization.k8s.io "x" is forbidden: ${policy}: ${why}`),
    );
    const run = await cli.run(['set-org-role', 'bob', 'example-org', 'OrgManager']);
    expect([run.code, run.stderr]).toEqual([1, expect.stringContaining(why)]);
    expect(run.stderr).not.toContain('A manager of the org');
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

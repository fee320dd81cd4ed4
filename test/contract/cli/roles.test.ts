// Roles of users: set-org-role, set-space-role, their counterparts, org-users and space-users.

import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { roleBindingType, type RoleBinding } from '../../../src/lib/api/core.ts';
import { roleBindingName } from '../../../src/lib/api/names.ts';
import { bundleForTests, Cli } from '../../support/cli.ts';
import { ServedCluster } from '../../support/served-cluster.ts';

const bundle = bundleForTests();
const rbac = '/apis/rbac.authorization.k8s.io/v1/namespaces';
const refused =
  'rolebindings.rbac.authorization.k8s.io "x" is forbidden: user "alice" is attempting to grant RBAC permissions not currently held';
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

type Subjects = NonNullable<RoleBinding['subjects']>;
const user = (name: string): Subjects[number] => ({ kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name });
/** As somebody makes it with kubectl. */
const bound = (name: string, ns: string, role: string, subjects: Subjects, labels: Record<string, string> = {}) =>
  cluster.add(roleBindingType, {
    metadata: { name, namespace: ns, labels },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: `korifi-controllers-${role}` },
    subjects,
  });
const roles = (): string[] =>
  cluster.memory
    .all(roleBindingType)
    .map(({ metadata, roleRef, subjects }) => `${metadata.namespace ?? ''} ${roleRef.name.slice(19)} ${subjects?.[0]?.name ?? ''}`)
    .toSorted();
const setSpaceRole = ['set-space-role', 'bob', 'example-org', 'example-space', 'SpaceDeveloper'];

describe('set-space-role', () => {
  it('gives the role, and makes the user one of the org and of the installation', async () => {
    const run = await cli.run(setSpaceRole);
    expect(run).toMatchObject({
      code: 0,
      stdout: 'Assigning role SpaceDeveloper to user bob in org example-org / space example-space as alice...\nOK\n\n',
      stderr: '',
    });
    expect(roles()).toEqual(['cf root-namespace-user bob', 'org-guid organization-user bob', 'space-guid space-developer bob']);
    const binding = cluster.memory.peek(roleBindingType, 'space-guid', roleBindingName('space_developer', { user: 'bob' }));
    expect(binding?.metadata.annotations).toMatchObject({ 'cloudfoundry.org/propagate-cf-role': 'false' });
    expect(binding?.metadata.labels?.['cloudfoundry.org/role-guid']).toMatch(/^[0-9a-f-]{36}$/);
  });

  it('a second time succeeds and says so, also if kubectl gave the role', async () => {
    await bound('by-hand', 'space-guid', 'space-developer', [user('bob')]);
    const run = await cli.run(setSpaceRole);
    expect(run).toMatchObject({
      code: 0,
      stderr: "User 'bob' already has role 'SpaceDeveloper' in org 'example-org' / space 'example-space'.\n",
    });
    expect(roles().filter((role) => role.startsWith('space-guid'))).toHaveLength(1);
  });

  it('takes a service account by its user name', async () => {
    await cli.run(['set-space-role', 'system:serviceaccount:ci:deployer', 'example-org', 'example-space', 'spacedeveloper', '--json']);
    const name = roleBindingName('space_developer', { namespace: 'ci', name: 'deployer' });
    expect(cluster.memory.peek(roleBindingType, 'space-guid', name)?.subjects).toEqual([
      { kind: 'ServiceAccount', namespace: 'ci', name: 'deployer' },
    ]);
  });

  it('by a manager leaves it to the controller to make the user one of the installation', async () => {
    cluster.server.on(`POST ${rbac}/cf/rolebindings`, (call) => call.fail(403, 'Forbidden', refused));
    const run = await cli.run(setSpaceRole);
    expect([run.code, run.stderr]).toEqual([0, '']);
    expect(roles()).toEqual(['org-guid organization-user bob', 'space-guid space-developer bob']);
  });

  it('that Kubernetes refuses gives nothing, and says who can', async () => {
    cluster.server.on(`POST ${rbac}/space-guid/rolebindings`, (call) => call.fail(403, 'Forbidden', refused));
    const run = await cli.run(setSpaceRole);
    expect(run.code).toBe(1);
    expect(run.stderr).toContain(
      "Kubernetes does not allow you to give the role SpaceDeveloper in org 'example-org' / space 'example-space'.",
    );
    expect(run.stderr).toContain('A manager of the org, or an administrator of the cluster, can do it.');
    expect(roles()).toEqual([]);
  });

  it.each([
    [['set-space-role', 'bob', 'none', 'x', 'SpaceDeveloper'], "Organization 'none' not found."],
    [['set-space-role', 'bob', 'example-org', 'none', 'SpaceDeveloper'], "Space 'none' not found."],
    [
      ['set-space-role', 'bob', 'example-org', 'example-space', 'Boss'],
      'ROLE must be "SpaceManager" or "SpaceDeveloper" or "SpaceAuditor" or "SpaceSupporter"',
    ],
    [['set-org-role', 'bob', 'example-org', 'SpaceDeveloper'], 'ROLE must be "OrgManager" or "BillingManager" or "OrgAuditor"'],
    [['set-org-role', 'bob', 'example-org'], 'the required argument `ROLE` was not provided'],
    [[...setSpaceRole, '--client'], "'--client' of 'set-space-role' has no effect in kf"],
    [['unset-org-role', 'bob', 'example-org', 'OrgManager', '--origin', 'ldap'], "'--origin' of 'unset-org-role' has no effect in kf"],
  ])('%j prints %s', async (argv, message) => {
    const run = await cli.run(argv);
    expect([run.code, run.stderr]).toEqual([1, expect.stringContaining(message)]);
    expect(roles()).toEqual([]);
  });
});

describe('unset-space-role', () => {
  const unset = ['unset-space-role', 'bob', 'example-org', 'example-space', 'SpaceDeveloper'];

  it('takes the role, and leaves other roles and users', async () => {
    await cli.run(setSpaceRole);
    await cli.run(['set-space-role', 'carol', 'example-org', 'example-space', 'SpaceDeveloper']);
    await bound('by-hand', 'space-guid', 'space-developer', [user('bob')]);
    expect(await cli.run(unset)).toMatchObject({
      code: 0,
      stdout: 'Removing role SpaceDeveloper from user bob in org example-org / space example-space as alice...\nOK\n\n',
      stderr: '',
    });
    expect(roles().filter((role) => role.startsWith('space-guid'))).toEqual(['space-guid space-developer carol']);
    expect(await cli.run(unset)).toMatchObject({ code: 0, stderr: expect.stringContaining("User 'bob' does not have role") as string });
  });

  it('leaves a binding that gives the role to others too, and names it', async () => {
    await bound('team', 'space-guid', 'space-developer', [user('bob'), user('carol')]);
    const run = await cli.run(unset);
    expect([run.code, run.stderr]).toEqual([
      1,
      expect.stringContaining("The role binding 'team' gives the role SpaceDeveloper to others too"),
    ]);
    expect(run.stderr).toContain('kubectl edit rolebinding team -n space-guid');
    expect(roles()).toHaveLength(1);
  });
});

describe('set-org-role and unset-org-role', () => {
  it('give the role of a manager, which the controller hands down to the spaces, and take it', async () => {
    expect(await cli.run(['set-org-role', 'bob', 'example-org', 'OrgManager'])).toMatchObject({
      code: 0,
      stdout: 'Assigning role OrgManager to user bob in org example-org as alice...\nOK\n\n',
    });
    const binding = cluster.memory.peek(roleBindingType, 'org-guid', roleBindingName('organization_manager', { user: 'bob' }));
    expect(binding?.metadata.annotations).toMatchObject({ 'cloudfoundry.org/propagate-cf-role': 'true' });
    expect(await cli.run(['unset-org-role', 'bob', 'example-org', 'OrgManager'])).toMatchObject({
      code: 0,
      stdout: 'Removing role OrgManager from user bob in org example-org as alice...\nOK\n\n',
    });
    expect(roles()).toEqual(['cf root-namespace-user bob', 'org-guid organization-user bob']);
  });
});

describe('the other roles of cf', () => {
  it.each([
    [['set-org-role', 'bob', 'example-org', 'OrgAuditor'], 'org-guid organization-auditor bob'],
    [['set-org-role', 'bob', 'example-org', 'billingmanager'], 'org-guid organization-billing-manager bob'],
    [['set-space-role', 'bob', 'example-org', 'example-space', 'SpaceSupporter'], 'space-guid space-supporter bob'],
  ])('%j gives the role, and its counterpart takes it', async ([command = '', ...argv], binding) => {
    expect((await cli.run([command, ...argv])).code).toBe(0);
    expect(roles()).toContain(binding);
    expect((await cli.run([`un${command}`, ...argv])).code).toBe(0);
    expect(roles()).not.toContain(binding);
  });
});

describe('org-users and space-users', () => {
  beforeEach(async () => {
    await cli.run(['set-org-role', 'erin', 'example-org', 'OrgManager']);
    await cli.run(setSpaceRole);
    await bound('ops', 'space-guid', 'space-auditor', [{ kind: 'Group', apiGroup: 'rbac.authorization.k8s.io', name: 'ops' }]);
    await bound('ci', 'space-guid', 'space-developer', [{ kind: 'ServiceAccount', namespace: 'ci', name: 'deployer' }]);
    await bound('copy', 'space-guid', 'space-manager', [user('mallory')], { 'cloudfoundry.org/propagated-from': 'org-guid' });
  });

  it('list the users by role', async () => {
    expect((await cli.run(['org-users', 'example-org'])).stdout).toBe(
      [
        'Getting users in org example-org as alice...',
        ...['', 'ORG MANAGER', '  erin (kubernetes)'],
        ...['', 'BILLING MANAGER', '  No BILLING MANAGER found'],
        ...['', 'ORG AUDITOR', '  No ORG AUDITOR found', '', ''],
      ].join('\n'),
    );
    expect((await cli.run(['space-users', 'example-org', 'example-space'])).stdout).toBe(
      [
        'Getting users in org example-org / space example-space as alice...',
        ...['', 'SPACE MANAGER', '  No SPACE MANAGER found'],
        ...['', 'SPACE DEVELOPER', '  bob (kubernetes)', '  system:serviceaccount:ci:deployer (client)'],
        ...['', 'SPACE AUDITOR', '  ops (group)'],
        ...['', 'SPACE SUPPORTER', '  No SPACE SUPPORTER found', '', ''],
      ].join('\n'),
    );
  });

  it('-a lists all users of the org', async () => {
    expect((await cli.run(['org-users', 'example-org', '-a'])).stdout).toContain('ORG USERS\n  bob (kubernetes)\n  erin (kubernetes)\n');
  });

  it('--json names roles and users', async () => {
    const { result } = JSON.parse((await cli.run(['space-users', 'example-org', 'example-space', '--json'])).stdout) as { result: unknown };
    expect(result).toContainEqual({ role: 'SpaceAuditor', users: [{ name: 'ops', origin: 'group' }] });
  });

  it.each([
    [['org-users', 'none'], "Organization 'none' not found."],
    [['space-users', 'example-org'], 'the required argument `SPACE` was not provided'],
  ])('%j prints %s', async (argv, message) => {
    const run = await cli.run(argv);
    expect([run.code, run.stderr]).toEqual([1, expect.stringContaining(message)]);
  });
});

it.each([
  ['create-user', 'set-space-role USER ORG SPACE SpaceDeveloper'],
  ['delete-user', 'unset-space-role USER ORG SPACE ROLE'],
])('%s names the command for roles, because users are those of the cluster', async (command, instead) => {
  const run = await cli.run([command, 'bob', 'secret']);
  expect([run.code, run.stdout]).toEqual([1, 'FAILED\n']);
  expect(run.stderr).toContain('users are those of the cluster');
  expect(run.stderr).toContain(`kf ${instead}`);
});

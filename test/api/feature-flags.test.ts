// What a disabled feature flag refuses at the API server, and to whom.

import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { changeableFlags } from '../../src/lib/cf/feature-flags.ts';
import { flagObjectName } from '../../src/lib/api/names.ts';
import { cfRoles } from '../../src/lib/api/roles.ts';
import { buildRoleBinding } from '../../src/templates/tenancy.ts';
import { until } from '../support/until.ts';
import { ask, installKinds, installPolicies, installRoles, kubectl, makeNamespace } from './kubectl.ts';

const [org, space, outside] = [randomUUID(), randomUUID(), `outside-${randomUUID()}`];
const group = 'korifi.cloudfoundry.org';
const apiVersion = `${group}/v1alpha1`;
const mark = { 'kf.cloudfoundry.org/managed-by': 'kf', [`${group}/org-guid`]: org };
const [developer, manager, operator] = ['dora', 'orla', 'otto'].map((name) => `${name}-${space}`) as [string, string, string];
const autoscaler = 'system:serviceaccount:kube-system:horizontal-pod-autoscaler';
const controller = 'system:serviceaccount:kf-system:kf-controller';
const namespaces = 'system:serviceaccount:kube-system:namespace-controller';

const give = (user: string, role: keyof typeof cfRoles, namespace: string) =>
  kubectl(['apply', '--server-side', '-f', '-'], {
    input: buildRoleBinding({ role: cfRoles[role], subject: { user }, namespace, guid: randomUUID() }),
  });

const object = (kind: string, name: string, spec: object) => ({ apiVersion, kind, metadata: { name, namespace: space }, spec });
const app = (name: string, type: string) =>
  object('CFApp', name, { displayName: name, desiredState: 'STOPPED', lifecycle: { type, data: { stack: '' } } });
const oldRoute = object('CFRoute', 'old', { host: 'old', domainRef: { name: 'd', namespace: 'cf' } });
const source = { registry: { image: 'nginx:1' } };
const cfPackage = (name: string, type: string) => object('CFPackage', name, { type, appRef: { name: 'app' }, source });
const web = object('CFProcess', 'web', {
  appRef: { name: 'app' },
  ...{ processType: 'web', memoryMB: 64, diskQuotaMB: 64, desiredInstances: 1 },
  healthCheck: { type: 'port', data: { invocationTimeoutSeconds: 1, timeoutSeconds: 1 } },
});
const scaler = {
  ...{ apiVersion: 'autoscaling/v2', kind: 'HorizontalPodAutoscaler' },
  metadata: { name: 'scaler', namespace: space },
  spec: { minReplicas: 1, maxReplicas: 2, scaleTargetRef: { apiVersion, kind: 'CFProcess', name: 'web' } },
};
const roleOf = (user: string) => buildRoleBinding({ role: cfRoles.spaceAuditor, subject: { user }, namespace: space, guid: randomUUID() });

beforeAll(async () => {
  await installKinds();
  await installRoles();
  await installPolicies();
  await makeNamespace(org, mark);
  await makeNamespace(space, { ...mark, [`${group}/space-guid`]: space });
  await makeNamespace(outside);
  for (const user of [developer, manager]) await give(user, 'cfUser', 'cf');
  await give(developer, 'organizationUser', org);
  await give(developer, 'spaceDeveloper', space);
  for (const ns of [org, space]) await give(manager, 'organizationManager', ns);
  for (const ns of ['cf', space]) await give(operator, 'admin', ns);
  await kubectl(['create', '-f', '-'], {
    input: [app('app', 'buildpack'), app('docker', 'docker'), cfPackage('bits', 'bits'), web, oldRoute],
  });
  await kubectl(['create', '-f', '-'], { input: roleOf('ann') });
  await until('the rights', async () => (await ask(['get', 'cfapps', '-n', space], { as: developer })).code === 0);
});

const clear = async (): Promise<void> => void (await kubectl(['delete', 'cffeatureflags', '--all', '-n', 'cf']));
afterEach(clear);
afterAll(async () => {
  for (const user of [developer, manager, operator]) {
    const { items } = JSON.parse(await kubectl(['get', 'rolebindings', '-n', 'cf', '-o', 'json'])) as {
      items: { metadata: { name: string }; subjects?: { name: string }[] }[];
    };
    for (const { metadata, subjects = [] } of items)
      if (subjects.some(({ name }) => name === user)) await kubectl(['delete', 'rolebinding', '-n', 'cf', metadata.name]);
  }
});

const flagObject = (flag: string, spec: object = { enabled: false }, namespace = 'cf') => ({
  ...{ apiVersion, kind: 'CFFeatureFlag' },
  metadata: { name: flagObjectName(flag), namespace },
  spec,
});

interface Deed {
  what: string;
  flag: string;
  args: string[];
  input?: object;
  /** Who may do it while the flag is enabled. */
  who?: string;
}

const dry = '--dry-run=server';
const creating = (flag: string, what: string, input: object, who = developer): Deed => ({
  ...{ flag, what, input, who },
  args: ['create', dry, '-f', '-'],
});
const patching = (flag: string, what: string, kind: string, name: string, spec: object): Deed => ({
  ...{ flag, what },
  args: ['patch', kind, name, '-n', space, dry, '--type=merge', '-p', JSON.stringify({ spec })],
});

async function said({ args, input }: Deed, as: string): Promise<string> {
  const { code, stderr } = await ask(args, { ...(input === undefined ? {} : { input }), as });
  return code === 0 ? 'done' : stderr;
}

const deeds: Deed[] = [
  creating('diego_docker', 'an app with docker', app('new', 'docker')),
  creating('diego_docker', 'a package with docker', cfPackage('new', 'docker')),
  creating('app_bits_upload', 'a package of source code', cfPackage('new', 'bits')),
  patching('app_bits_upload', 'another source for a package', 'cfpackage', 'bits', { source: { registry: { image: 'nginx:2' } } }),
  creating('route_creation', 'a route', object('CFRoute', 'new', { host: 'new', domainRef: { name: 'd', namespace: 'cf' } })),
  creating(
    'route_sharing',
    'a route of another space',
    object('CFRoute', 'half', {
      ...{ host: 'half', domainRef: { name: 'd', namespace: 'cf' } },
      sharedFrom: { space: 'other-space', route: 'theirs', uid: 'uid' },
    }),
  ),
  patching('route_sharing', 'a route for another space', 'cfroute', 'old', { sharedWith: ['other-space'] }),
  creating('task_creation', 'a task', object('CFTask', 'new', { appRef: { name: 'app' }, command: 'true' })),
  creating(
    'service_instance_creation',
    'a service instance',
    object('CFServiceInstance', 'new', {
      displayName: 'new',
      type: 'user-provided',
      secretName: 'new',
      planGuid: '',
      tags: [],
      parameters: {},
    }),
  ),
  patching('app_scaling', 'more instances', 'cfprocess', 'web', { desiredInstances: 2 }),
  patching('app_scaling', 'no instances', 'cfprocess', 'web', { desiredInstances: 0 }),
  patching('app_scaling', 'more memory', 'cfprocess', 'web', { memoryMB: 65 }),
  patching('app_scaling', 'more disk', 'cfprocess', 'web', { diskQuotaMB: 65 }),
  creating('app_scaling', 'an autoscaler', scaler),
  creating('set_roles_by_username', 'a role for another user', roleOf('bob'), manager),
  {
    ...{ flag: 'unset_roles_by_username', what: 'a role taken away', who: manager },
    args: ['delete', 'rolebinding', '-n', space, dry, roleOf('ann').metadata.name ?? ''],
  },
];

const refusal = (flag: string, text = flag): string => `Feature Disabled: ${text}; an operator enables it (kf enable-feature-flag ${flag})`;

async function disable(flag: string, spec?: object): Promise<void> {
  await kubectl(['create', '-f', '-'], { input: flagObject(flag, spec), as: operator });
}

describe('a disabled feature flag', () => {
  test('has a deed for each flag that can be changed', () => {
    expect([...new Set(deeds.map(({ flag }) => flag))].toSorted()).toEqual([...changeableFlags].toSorted());
  });

  test.each(deeds)('$flag refuses $what, until it is enabled, and not to an operator', async (deed) => {
    const who = deed.who ?? developer;
    expect(await said(deed, who)).toBe('done');
    await disable(deed.flag);
    await until('the refusal', async () => (await said(deed, who)) !== 'done');
    expect(await said(deed, who)).toContain(refusal(deed.flag));
    expect(await said(deed, operator)).toBe('done');
    await kubectl(
      ['patch', 'cffeatureflag', flagObjectName(deed.flag), '-n', 'cf', '--type=merge', '-p', JSON.stringify({ spec: { enabled: true } })],
      { as: operator },
    );
    await until('the flag to be enabled', async () => (await said(deed, who)) === 'done');
  });

  test('says the text of the operator in place of its name', async () => {
    const [deed] = deeds as [Deed];
    await disable(deed.flag, { enabled: false, errorMessage: 'build from source here' });
    await until('the refusal', async () => (await said(deed, developer)) !== 'done');
    expect(await said(deed, developer)).toContain(refusal(deed.flag, 'build from source here'));
  });

  test('leaves all else alone, also of apps that it would refuse', async () => {
    for (const flag of changeableFlags) await disable(flag);
    for (const deed of deeds) await until(deed.what, async () => (await said(deed, deed.who ?? developer)) !== 'done');
    const others = [
      patching('', 'a start', 'cfapp', 'docker', { desiredState: 'STARTED' }),
      patching('', 'a start', 'cfapp', 'app', { desiredState: 'STARTED' }),
      patching('', 'another command', 'cfprocess', 'web', { command: 'other' }),
      patching('', 'another destination', 'cfroute', 'old', { destinations: [{ guid: 'g', appRef: { name: 'app' }, processType: 'web' }] }),
      patching('', 'the same number', 'cfprocess', 'web', { desiredInstances: 1 }),
      creating('', 'an app', app('new', 'buildpack')),
      creating('', 'a build', object('CFBuild', 'new', { appRef: { name: 'app' }, packageRef: { name: 'bits' }, ...lifecycle })),
    ];
    for (const deed of others) expect(await said(deed, developer), deed.what).toBe('done');
    // As in cf, who creates a space gives the roles of it to himself.
    expect(await said(creating('', 'an own role', roleOf(manager)), manager)).toBe('done');
    expect(
      await said(creating('', 'a role outside of kf', { ...roleOf('bob'), metadata: { name: 'x', namespace: outside } }), operator),
    ).toContain('cannot create resource "rolebindings"');
  });

  const lifecycle = { lifecycle: { type: 'buildpack', data: { stack: '' } }, stagingMemoryMB: 1, stagingDiskMB: 1 };

  test('works after the policies were removed and installed again, as by kf uninstall --keep-data and another kf setup', async () => {
    await disable('task_creation');
    const task = deeds.find(({ flag }) => flag === 'task_creation') as Deed;
    await until('the refusal', async () => (await said(task, developer)) !== 'done');
    for (const kind of ['binding', '']) await kubectl(['delete', `validatingadmissionpolicy${kind}`, 'kf-feature-flags']);
    await until('the policy to be gone', async () => (await said(task, developer)) === 'done');
    // The API server looks every second at what the bindings name.
    await sleep(3_000);
    await installPolicies();
    await until('the refusal', async () => (await said(task, developer)) !== 'done');
    expect(await said(task, developer)).toContain(refusal('task_creation'));
    await clear();
    await until('the flag to be gone', async () => (await said(task, developer)) === 'done');
    await disable('task_creation');
    await until('the refusal', async () => (await said(task, developer)) !== 'done');
  });

  test("stops neither the controller nor the cluster's own controllers", async () => {
    const subjects = [{ kind: 'ServiceAccount', name: 'kf-controller', namespace: 'kf-system' }];
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'kf-controller' };
    await kubectl(['apply', '--server-side', '-f', '-'], {
      input: {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'ClusterRoleBinding',
        metadata: { name: 'kf-controller' },
        roleRef,
        subjects,
      },
    });
    for (const flag of changeableFlags) await disable(flag);
    for (const deed of deeds) await until(deed.what, async () => (await said(deed, deed.who ?? developer)) !== 'done');
    const own = deeds.filter(({ args, flag }) => flag === 'app_scaling' && args[0] === 'patch');
    for (const deed of own) expect(await said(deed, controller), deed.what).toBe('done');
    const scale: Deed = {
      ...{ flag: 'app_scaling', what: 'a scale' },
      args: ['scale', 'cfprocess', 'web', '-n', space, dry, '--replicas=2'],
    };
    expect(await said(scale, developer)).toContain(refusal('app_scaling'));
    expect(await said(scale, autoscaler)).not.toContain('Feature Disabled');
    const update = {
      ...scale,
      args: ['patch', 'cfprocess', 'web', '-n', space, dry, '--subresource=scale', '--type=merge', '-p', '{"spec":{"replicas":2}}'],
    };
    expect(await said(update, developer)).toContain(refusal('app_scaling'));
    const taken = deeds.find(({ flag }) => flag === 'unset_roles_by_username');
    expect(taken && (await said(taken, namespaces))).toBe('done');
  });
});

describe('feature flags', () => {
  test('are read by everybody in kf, and written by operators only, in the root namespace only', async () => {
    const wanted = creating('', 'a flag', flagObject('task_creation'));
    for (const who of [developer, manager]) {
      expect((await ask(['get', 'cffeatureflags', '-n', 'cf'], { as: who })).code).toBe(0);
      expect(await said(wanted, who)).toContain('cannot create resource "cffeatureflags"');
    }
    expect(await said(wanted, controller)).toContain('cannot create resource "cffeatureflags"');
    expect(await said(wanted, operator)).toBe('done');
    const elsewhere = creating('', 'a flag', flagObject('task_creation', { enabled: false }, space));
    expect(await said(elsewhere, operator)).toContain(`A feature flag can only be created in namespace cf, not in ${space}`);
  });
});

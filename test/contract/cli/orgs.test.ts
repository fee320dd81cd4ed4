// org, space, their deletion and renaming, and logout. Tests act as the controller.

import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { configMapType, resourceQuotaType } from '../../../src/lib/api/core.ts';
import { kinds, places } from '../../../src/lib/api/group.ts';
import type { ResourceType } from '../../../src/lib/api/object.ts';
import { bundleForTests, Cli } from '../../support/cli.ts';
import { ServedCluster } from '../../support/served-cluster.ts';

const bundle = bundleForTests();
const api = '/apis/korifi.cloudfoundry.org/v1alpha1/namespaces';
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

const target = async (): Promise<void> => void (await cli.run(['target', '-o', 'example-org', '-s', 'example-space']));
const condition = (type: string, status: 'True' | 'False', observedGeneration: number, message = '', reason = type) => ({
  ...{ type, status, reason, message, observedGeneration },
  lastTransitionTime: '2026-08-07T10:16:20Z',
});
const statusOf = (type: ResourceType, ns: string, name: string, ...conditions: ReturnType<typeof condition>[]) =>
  cluster.memory.mergePatch(type, ns, name, { status: { conditions } }, { subresource: 'status' });
const finalizers = (type: ResourceType, ns: string, name: string, value: string[] | null) =>
  cluster.memory.mergePatch(type, ns, name, { metadata: { finalizers: value } });

/** Setup made this org and space. */
async function tellDefaults(): Promise<void> {
  const map = await cluster.memory.get(configMapType, 'cf', places.info);
  const defaults = { org: { name: 'example-org', guid: 'org-guid' }, space: { name: 'example-space', guid: 'space-guid' } };
  const info = { ...(JSON.parse(map?.data?.[places.infoKey] ?? '{}') as object), defaults };
  await cluster.memory.mergePatch(configMapType, 'cf', places.info, { data: { [places.infoKey]: JSON.stringify(info) } });
}

describe('org', () => {
  it('shows domains, quota and spaces', async () => {
    await cluster.add(resourceQuotaType, { metadata: { name: 'kf-limits', namespace: 'org-guid' } });
    await cluster.add(kinds.space, { metadata: { name: 'dev-guid', namespace: 'org-guid' }, spec: { displayName: 'dev' } });
    expect(await cli.run(['org', 'example-org'])).toMatchObject({
      code: 0,
      stderr: '',
      stdout: [
        'Getting info for org example-org as alice...',
        '',
        'name:                 example-org',
        'domains:              apps.localhost',
        'quota:                kf-limits',
        'spaces:               dev, example-space',
        'isolation segments:   ',
        '',
      ].join('\n'),
    });
  });

  it('--guid prints the GUID alone, and --json all of it', async () => {
    expect(await cli.run(['org', 'example-org', '--guid'])).toMatchObject({ code: 0, stdout: 'org-guid\n', stderr: '' });
    const { result } = JSON.parse((await cli.run(['org', 'example-org', '--json'])).stdout) as { result: unknown };
    expect(result).toEqual({
      ...{ name: 'example-org', guid: 'org-guid', domains: ['apps.localhost'], quotas: [] },
      spaces: [{ name: 'example-space', guid: 'space-guid' }],
    });
  });

  it('shows n/a for a quota that the user may not read', async () => {
    cluster.server.on('GET /api/v1/namespaces/org-guid/resourcequotas', (call) => call.fail(403, 'Forbidden', 'is forbidden'));
    expect((await cli.run(['org', 'example-org'])).stdout).toMatch(/^quota: +n\/a$/m);
  });

  it('that does not exist is an error, also for --guid', async () => {
    for (const more of [[], ['--guid']]) {
      const run = await cli.run(['org', 'exampel-org', ...more]);
      expect([run.code, run.stderr]).toEqual([1, expect.stringContaining("Organization 'exampel-org' not found.")]);
      expect(run.stderr).toContain("Did you mean 'example-org'?");
    }
  });
});

describe('space', () => {
  it('shows the org, apps and services', async () => {
    await target();
    const lifecycle = { type: 'buildpack' as const, data: { stack: '' } };
    for (const displayName of ['web', 'api']) {
      const spec = { displayName, desiredState: 'STARTED' as const, lifecycle };
      await cluster.add(kinds.app, { metadata: { name: `${displayName}-guid`, namespace: 'space-guid' }, spec });
    }
    await cli.run(['cups', 'db', '-p', '{"a":"b"}']);
    expect((await cli.run(['space', 'example-space'])).stdout).toBe(
      [
        'Getting info for space example-space in org example-org as alice...',
        '',
        'name:                      example-space',
        'org:                       example-org',
        'apps:                      api, web',
        'services:                  db',
        'isolation segment:         ',
        'quota:                     ',
        'running security groups:   ',
        'staging security groups:   ',
        '',
      ].join('\n'),
    );
  });

  it('--guid prints the GUID alone', async () => {
    await target();
    expect(await cli.run(['space', 'example-space', '--guid'])).toMatchObject({ code: 0, stdout: 'space-guid\n', stderr: '' });
  });

  it('shows n/a for what a user without a role in it may not read', async () => {
    await target();
    cluster.server.on(`GET ${api}/space-guid/cfapps`, (call) => call.fail(403, 'Forbidden', 'cfapps is forbidden'));
    expect((await cli.run(['space', 'example-space'])).stdout).toMatch(/^apps: +n\/a\nservices: +$/m);
  });

  it.each([
    [['space', 'exampel-space'], "Space 'exampel-space' not found."],
    [['space', 'example-space', '--security-group-rules'], "kf does not support '--security-group-rules' of 'space' yet."],
    [['space'], 'Incorrect Usage: the required argument `SPACE` was not provided'],
  ])('%j prints %s', async (argv, message) => {
    await target();
    const run = await cli.run(argv);
    expect([run.code, run.stderr]).toEqual([1, expect.stringContaining(message)]);
  });

  it('needs a targeted org', async () => {
    expect((await cli.run(['space', 'example-space'])).stderr).toBe("No org targeted, use 'kf target -o ORG' to target an org.\n");
  });
});

describe('delete-space', () => {
  it('waits until the space is gone, names what blocks it, and clears the target', async () => {
    await target();
    await finalizers(kinds.space, 'org-guid', 'space-guid', ['kf.test/slow']);
    const running = cli.run(['delete-space', 'example-space', '-f']);
    await expect.poll(() => cluster.memory.peek(kinds.space, 'org-guid', 'space-guid')?.metadata.deletionTimestamp).toBeDefined();
    await statusOf(kinds.space, 'org-guid', 'space-guid', condition('Ready', 'False', 1, 'The namespace waits for a volume.', 'Deleting'));
    await expect.poll(() => cluster.server.calls.some(({ path, query }) => path.endsWith('/cfspaces') && query.has('watch'))).toBe(true);
    await finalizers(kinds.space, 'org-guid', 'space-guid', null);
    const run = await running;
    expect(run).toMatchObject({
      code: 0,
      stdout: [
        'Deleting space example-space in org example-org as alice...',
        'OK',
        '',
        "TIP: No space targeted, use 'kf target -s' to target a space.",
        '',
      ].join('\n'),
    });
    expect(run.stderr).toContain('Waiting: The namespace waits for a volume.');
    expect(cli.state()).toMatchObject({ OrganizationFields: { Name: 'example-org' }, SpaceFields: { Name: '' } });
  });

  it('-o deletes the space of that org, without a target', async () => {
    const run = await cli.run(['delete-space', '-f', 'example-space', '-o', 'example-org']);
    expect(run).toMatchObject({ code: 0, stdout: 'Deleting space example-space in org example-org as alice...\nOK\n\n' });
    expect(cluster.memory.all(kinds.space)).toEqual([]);
  });

  it('of a space that does not exist succeeds and says so', async () => {
    await target();
    expect(await cli.run(['delete-space', 'none', '-f'])).toMatchObject({
      code: 0,
      stdout: 'Deleting space none in org example-org as alice...\nOK\n\n',
      stderr: "Space 'none' does not exist.\n",
    });
  });

  it('without -f and without a terminal deletes nothing, and names the flag', async () => {
    await target();
    const run = await cli.run(['delete-space', 'example-space']);
    expect(run.stdout).toContain('This action impacts all resources scoped to this space, including apps,');
    expect([run.code, run.stderr]).toEqual([1, expect.stringContaining('-f')]);
    expect(cluster.server.callsOf('DELETE .*')).toEqual([]);
  });

  it('that is interrupted says that the deletion goes on', async () => {
    await target();
    await finalizers(kinds.space, 'org-guid', 'space-guid', ['kf.test/slow']);
    cluster.memory.intercept = (verb, { plural }) => {
      if (verb !== 'watch' || plural !== kinds.space.plural) return;
      void statusOf(kinds.space, 'org-guid', 'space-guid', condition('Ready', 'False', 1, 'It waits.', 'Deleting'));
    };
    const run = await cli.run(['delete-space', 'example-space', '-f'], { kill: { after: 'It waits.', signal: 'SIGINT' } });
    expect([run.code, run.stderr]).toEqual([
      130,
      expect.stringContaining('The deletion goes on in the cluster: kf spaces --org example-org'),
    ]);
    expect(cli.state()).toMatchObject({ SpaceFields: { Name: 'example-space' } });
  });

  it('names the right that lacks, and who gives it', async () => {
    await target();
    const text =
      'cfspaces.korifi.cloudfoundry.org "space-guid" is forbidden: User "alice" cannot delete resource "cfspaces" in API group "korifi.cloudfoundry.org" in the namespace "org-guid"';
    cluster.server.on(`DELETE ${api}/org-guid/cfspaces/space-guid`, (call) => call.fail(403, 'Forbidden', text));
    const run = await cli.run(['delete-space', 'example-space', '-f']);
    expect(run.code).toBe(1);
    expect(run.stderr).toContain(
      [
        'Error from Kubernetes: the user "alice" may not delete spaces in org \'example-org\'.\n\nTIP:',
        'A manager of the org or space, or an administrator of the cluster, must grant it.',
        'kf set-org-role alice example-org OrgManager',
        'kubectl auth can-i delete cfspaces.korifi.cloudfoundry.org --namespace org-guid',
      ].join('\n   '),
    );
  });
});

describe('delete-org', () => {
  it('waits until the org is gone, and clears the target', async () => {
    await target();
    const run = await cli.run(['delete-org', 'example-org', '-f']);
    expect(run).toMatchObject({
      code: 0,
      stdout: [
        'Deleting org example-org as alice...',
        'OK',
        '',
        "TIP: No org or space targeted, use 'kf target -o ORG -s SPACE' to target an org and space.",
        '',
      ].join('\n'),
    });
    expect(cluster.memory.all(kinds.org)).toEqual([]);
    expect(cli.state()).toMatchObject({ OrganizationFields: { Name: '' }, SpaceFields: { Name: '' } });
  });

  it('of an org that does not exist succeeds and says so', async () => {
    expect(await cli.run(['delete-org', 'none', '-f'])).toMatchObject({ code: 0, stderr: "Org 'none' does not exist.\n" });
  });

  it('without -f and without a terminal deletes nothing, and names the flag', async () => {
    const run = await cli.run(['delete-org', 'example-org']);
    expect([run.code, run.stderr]).toEqual([1, expect.stringContaining('-f')]);
    expect(cluster.memory.all(kinds.org)).toHaveLength(1);
  });

  it('is answered with no by a line of a pipe', async () => {
    for (const args of [
      ['delete-space', 'example-space', '-o', 'example-org'],
      ['delete-org', 'example-org'],
    ]) {
      expect(await cli.run(args, { stdin: 'n\n' })).toMatchObject({
        code: 0,
        stdout: expect.stringContaining(' has not been deleted.\n') as string,
      });
    }
    expect(cluster.server.callsOf('DELETE .*')).toEqual([]);
  });
});

/** Acts as the controller: a renamed object has its name, or not. */
function judge(type: ResourceType, status: 'True' | 'False'): void {
  cluster.memory.intercept = (verb, { plural }) => {
    if (verb !== 'watch' || plural !== type.plural) return;
    for (const { metadata } of cluster.memory.all(type)) {
      const { namespace = '', name, generation = 1 } = metadata;
      const conditions = [condition('Claimed', status, generation), condition('Ready', status, generation)];
      setTimeout(() => void statusOf(type, namespace, name, ...conditions), 20);
    }
  };
}

describe('rename-org and rename-space', () => {
  it('wait until the name is claimed, and rename the target', async () => {
    await target();
    judge(kinds.org, 'True');
    const run = await cli.run(['rename-org', 'example-org', 'second-org']);
    expect(run).toMatchObject({ code: 0, stdout: 'Renaming org example-org to second-org as alice...\nOK\n\n' });
    judge(kinds.space, 'True');
    expect(await cli.run(['rename-space', 'example-space', 'second-space'])).toMatchObject({
      code: 0,
      stdout: 'Renaming space example-space to second-space as alice...\nOK\n\n',
    });
    expect(cluster.memory.peek(kinds.org, 'cf', 'org-guid')?.spec.displayName).toBe('second-org');
    expect(cli.state()).toMatchObject({ OrganizationFields: { Name: 'second-org' }, SpaceFields: { Name: 'second-space' } });
    expect((await cli.run(['apps'])).stdout).toContain('in org second-org / space second-space');
  });

  it('refuse a name that is taken, whatever its capitals', async () => {
    await target();
    await cluster.add(kinds.space, { metadata: { name: 'dev-guid', namespace: 'org-guid' }, spec: { displayName: 'dev' } });
    const run = await cli.run(['rename-space', 'example-space', 'Dev']);
    expect([run.code, run.stderr]).toEqual([
      1,
      "Space 'Dev' already exists. Name must be unique per organization.\n\nTIP:\n   kf spaces\n",
    ]);
    expect(cluster.server.callsOf('PATCH .*')).toEqual([]);
  });

  it('give the old name back if somebody else takes the new one at the same moment', async () => {
    await target();
    judge(kinds.org, 'False');
    const run = await cli.run(['rename-org', 'example-org', 'second-org']);
    expect([run.code, run.stderr]).toEqual([1, expect.stringContaining("Organization 'second-org' already exists.\n\nTIP:\n   kf orgs\n")]);
    expect(cluster.memory.peek(kinds.org, 'cf', 'org-guid')?.spec.displayName).toBe('example-org');
    expect(cli.state()).toMatchObject({ OrganizationFields: { Name: 'example-org' } });
  });

  it('refuse the org and space of setup, which the next setup would create again', async () => {
    await tellDefaults();
    for (const [what, ...argv] of [
      ['org', 'rename-org', 'example-org', 'second'],
      ['space', 'rename-space', 'example-space', 'second'],
    ]) {
      const run = await cli.run(argv);
      expect([run.code, run.stderr]).toEqual([1, expect.stringContaining(`is the default ${what ?? ''} of this installation`)]);
    }
    expect(cluster.server.callsOf('PATCH .*')).toEqual([]);
  });

  it.each([
    [['rename-org', 'none', 'x'], "Organization 'none' not found."],
    [['rename-space', 'none', 'x'], "Space 'none' not found."],
    [['rename-org', 'example-org'], 'the required argument `NEW_ORG_NAME` was not provided'],
  ])('%j prints %s', async (argv, message) => {
    await target();
    const run = await cli.run(argv);
    expect([run.code, run.stderr]).toEqual([1, expect.stringContaining(message)]);
  });
});

describe('a target that another command sets meanwhile', () => {
  it.each([
    ['delete-space', 'example-space', '-f'],
    ['delete-org', 'example-org', '-f'],
    ['rename-space', 'example-space', 'second'],
    ['rename-org', 'example-org', 'second'],
  ])('stays when %s has waited until the end', async (...argv) => {
    await target();
    await cluster.add(kinds.org, { metadata: { name: 'other-guid', namespace: 'cf' }, spec: { displayName: 'other' } });
    await cluster.add(kinds.space, { metadata: { name: 'dev-guid', namespace: 'other-guid' }, spec: { displayName: 'dev' } });
    const [type, ns, guid] = argv[0].endsWith('org') ? [kinds.org, 'cf', 'org-guid'] : [kinds.space, 'org-guid', 'space-guid'];
    await finalizers(type, ns, guid, ['kf.test/slow']);
    const running = cli.run(argv);
    await expect
      .poll(() => cluster.server.calls.some(({ path, query }) => path.endsWith(`/${type.plural}`) && query.has('watch')))
      .toBe(true);
    expect((await cli.run(['target', '-o', 'other', '-s', 'dev'])).code).toBe(0);
    const { generation = 1 } = cluster.memory.peek(type, ns, guid)?.metadata ?? {};
    await statusOf(type, ns, guid, condition('Claimed', 'True', generation), condition('Ready', 'True', generation));
    await finalizers(type, ns, guid, null);
    expect(await running).toMatchObject({ code: 0, stdout: expect.not.stringContaining('TIP') as string });
    expect(cli.state()).toMatchObject({ OrganizationFields: { Name: 'other' }, SpaceFields: { Name: 'dev' } });
  });
});

describe('logout', () => {
  it('forgets user, org and space, and keeps the cluster', async () => {
    await target();
    const run = await cli.run(['logout']);
    expect(run).toMatchObject({
      code: 0,
      stdout: 'Logging out alice...\nOK\n\n',
      stderr: 'The kubeconfig keeps its credentials; commands of kubectl still work.\n',
    });
    expect(cli.state()).toMatchObject({ OrganizationFields: { Name: '' }, SpaceFields: { Name: '' }, CFOnK8s: { AuthInfo: '' } });
    expect(cli.state()).toMatchObject({ Target: expect.stringContaining('127.0.0.1') as string });
    expect((await cli.run(['apps'])).stderr).toContain('No org targeted');
  });

  it('works without a target, and takes no argument', async () => {
    expect(await cli.run(['lo'])).toMatchObject({ code: 0, stdout: 'Logging out...\nOK\n\n' });
    expect((await cli.run(['logout', 'now'])).stderr).toContain('Incorrect Usage: unexpected argument "now"');
  });
});

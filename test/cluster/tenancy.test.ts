// Orgs, spaces and names on a real cluster: what is restored, what is deleted, and which object gets a name.

import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { feed } from '../support/feed.ts';
import { Kf, kubectl, kubectlJson, ringEnv } from '../support/kf.ts';
import { TestWorld } from '../support/members.ts';
import { until } from '../support/until.ts';

const id = randomUUID().slice(0, 8);
const [org, space] = [`org-${id}`, `space-${id}`];
const api = 'korifi.cloudfoundry.org/v1alpha1';
let admin: Kf;

interface Item {
  metadata: { name: string; uid: string; labels?: Record<string, string> };
  status?: { conditions?: { type: string; status: string; reason: string; message: string }[]; phase?: string };
}
const condition = (item: Item, type: string) => item.status?.conditions?.find((one) => one.type === type);

function apply(...objects: object[]): Promise<void> {
  const env = { ...process.env, KUBECONFIG: ringEnv('KF_TEST_KUBECONFIG') };
  return new Promise((resolve, reject) => {
    const child = execFile('kubectl', ['apply', '-f', '-'], { env }, (error) => (error === null ? resolve() : reject(error)));
    feed(child, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }));
  });
}

const ready = (kind: string, ns: string, name: string) =>
  until(
    `${kind} ${name} to be ready`,
    async () => condition(await kubectlJson<Item>('get', kind, '-n', ns, name), 'Ready')?.status === 'True',
  );

beforeAll(async () => {
  admin = await Kf.create('admin');
  await apply({ apiVersion: api, kind: 'CFOrg', metadata: { name: org, namespace: 'cf' }, spec: { displayName: org } });
  await ready('cforg', 'cf', org);
  await apply({ apiVersion: api, kind: 'CFSpace', metadata: { name: space, namespace: org }, spec: { displayName: space } });
  await ready('cfspace', org, space);
});
afterAll(async () => {
  await kubectl('delete', 'cforg', '-n', 'cf', org, '--ignore-not-found', '--timeout=120s');
  await admin.remove();
});

describe('a space', () => {
  test('and its org are created without a warning in the log of the controller', async () => {
    const log = await kubectl('logs', '-n', 'kf-system', 'deployment/kf-controller', '--tail=-1');
    const lines = log.split('\n').filter((line) => line.includes(org) || line.includes(space));
    expect(lines.filter((line) => /"level":"(warn|error)"|"stack"/.test(line))).toEqual([]);
  });

  test.each([
    ['rolebinding', 'kf-controller-space'],
    ['serviceaccount', 'korifi-app'],
    ['secret', 'kf-registry-push'],
    ['secret', 'image-registry-credentials'],
  ])('gets its %s %s back', async (kind, name) => {
    const before = await kubectlJson<Item>('get', kind, '-n', space, name);
    await kubectl('delete', kind, '-n', space, name);
    await until(
      `${kind} ${name} to be back`,
      async () => (await kubectlJson<Item>('get', kind, '-n', space, name)).metadata.uid !== before.metadata.uid,
    );
  });

  test('gets its namespace back, ready to use, when somebody deletes it', async () => {
    const before = await kubectlJson<Item>('get', 'namespace', space);
    await kubectl('delete', 'namespace', space, '--timeout=120s');
    await until(
      'the namespace to be back',
      async () => (await kubectlJson<Item>('get', 'namespace', space)).metadata.uid !== before.metadata.uid,
    );
    await ready('cfspace', org, space);
    await kubectl('get', 'secret', '-n', space, 'kf-registry-push');
  });

  test('gives the name of twenty apps made at the same time to exactly one of them', async () => {
    const spec = { displayName: 'wanted', desiredState: 'STOPPED', lifecycle: { type: 'buildpack', data: { stack: '' } } };
    const names = Array.from({ length: 20 }, () => randomUUID());
    await Promise.all(names.map((name) => apply({ apiVersion: api, kind: 'CFApp', metadata: { name, namespace: space }, spec })));
    const judged = await until('all twenty to be judged', async () => {
      const { items } = await kubectlJson<{ items: Item[] }>('get', 'cfapps', '-n', space);
      return items.length === 20 && items.every((item) => condition(item, 'Claimed') !== undefined) ? items : undefined;
    });
    const winners = judged.filter((item) => condition(item, 'Claimed')?.status === 'True');
    expect(winners).toHaveLength(1);
    const [winner] = winners;
    for (const loser of judged.filter((item) => item !== winner))
      expect(condition(loser, 'Claimed')).toMatchObject({
        reason: 'DuplicateName',
        message: expect.stringContaining(winner?.metadata.name ?? '?') as string,
      });
    await kubectl('delete', 'cfapp', '-n', space, winner?.metadata.name ?? '');
    await until('another one to have the name', async () => {
      const { items } = await kubectlJson<{ items: Item[] }>('get', 'cfapps', '-n', space);
      return items.filter((item) => condition(item, 'Claimed')?.status === 'True').length === 1;
    });
    await kubectl('delete', 'cfapps', '-n', space, '--all');
  });
});

describe('the deletion of an app', () => {
  const app = `kept-${id}`;
  let guid = '';
  const ns = ringEnv('KF_TEST_SPACE_GUID');
  const finalizers = (names: string[] | null) =>
    kubectl('patch', 'cfapp', guid, '-n', ns, '--type=merge', '-p', JSON.stringify({ metadata: { finalizers: names } }));

  beforeAll(async () => {
    await admin.ok('create-app', app);
    guid = (await admin.ok('app', app, '--guid')).stdout.trim();
  });
  afterAll(() => finalizers(null).catch(() => undefined));

  test('names the finalizer that keeps the app, and ends well when it is taken away', async () => {
    await finalizers(['example.org/hold']);
    const kept = await admin.run(['delete', app, '-f']);
    const cause = `App '${app}' is still being deleted: CFApp '${guid}' has the finalizer 'example.org/hold'.`;
    expect([kept.code, kept.stderr]).toEqual([1, expect.stringContaining(cause)]);
    expect(kept.milliseconds).toBeLessThan(90_000);
    const again = admin.ok('delete', app, '-f');
    await finalizers(null);
    expect((await again).stdout).toMatch(/\nOK\n/);
    expect(await kubectl('get', 'cfapps', '-n', ns, '-o', 'name')).not.toContain(guid);
    expect((await admin.ok('delete', app, '-f')).stderr).toContain(`App '${app}' does not exist.`);
  });
});

describe('the deletion of an org', () => {
  test('names what blocks it, and removes spaces, namespaces and names with the org', async () => {
    const blocker = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'stuck', namespace: space, finalizers: ['example.org/stuck'] },
    };
    await apply(blocker);
    await kubectl(
      'patch',
      'cforg',
      '-n',
      'cf',
      org,
      '--type=json',
      '-p',
      '[{"op":"add","path":"/metadata/finalizers/-","value":"example.org/hold"}]',
    );
    await kubectl('delete', 'cforg', '-n', 'cf', org, '--wait=false');
    const said = async (kind: string, ns: string, name: string) =>
      condition(await kubectlJson<Item>('get', kind, '-n', ns, name), 'Ready')?.message ?? '';
    await until('the org to name the space', async () =>
      (await said('cforg', 'cf', org)).startsWith(`These spaces are not gone yet: '${space}'`),
    );
    await until('the space to name the finalizer', async () => (await said('cfspace', org, space)).includes('example.org/stuck'));
    expect(await said('cfspace', org, space)).toContain(`See: kubectl get configmaps -n ${space}`);
    await kubectl('patch', 'configmap', '-n', space, 'stuck', '--type=merge', '-p', '{"metadata":{"finalizers":null}}');
    await until(
      'the org to name the finalizer on itself',
      async () =>
        (await said('cforg', 'cf', org)) === `CFOrg '${org}' has the finalizer 'example.org/hold'. Whoever set it must take it away.`,
    );
    await kubectl('patch', 'cforg', '-n', 'cf', org, '--type=merge', '-p', '{"metadata":{"finalizers":null}}');
    await until('the org to be gone', async () => !(await kubectl('get', 'cforgs', '-n', 'cf', '-o', 'name')).includes(org));
    const namespaces = await kubectl('get', 'namespaces', '-o', 'name');
    expect([namespaces.includes(org), namespaces.includes(space)]).toEqual([false, false]);
    interface Lease {
      metadata: { annotations?: Record<string, string> };
    }
    const leases = await kubectlJson<{ items: Lease[] }>('get', 'leases', '-n', 'cf');
    expect(leases.items.map((lease) => lease.metadata.annotations?.['coordination.cloudfoundry.org/owner-name'])).not.toContain(org);
  });
});

describe('a manager of an org', () => {
  const world = new TestWorld();
  afterAll(() => world.remove());

  test('makes a space, gives and takes a role in it, renames it and deletes it, all with kf', async () => {
    const guid = await world.org();
    const name = `org-${guid.slice(0, 8)}`;
    const [manager, bob] = [
      await world.member('organizationManager', { org: guid }),
      await world.member('organizationUser', { org: guid }),
    ];
    const apps = async (): Promise<number> => (await bob.kf.run(['apps', '--space', 'dev'])).code;
    await manager.kf.ok('create-space', 'dev');
    const { stdout: ns } = await manager.kf.ok('space', 'dev', '--guid');
    expect(await apps()).toBe(1);

    await manager.kf.ok('set-space-role', bob.user, name, 'dev', 'SpaceDeveloper');
    await until('the new developer to list apps', async () => (await apps()) === 0);
    await bob.kf.ok('create-user-provided-service', 'db', '-p', '{"uri":"postgres://db"}', '--space', 'dev');
    expect((await manager.kf.ok('space-users', name, 'dev')).stdout).toContain(`  ${bob.user} (client)\n\nSPACE AUDITOR`);
    await manager.kf.ok('unset-space-role', bob.user, name, 'dev', 'SpaceDeveloper');
    await until('the role to be gone', async () => (await apps()) === 1);

    await manager.kf.ok('rename-space', 'dev', 'test');
    expect((await manager.kf.ok('spaces')).stdout).toContain('name\ntest\n');
    await manager.kf.ok('delete-space', 'test', '-f');
    expect(await kubectl('get', 'namespaces', '-o', 'name')).not.toContain(ns.trim());
    expect((await manager.kf.run(['delete-org', name, '-f'])).code).toBe(1);
  });

  test('limits a space with a quota, which the cluster enforces and each refusal names', async () => {
    const place = await world.space();
    const name = `space-${place.space.slice(0, 8)}`;
    const [manager, developer] = [
      await world.member('organizationManager', { org: place.org }),
      await world.member('spaceDeveloper', place),
    ];
    const refused = async (text: string, ...args: string[]): Promise<void> => {
      const run = await developer.kf.run(args);
      expect([run.code, run.stderr]).toEqual([1, expect.stringContaining(text)]);
    };
    await manager.kf.ok('create-space-quota', 'small', '-m', '1G', '-i', '128M', '-s', '1', '-r', '0', '-a', '2');
    expect((await manager.kf.run(['create-org-quota', 'mine'])).stderr).toContain('may not create quotas.');
    expect((await manager.kf.ok('set-space-quota', name, 'small')).stderr).not.toContain('not in force');

    const db = ['-p', '{"uri":"postgres://db"}'];
    await developer.kf.ok('create-user-provided-service', 'db', ...db);
    await refused("The space quota 'small' allows 1 service instance; used: 1, asked: 1.", 'create-user-provided-service', 'db-2', ...db);
    const domains = await developer.kf.ok('domains', '--json');
    const { result } = JSON.parse(domains.stdout) as { result: { name: string; internal: boolean }[] };
    const route = ['create-route', result.find(({ internal }) => !internal)?.name ?? '', '-n', `host-${id}`];
    await refused("The space quota 'small' allows 0 routes; used: 0, asked: 1.", ...route);
    const push = ['push', 'large', '--docker-image', 'registry.invalid/app', '--no-route', '-m', '256M'];
    await refused("an instance of 'web' takes 256M of memory, and the space quota 'small' allows at most 128M", ...push);
    expect((await developer.kf.ok('space', name)).stdout).toMatch(/^quota: +small$/m);

    await manager.kf.ok('unset-space-quota', name, 'small');
    await until('the quota to be lifted', async () => (await developer.kf.run(route)).code === 0);
  });
});

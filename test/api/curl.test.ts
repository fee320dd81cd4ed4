// `kf curl` with a real API server: a developer sees what the roles of cf let them see, and an administrator everything.

import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { kinds } from '../../src/lib/api/group.ts';
import { apiVersionOf, type ResourceType } from '../../src/lib/api/object.ts';
import { cfRoles } from '../../src/lib/api/roles.ts';
import { buildRoleBinding } from '../../src/templates/tenancy.ts';
import { kfWith } from './kf.ts';
import { installKinds, installRoles, kubectl, makeSpaceLike } from './kubectl.ts';

const developer = `curl-${Date.now().toString(36)}`;
const [org, own, other, mine, theirs] = [randomUUID(), randomUUID(), randomUUID(), randomUUID(), randomUUID()];
const folder = mkdtempSync(join(tmpdir(), 'kf-curl-'));
const admin = process.env['KF_TEST_KUBECONFIG'] ?? '';
const asDeveloper = join(folder, 'config');

const object = (type: ResourceType, namespace: string, name: string, spec: object): object => ({
  apiVersion: apiVersionOf(type),
  kind: type.kind,
  metadata: { name, namespace },
  spec,
});

const app = (namespace: string, name: string): object => {
  const lifecycle = { type: 'buildpack', data: { stack: 'kf' } };
  return object(kinds.app, namespace, name, { displayName: developer, desiredState: 'STOPPED', lifecycle });
};

beforeAll(async () => {
  await installKinds();
  await installRoles();
  for (const ns of [org, own, other]) await makeSpaceLike(ns);
  const subject = { user: developer };
  const binding = (role: keyof typeof cfRoles, namespace: string): object =>
    buildRoleBinding({ role: cfRoles[role], subject, namespace, guid: randomUUID() });
  await kubectl(['create', '-f', '-'], {
    input: [
      object(kinds.org, 'cf', org, { displayName: developer }),
      object(kinds.space, org, own, { displayName: 'own' }),
      object(kinds.space, org, other, { displayName: 'other' }),
      app(own, mine),
      app(other, theirs),
      binding('cfUser', 'cf'),
      binding('organizationUser', org),
      binding('spaceDeveloper', own),
    ],
  });
  // The developer is the administrator who acts as somebody else.
  const config = parse(readFileSync(admin, 'utf8')) as { users: { user: object }[] };
  const users = config.users.map(({ user, ...rest }) => ({
    ...rest,
    user: { ...user, as: developer, 'as-groups': ['system:authenticated'] },
  }));
  writeFileSync(asDeveloper, stringify({ ...config, users }));
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Document {
  guid?: string;
  resources?: { guid: string; state: string }[];
  errors?: { code: number; detail: string }[];
  enabled?: boolean;
}

async function asked(kubeconfig: string, ...argv: string[]): Promise<Document> {
  const { code, stdout, stderr } = await kfWith(kubeconfig, ['curl', ...argv]);
  expect([code, stderr]).toEqual([0, '']);
  return JSON.parse(stdout) as Document;
}

const guids = async (kubeconfig: string, path: string): Promise<string[]> =>
  ((await asked(kubeconfig, path)).resources ?? []).map(({ guid }) => guid).toSorted();

describe('kf curl', () => {
  test('lists the apps of all spaces for an administrator, and those of their own space for a developer', async () => {
    expect(await guids(admin, `/v3/apps?names=${developer}`)).toEqual([mine, theirs].toSorted());
    expect(await guids(asDeveloper, `/v3/apps?names=${developer}`)).toEqual([mine]);
    expect(await guids(asDeveloper, `/v3/apps?space_guids=${own},${other}`)).toEqual([mine]);
    expect(await guids(asDeveloper, `/v3/spaces?organization_guids=${org}`)).toEqual([own, other].toSorted());
  });

  test('finds an app by its GUID where its space may be read', async () => {
    expect(await asked(admin, `/v3/apps/${theirs}`)).toMatchObject({ guid: theirs });
    expect(await asked(asDeveloper, `/v3/apps/${mine}`)).toMatchObject({ guid: mine });
    expect((await asked(asDeveloper, `/v3/apps/${theirs}`)).errors).toEqual([expect.objectContaining({ code: 10010 })]);
    expect(await asked(asDeveloper, `/v3/apps/${mine}/features/ssh`)).toMatchObject({ enabled: true });
  });

  test('lets a developer read what a script asks of quotas, usage, users and revisions', async () => {
    const quota = randomUUID();
    await kubectl(['create', '-f', '-'], {
      input: [
        object(kinds.quota, 'cf', quota, { displayName: developer, routes: 0 }),
        object(kinds.quota, org, quota, { displayName: developer, totalMemoryMB: 64 }),
      ],
    });
    expect(await guids(asDeveloper, `/v3/organization_quotas?names=${developer}`)).toEqual([quota]);
    expect(await guids(asDeveloper, `/v3/space_quotas?organization_guids=${org}`)).toEqual([quota]);
    expect(await asked(asDeveloper, `/v3/spaces/${own}/usage_summary`)).toMatchObject({ usage_summary: { started_instances: 0 } });
    // A sum over the spaces that one may read would be too low.
    expect((await asked(asDeveloper, `/v3/organizations/${org}/usage_summary`)).errors).toEqual([expect.objectContaining({ code: 10003 })]);
    expect(await asked(admin, `/v3/organizations/${org}/usage_summary`)).toMatchObject({ usage_summary: { routes: 0 } });
    expect(await guids(asDeveloper, `/v3/users?usernames=${developer}`)).toEqual([developer]);
    expect(await guids(asDeveloper, `/v3/apps/${mine}/revisions`)).toEqual([]);
    expect((await asked(asDeveloper, `/v3/revisions/${quota}`)).errors).toEqual([expect.objectContaining({ code: 10010 })]);
    expect(await asked(asDeveloper, `/v3/apps/${mine}/permissions`)).toEqual({ read_basic_data: true, read_sensitive_data: true });
  });

  test('lists the roles of a space', async () => {
    expect(await guids(asDeveloper, `/v3/roles?space_guids=${own}&types=space_developer&user_guids=${developer}`)).toHaveLength(1);
  });

  test('passes a request to Kubernetes with the rights of the user', async () => {
    const path = (ns: string): string => `/apis/${apiVersionOf(kinds.app)}/namespaces/${ns}/cfapps/`;
    expect(await asked(asDeveloper, path(own) + mine)).toMatchObject({ kind: 'CFApp', metadata: { name: mine } });
    expect(await asked(asDeveloper, path(other) + theirs)).toMatchObject({ kind: 'Status', code: 403 });
  });
});

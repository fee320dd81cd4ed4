// Makes kubeconfigs of users with exactly one CF role in one org or space; tests run kf with them.

import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { parse, stringify } from 'yaml';
import { cfRoles, type CfRole } from '../../src/lib/api/roles.ts';
import { buildRoleBinding } from '../../src/templates/tenancy.ts';
import { feed } from './feed.ts';

const execute = promisify(execFile);

export interface Place {
  org: string;
  space: string;
}

/** Roles of spaces and of orgs. */
export type MemberRole = 'spaceDeveloper' | 'spaceAuditor' | 'spaceManager' | 'organizationManager' | 'organizationUser';

async function kubectl(admin: string, args: string[]): Promise<string> {
  const { stdout } = await execute('kubectl', args, { env: { ...process.env, KUBECONFIG: admin } });
  return stdout;
}

/** Server-side, so that of two that make the same object at a time none fails. */
async function apply(admin: string, object: unknown): Promise<void> {
  const child = execute('kubectl', ['apply', '--server-side', '--force-conflicts', '-f', '-'], {
    env: { ...process.env, KUBECONFIG: admin },
  });
  feed(child.child, JSON.stringify(object));
  await child;
}

interface KubeConfig {
  clusters: { name: string; cluster: unknown }[];
}

/** The role itself, and the roles that every CF user has: the user roles of the org and of the root namespace. */
function grantsOf(role: MemberRole, place: Place | { org: string }): { role: CfRole; namespace: string }[] {
  const space = 'space' in place ? place.space : undefined;
  const own = cfRoles[role];
  if (own.scope === 'space' && space === undefined) throw new Error(`The role ${role} needs a space.`);
  const user = own === cfRoles.organizationUser ? [] : [{ role: cfRoles.organizationUser, namespace: place.org }];
  return [{ role: own, namespace: own.scope === 'space' ? (space ?? '') : place.org }, ...user, { role: cfRoles.cfUser, namespace: 'cf' }];
}

/**
 * Creates a service account with one role in one org or space (and, like every CF user, the user roles of org and root) and writes its kubeconfig.
 * @param admin path of a kubeconfig with all rights
 * @returns the API server's user name of the account
 */
export async function writeRoleKubeconfig(admin: string, file: string, role: MemberRole, place: Place | { org: string }): Promise<string> {
  const name = `${role.toLowerCase()}-${randomUUID().slice(0, 6)}`;
  const subject = { namespace: 'kf-test-users', name };
  await apply(admin, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: subject.namespace } });
  await apply(admin, { apiVersion: 'v1', kind: 'ServiceAccount', metadata: subject });
  for (const grant of grantsOf(role, place)) await apply(admin, buildRoleBinding({ ...grant, subject, guid: randomUUID() }));
  const token = (await kubectl(admin, ['-n', subject.namespace, 'create', 'token', name, '--duration', '10h'])).trim();
  const config = parse(await readFile(admin, 'utf8')) as KubeConfig;
  const [cluster] = config.clusters;
  const context = { name: 'kf-test', context: { cluster: cluster?.name, user: name } };
  const own = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [cluster],
    users: [{ name, user: { token } }],
    contexts: [context],
    'current-context': 'kf-test',
  };
  await writeFile(file, stringify(own), { mode: 0o600 });
  return `system:serviceaccount:${subject.namespace}:${name}`;
}

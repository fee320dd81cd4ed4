// The Secrets that say what an app ran with: settings of revisions, and frozen environments. No member of a space writes them (decision 102).

import { randomUUID } from 'node:crypto';
import { beforeAll, expect, test } from 'vitest';
import type { Secret } from '../../src/lib/api/core.ts';
import type { KubeObject, Stored } from '../../src/lib/api/object.ts';
import { cfRoles } from '../../src/lib/api/roles.ts';
import type { AppWorkload, CFApp, CFBuild } from '../../src/lib/api/types.generated.ts';
import { buildApp, buildEnvSecret } from '../../src/templates/app.ts';
import { buildBuild, buildBuildEnvSecret } from '../../src/templates/build.ts';
import { buildRoleBinding } from '../../src/templates/tenancy.ts';
import { buildFrozenSecret } from '../../src/templates/workload.ts';
import { until } from '../support/until.ts';
import { ask, installKinds, installPolicies, installRoles, kubectl, makeNamespace } from './kubectl.ts';

const [org, space] = [randomUUID(), randomUUID()];
const group = 'korifi.cloudfoundry.org';
const mark = { 'kf.cloudfoundry.org/managed-by': 'kf' };
const controller = 'system:serviceaccount:kf-system:kf-controller';
const collector = 'system:serviceaccount:kube-system:generic-garbage-collector';
const author = { changedBy: '', now: new Date() };
const lifecycle = { type: 'docker' as const, data: { stack: '' } };
const spec = { appGUID: 'shop', GUID: 'w', version: '0', processType: 'web', image: 'i', runnerName: 'statefulset-runner', instances: 0 };
const workload = { apiVersion: `${group}/v1alpha1`, kind: 'AppWorkload', metadata: { name: 'shop-web-1', namespace: space }, spec };
const data = { COLOUR: 'cmVk' };
const frozenName = 'shop-web-1-env';
let app: Stored<CFApp>, build: Stored<CFBuild>, owner: Stored<AppWorkload>;
let frozen: Secret;
const secret = (name: string, more: object = {}) => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name, namespace: space },
  data,
  ...more,
});
const revisions = secret('shop-revisions');
const nobody = { apiVersion: 'v1', kind: 'ConfigMap', name: 'none', uid: randomUUID() };
const ofRevisions = 'Secret shop-revisions keeps the settings of the revisions of an app, and only the controller of kf writes it';
const ofInstances = (name: string) => `Secret ${name} belongs to instances of an app, and only the controller of kf writes it`;

const make = async <T extends KubeObject>(object: T): Promise<Stored<T>> =>
  JSON.parse(await kubectl(['create', '-o', 'json', '-f', '-'], { input: object })) as Stored<T>;

beforeAll(async () => {
  await installKinds();
  await installRoles();
  await installPolicies();
  await makeNamespace(org, { ...mark, [`${group}/org-guid`]: org });
  await makeNamespace(space, { ...mark, [`${group}/org-guid`]: org, [`${group}/space-guid`]: space });
  // The garbage collector deletes what has no owner.
  app = await make(buildApp({ guid: 'shop', namespace: space, displayName: 'shop', lifecycle, pushId: 'p' }, author));
  build = await make(
    buildBuild({ guid: 'b', app, packageGuid: 'p', lifecycle, stagingMemoryMB: 1, stagingDiskMB: 1, buildKey: 'k' }, author),
  );
  owner = await make(workload as AppWorkload);
  frozen = buildFrozenSecret(owner, frozenName, data);
  await kubectl(['create', '-f', '-'], { input: [frozen, revisions] });
  for (const user of ['dora', controller, collector]) {
    const role = user === 'dora' ? cfRoles.spaceDeveloper : cfRoles.admin;
    await kubectl(['apply', '--server-side', '-f', '-'], {
      input: buildRoleBinding({ role, subject: { user }, namespace: space, guid: randomUUID() }),
    });
  }
  await until('the rights', async () => (await ask(['auth', 'can-i', 'patch', 'secrets', '-n', space], { as: 'dora' })).code === 0);
});

/** The refusal, or `done`. The objects stay as they are. */
async function create(input: object, as?: string): Promise<string> {
  const { code, stderr } = await ask(['create', '--dry-run=server', '-f', '-'], { input, ...(as === undefined ? {} : { as }) });
  return code === 0 ? 'done' : stderr;
}

async function patch(name: string, body: object, as?: string): Promise<string> {
  const args = ['patch', 'secret', '-n', space, name, '--type=merge', '--dry-run=server', '-p', JSON.stringify(body)];
  const { code, stderr } = await ask(args, as === undefined ? {} : { as });
  return code === 0 ? 'done' : stderr;
}

/** As the garbage collector does what is asked for by `--cascade=orphan`. */
const orphaned = { metadata: { ownerReferences: null } };

test('a member of a space cannot change the settings of revisions, or make them', async () => {
  const forged = { data: { 1: 'Zm9yZ2Vk' } };
  expect(await patch('shop-revisions', forged, 'dora')).toContain(ofRevisions);
  expect(await patch('shop-revisions', { metadata: { ownerReferences: [nobody] } }, 'dora')).toContain(ofRevisions);
  expect(await patch('shop-revisions', { immutable: true }, 'dora')).toContain(ofRevisions);
  expect(await create(secret('other-revisions'), 'dora')).toContain('Secret other-revisions keeps the settings');
  for (const as of [controller, undefined]) expect(await patch('shop-revisions', forged, as)).toBe('done');
  expect(await create(secret('other-revisions'), controller)).toBe('done');
});

test('a member of a space cannot make the cluster delete a frozen environment, or make one before the controller does', async () => {
  const refusal = ofInstances(frozenName);
  for (const ownerReferences of [[nobody], [], null, [...(frozen.metadata.ownerReferences ?? []), nobody]])
    expect(await patch(frozenName, { metadata: { ownerReferences } }, 'dora')).toContain(refusal);
  expect(await patch(frozenName, { metadata: { finalizers: ['kf.test/never'] } }, 'dora')).toContain(refusal);
  const early = buildFrozenSecret(owner, 'shop-web-2-env', data);
  expect(await create(early, 'dora')).toContain(ofInstances('shop-web-2-env'));
  expect(await create({ ...early, immutable: false }, 'dora')).toContain(ofInstances('shop-web-2-env'));
  expect(await create(early, controller)).toBe('done');
  for (const as of [controller, collector, undefined]) expect(await patch(frozenName, orphaned, as)).toBe('done');
});

test('a member of a space makes and changes the Secrets of apps, builds and services, and own ones', async () => {
  const env = buildEnvSecret(app, { COLOUR: 'red' }, author);
  const ofBuild = buildBuildEnvSecret(build, { COLOUR: 'red' }, author);
  const own = secret('own', { immutable: true });
  await kubectl(['create', '-f', '-'], { input: [env, ofBuild, own], as: 'dora' });
  expect(await patch(env.metadata.name ?? '', { data: { SHAPE: 'cm91bmQ=' } }, 'dora')).toBe('done');
  expect(await patch('own', { metadata: { labels: { team: 'a' } } }, 'dora')).toBe('done');
  // It is what the build ran with.
  const refusal = `Secret ${ofBuild.metadata.name ?? ''} is immutable and belongs to an object of kf, so nothing of it can be changed`;
  expect(await patch(ofBuild.metadata.name ?? '', { metadata: { ownerReferences: [nobody] } }, 'dora')).toContain(refusal);
});

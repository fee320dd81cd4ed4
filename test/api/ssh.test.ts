// ssh to apps and spaces, forbidden and allowed by kf, and what the cluster says to a developer with kubectl.

import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { cfRoles } from '../../src/lib/api/roles.ts';
import { labels } from '../../src/lib/api/group.ts';
import { buildRoleBinding } from '../../src/templates/tenancy.ts';
import { ask, installKinds, installPolicies, installRoles, kubectl, makeNamespace } from './kubectl.ts';
import { until } from '../support/until.ts';

const [org, space, shop, other] = [randomUUID(), randomUUID(), randomUUID(), randomUUID()];
const group = 'korifi.cloudfoundry.org';
const marks = { 'kf.cloudfoundry.org/managed-by': 'kf', [`${group}/org-guid`]: org, [`${group}/space-guid`]: space };
const app = (name: string, displayName: string) => ({
  apiVersion: `${group}/v1alpha1`,
  kind: 'CFApp',
  metadata: { name, namespace: space },
  spec: { displayName, desiredState: 'STARTED', lifecycle: { type: 'docker', data: { stack: '' } } },
});
/** As statefulSetName and the StatefulSet's controller name it. */
const podOf = (guid: string): string => `${`${guid}-${space}`.slice(0, 40)}-0123456789-0`;
const pod = (name: string) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: space },
  spec: { containers: [{ name: 'application', image: 'i' }], automountServiceAccountToken: false },
});

beforeAll(async () => {
  await installKinds();
  await installRoles();
  await installPolicies();
  await makeNamespace(space, marks);
  await kubectl(['create', 'serviceaccount', 'default', '-n', space]).catch(() => undefined);
  await kubectl(['create', '-f', '-'], { input: [app(shop, 'shop'), app(other, 'other'), pod(podOf(shop)), pod(podOf(other))] });
  const input = buildRoleBinding({ role: cfRoles.spaceDeveloper, subject: { user: 'dora' }, namespace: space, guid: randomUUID() });
  await kubectl(['create', '-f', '-'], { input });
});

// No kubelet runs here: whoever may connect learns that the pod has no node.
const mayConnect = /does not have a host assigned/;
const exec = async (guid: string): Promise<string> => (await ask(['exec', '--as=dora', '-n', space, podOf(guid), '--', 'true'])).stderr;
describe('a developer with kubectl', () => {
  test('connects to instances as long as nobody forbids it', async () => {
    expect(await exec(shop)).toMatch(mayConnect);
  });

  test('disable-ssh of an app binds everybody, and enable-ssh allows it again', async () => {
    await kubectl(['label', '-n', space, 'cfapp', shop, `${labels.ssh}=disabled`], { as: 'dora' });
    await until('the policy', async () => (await exec(shop)).includes("ssh support is disabled for app 'shop'"));
    expect(await exec(other)).toMatch(mayConnect);
    await kubectl(['label', '-n', space, 'cfapp', shop, `${labels.ssh}-`], { as: 'dora' });
    await until('the end of the policy', async () => mayConnect.test(await exec(shop)));
  });

  test('disallow-space-ssh binds every app of the space, and allow-space-ssh allows it again', async () => {
    await makeNamespace(space, { ...marks, [labels.ssh]: 'disabled' });
    await until('the policy', async () => (await exec(shop)).includes('ssh support is disabled in the space'));
    expect(await exec(other)).toContain('ssh support is disabled in the space');
    expect((await ask(['label', 'namespace', space, `${labels.ssh}=enabled`, '--overwrite'], { as: 'dora' })).stderr).toContain(
      'forbidden',
    );
    await makeNamespace(space, { ...marks, [labels.ssh]: 'enabled' });
    await until('the end of the policy', async () => mayConnect.test(await exec(shop)));
  });
});

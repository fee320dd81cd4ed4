// The labels that Korifi's API reads from the answer to a create: they exist before any controller has seen the object. None runs here.

import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { annotations, labels } from '../../src/lib/api/group.ts';
import { indexLabels } from '../../src/lib/api/labels.ts';
import { until } from '../support/until.ts';
import { ask, installKinds, installPolicies, installRoles, kubectl, kubectlJson, makeNamespace, makeSpaceLike } from './kubectl.ts';

const run = Date.now().toString(36);
const space = `space-${run}`;
const dev = `dev-${run}`;
const rbac = 'rbac.authorization.k8s.io';
const korifi = 'korifi.cloudfoundry.org';
const createdAt = labels.createdAt;
const contractFile = join(import.meta.dirname, 'fixtures/contract-objects.yaml');

interface Made {
  apiVersion: string;
  kind: string;
  metadata: { name: string; creationTimestamp: string; labels?: Record<string, string> };
}

const renewed = '2024-05-06T07:08:09.123456Z';
const record = {
  apiVersion: `${korifi}/v1alpha1`,
  kind: 'RunnerInfo',
  metadata: {
    name: 'kf-controller',
    namespace: 'kf-system',
    annotations: { [annotations.leader]: 'a-test', [annotations.leaderRenewed]: renewed },
  },
  spec: { runnerName: 'kf-controller' },
};
const time = '2024-05-06T07-08-09';
const removeRecord = (): Promise<string> => kubectl(['delete', 'runnerinfo', '-n', 'kf-system', 'kf-controller', '--ignore-not-found']);

let made = 0;
function object(kind: string, spec: object, metadata: object = { name: `o-${run}-${made++}` }): object {
  return { apiVersion: `${korifi}/v1alpha1`, kind, metadata: { namespace: space, ...metadata }, spec };
}
const appSpec = { displayName: 'a', desiredState: 'STOPPED', lifecycle: { type: 'docker', data: { stack: '' } } };

const createIt = (input: object): Promise<Made> => kubectlJson<Made>(['create', '-f', '-'], { input, as: dev });
const createdBy = async (input: object): Promise<Record<string, string>> => (await createIt(input)).metadata.labels ?? {};

beforeAll(async () => {
  await installKinds();
  await installRoles();
  await installPolicies();
  await makeSpaceLike(space);
  const binding = {
    apiVersion: `${rbac}/v1`,
    kind: 'RoleBinding',
    metadata: { name: 'dev', namespace: space },
    roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: 'korifi-controllers-space-developer' },
    subjects: [{ apiGroup: rbac, kind: 'User', name: dev }],
  };
  await kubectl(['apply', '-f', '-'], { input: [binding, record] });
  const probe = object('CFApp', appSpec, { name: 'probe' });
  const dryRun = async (): Promise<Made> => kubectlJson<Made>(['create', '--dry-run=server', '-f', '-'], { input: probe });
  await until('the labels to be set by the API server', async () => {
    const got = (await dryRun()).metadata.labels ?? {};
    return got[labels.guid] === 'probe' && got[createdAt] === time;
  });
});

afterAll(removeRecord);

describe('an object that a developer creates with kubectl', () => {
  const inSpace = { [labels.spaceGuid]: space, [createdAt]: time };
  const app = { [labels.appGuid]: 'the-app' };
  const healthCheck = { type: 'process', data: { invocationTimeoutSeconds: 1, timeoutSeconds: 1 } };
  const appRef = { name: 'the-app' };

  test.each([
    ['CFApp', appSpec, { [labels.deploymentStatus]: 'ACTIVE' }],
    ['CFProcess', { appRef, processType: 'web', memoryMB: 64, diskQuotaMB: 64, healthCheck }, { ...app, [labels.processType]: 'web' }],
    ['CFPackage', { appRef, type: 'bits' }, { ...app, [labels.packageState]: 'AWAITING_UPLOAD' }],
    ['CFTask', { appRef, command: 'true' }, app],
    [
      'CFRoute',
      { host: 'shop', domainRef: { name: 'd', namespace: 'cf' }, destinations: [] },
      { [labels.domainGuid]: 'd', [labels.routeHost]: 'shop', [labels.unmapped]: 'true' },
    ],
  ])('has its labels in the answer: %s', async (kind, spec, own) => {
    const { metadata } = await createIt(object(kind, spec));
    expect(metadata.labels).toEqual({ [labels.guid]: metadata.name, ...inSpace, ...own });
  });

  test('keeps other labels and a valid creation time', async () => {
    const given = { team: 'a', [createdAt]: '2020-01-01T00-00-00' };
    expect(await createdBy(object('CFApp', appSpec, { name: `given-${run}`, labels: given }))).toMatchObject(given);
  });

  test('gets a creation time in place of one that is not readable', async () => {
    const unread = { [createdAt]: 'yesterday' };
    expect(await createdBy(object('CFApp', appSpec, { name: `unread-${run}`, labels: unread }))).toMatchObject({ [createdAt]: time });
  });

  test('can leave its name to the API server', async () => {
    const got = await createdBy(object('CFApp', appSpec, { generateName: 'any-' }));
    expect(got).toMatchObject(inSpace);
    expect(got).not.toHaveProperty([labels.guid]);
  });

  test('is not refused for a value that cannot be a label', async () => {
    const got = await createdBy(object('CFRoute', { host: 'shop', domainRef: { name: 'd'.repeat(70), namespace: 'cf' } }));
    expect(Object.keys(got).sort()).toEqual([createdAt, labels.guid, labels.routeHost, labels.spaceGuid].sort());
  });
});

describe('the API server', () => {
  const org = `org-${run}`;
  const tenancy = [
    object('CFOrg', { displayName: 'an org' }, { name: org, namespace: 'cf' }),
    object('CFDomain', { name: 'labels.example.com' }, { name: 'labels', namespace: 'cf' }),
    object('CFSpace', { displayName: 'a space' }, { name: space, namespace: org }),
  ];
  // CEL has no SHA-224.
  const hashed = [
    ...[labels.displayName, labels.orgName, labels.spaceName, labels.routePath, labels.domainName],
    ...[labels.serviceBrokerDisplayName, labels.serviceOfferingName, labels.servicePlanName],
  ] as string[];

  test('sets the labels at once that the controller would set, except hashes of names', async () => {
    await makeNamespace(org, { [labels.managedBy]: 'kf', [labels.orgGuid]: org });
    const create = async (args: string[], input: object[] = []): Promise<Made[]> => {
      const printed = await kubectl(['create', '--dry-run=server', '-o', 'json', ...args], { input });
      return printed.split(/^(?=\{)/m).map((text) => JSON.parse(text) as Made);
    };
    const all = [...(await create(['-n', space, '-f', contractFile])), ...(await create(['-f', '-'], tenancy))];
    const ofKorifi = all.filter(({ kind }) => kind.startsWith('CF'));
    expect(new Set(ofKorifi.map(({ kind }) => kind)).size).toBe(15);
    for (const { metadata, ...rest } of ofKorifi) {
      const wanted = indexLabels({ ...rest, metadata: { ...metadata, creationTimestamp: renewed } });
      const plain = Object.fromEntries(Object.entries(wanted).filter(([key]) => !hashed.includes(key)));
      expect(metadata.labels, rest.kind).toEqual(plain);
    }
  });
});

describe('a change of an object', () => {
  test('sets the true creation time again, and restores labels', async () => {
    const { metadata } = await createIt(object('CFApp', appSpec));
    const wrong = { [createdAt]: '2020-01-01T00-00-00', [labels.guid]: 'another' };
    const patch = JSON.stringify({ metadata: { labels: wrong } });
    const changed = await kubectlJson<Made>(['patch', 'cfapp', '-n', space, metadata.name, '--type=merge', '-p', patch], { as: dev });
    const truth = metadata.creationTimestamp.slice(0, 19).replaceAll(':', '-');
    expect(changed.metadata.labels).toMatchObject({ [createdAt]: truth, [labels.guid]: metadata.name });
  });
});

test('the clock goes on after kf was removed and installed again', async () => {
  const bindings = ['validatingadmissionpolicybinding/kf-controller-leads', 'mutatingadmissionpolicybinding/kf-created-at'];
  await kubectl(['delete', ...bindings]);
  // The API server looks every second at what the bindings name.
  await sleep(3_000);
  await installPolicies();
  const later = { ...record.metadata.annotations, [annotations.leaderRenewed]: '2024-05-06T08:09:10.123456Z' };
  await kubectl(['apply', '-f', '-'], { input: { ...record, metadata: { ...record.metadata, annotations: later } } });
  await until('the new time', async () => (await createdBy(object('CFApp', appSpec)))[createdAt] === '2024-05-06T08-09-10');
});

describe('without a controller that has ever run', () => {
  test('objects are created as before, with the labels that need no clock', async () => {
    await removeRecord();
    const withoutTime = async (): Promise<boolean> => {
      const input = object('CFApp', appSpec);
      const { code, stdout } = await ask(['create', '-f', '-', '-o', 'json'], { input, as: dev });
      expect(code).toBe(0);
      const { metadata } = JSON.parse(stdout) as Made;
      expect(metadata.labels?.[labels.guid]).toBe(metadata.name);
      return metadata.labels?.[createdAt] === undefined;
    };
    await until('the API server to know that the record is gone', withoutTime);
  });
});

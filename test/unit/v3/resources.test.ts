// Each resource in the shape of the CF v3 API, compared with a golden file.

import { describe, expect, it } from 'vitest';
import { roleBindingType } from '../../../src/lib/api/core.ts';
import { annotations, labels } from '../../../src/lib/api/group.ts';
import type {
  CFApp,
  CFBuild,
  CFOrg,
  CFProcess,
  CFQuota,
  CFRoute,
  CFServiceBinding,
  CFServiceInstance,
  CFSpace,
} from '../../../src/lib/api/types.generated.ts';
import { presentApp, presentEnv, presentFeatures, presentVariables } from '../../../src/lib/v3/apps.ts';
import { presentEvent } from '../../../src/lib/v3/events.ts';
import { presentOrg, presentRoles, presentSpace, presentUser } from '../../../src/lib/v3/places.ts';
import { presentBuildpacks, presentInfo, presentRoot, presentStacks, presentV3Root } from '../../../src/lib/v3/platform.ts';
import { presentProcess, presentStats } from '../../../src/lib/v3/processes.ts';
import { presentOrgQuota, presentSpaceQuota, presentUsage } from '../../../src/lib/v3/quotas.ts';
import { linksTo } from '../../../src/lib/v3/resource.ts';
import { presentRevision, presentRevisionVariables } from '../../../src/lib/v3/revisions.ts';
import { presentDestinations, presentDomain, presentRoute, presentSharedSpaces } from '../../../src/lib/v3/routes.ts';
import { presentBinding, presentServiceInstance } from '../../../src/lib/v3/services.ts';
import { presentDeployment } from '../../../src/lib/v3/deployments.ts';
import { presentBuild, presentDroplet, presentPackage } from '../../../src/lib/v3/sources.ts';
import { presentTask } from '../../../src/lib/v3/tasks.ts';
import { asStored } from '../../support/stored.ts';

const link = linksTo('https://kubernetes.example.com:6443');
const hash = 'a'.repeat(64);

const meta = (name: string, namespace = 'space-guid') => ({
  name,
  namespace,
  creationTimestamp: '2026-11-22T10:00:00Z',
  labels: { [labels.updatedAt]: '2026-11-22T11-30-05', env: 'prod' },
  annotations: { [annotations.changedBy]: 'alice', contact: 'bob@example.com' },
});

const app = asStored<CFApp>({
  metadata: { ...meta('app-guid'), annotations: { ...meta('').annotations, [annotations.maxInFlight]: '2' } },
  spec: {
    displayName: 'shop',
    desiredState: 'STARTED',
    lifecycle: { type: 'buildpack', data: { buildpacks: ['nodejs'], stack: 'kf-stack' } },
    envSecretName: 'app-guid-env',
    currentDropletRef: { name: 'build-guid' },
  },
  status: { deployment: { id: 'deploy-guid', phase: 'Serving', since: '2026-11-22T11:31:00Z' } },
});

const process = asStored<CFProcess>({
  metadata: meta('process-guid'),
  spec: {
    appRef: { name: 'app-guid' },
    processType: 'web',
    detectedCommand: 'node server.js',
    desiredInstances: 3,
    memoryMB: 256,
    diskQuotaMB: 1024,
    healthCheck: { type: 'http', data: { httpEndpoint: '/health', invocationTimeoutSeconds: 0, timeoutSeconds: 60 } },
  },
});

const build = asStored<CFBuild>({
  metadata: meta('build-guid'),
  spec: {
    appRef: { name: 'app-guid' },
    packageRef: { name: 'package-guid' },
    lifecycle: app.spec.lifecycle,
    stagingMemoryMB: 1024,
    stagingDiskMB: 4096,
  },
  status: {
    state: 'STAGED',
    droplet: {
      registry: { image: `localhost:32500/space-guid/app-guid@sha256:${hash}` },
      stack: 'kf-stack',
      processTypes: [{ type: 'web', command: 'node server.js' }],
      buildpacks: [{ name: 'nodejs', version: '1.2.3' }],
    },
  },
});

const route = asStored<CFRoute>({
  metadata: meta('route-guid'),
  spec: {
    host: 'shop',
    path: '/cart',
    protocol: 'http',
    domainRef: { name: 'domain-guid', namespace: 'cf' },
    destinations: [{ guid: 'destination-guid', appRef: { name: 'app-guid' }, processType: 'web' }],
  },
  status: { destinations: [{ guid: 'destination-guid', appRef: { name: 'app-guid' }, processType: 'web', port: 8080, protocol: 'http1' }] },
});

const domain = asStored({ metadata: meta('domain-guid', 'cf'), spec: { name: 'apps.example.com' } });
const org = asStored<CFOrg>({ metadata: meta('org-guid', 'cf'), spec: { displayName: 'example-org' } });
const space = asStored<CFSpace>({ metadata: meta('space-guid', 'org-guid'), spec: { displayName: 'example-space' } });

const instance = asStored<CFServiceInstance>({
  metadata: meta('instance-guid'),
  spec: { displayName: 'db', type: 'user-provided', secretName: 'secret', planGuid: '', tags: ['sql'], syslogDrainUrl: 'syslog://logs' },
  status: { lastOperation: { type: 'create', state: 'succeeded' } },
});

const binding = asStored<CFServiceBinding>({
  metadata: meta('binding-guid'),
  spec: { type: 'app', service: { name: 'instance-guid' }, appRef: { name: 'app-guid' }, parameters: { name: '' }, displayName: 'main-db' },
});

const builder = asStored({
  metadata: meta('kf-builder', 'cf'),
  spec: {},
  status: {
    stacks: [
      { name: 'kf-stack', description: 'a stack', creationTimestamp: '2026-11-01T00:00:00Z', updatedTimestamp: '2026-11-01T00:00:00Z' },
    ],
    buildpacks: [
      {
        name: 'nodejs',
        stack: 'kf-stack',
        version: '1.2.3',
        creationTimestamp: '2026-11-01T00:00:00Z',
        updatedTimestamp: '2026-11-02T00:00:00Z',
      },
      { name: 'binary', stack: 'kf-stack', version: '1.0.0', creationTimestamp: '', updatedTimestamp: '' },
    ],
  },
});

const roles = (clusterRole: string, namespace: string, more: object = {}) =>
  presentRoles(
    asStored({
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: roleBindingType.kind,
      metadata: { ...meta('binding-name', namespace), labels: { [labels.roleGuid]: 'role-guid', ...more } },
      roleRef: { apiGroup: roleBindingType.group, kind: 'ClusterRole', name: `korifi-controllers-${clusterRole}` },
      subjects: [
        { kind: 'User', name: 'alice' },
        { kind: 'ServiceAccount', name: 'ci', namespace: 'tools' },
        { kind: 'Group', name: 'devs' },
      ],
    }),
    link,
  );

const task = asStored({
  metadata: meta('task-guid'),
  spec: { appRef: { name: 'app-guid' }, command: 'rake db:migrate', displayName: 'migrate' },
  status: { sequenceId: 4, memoryMB: 256, diskQuotaMB: 1024, dropletRef: { name: 'build-guid' } },
});

const details = {
  ...{ id: 4, guid: 'task-guid', name: 'migrate', state: 'FAILED' as const, startTime: '2026-11-22T10:00:00Z', command: 'rake db:migrate' },
  ...{ memoryMB: 256, diskMB: 1024, failureReason: 'exit code 1' },
};

const bits = asStored({
  metadata: { ...meta('package-guid'), annotations: { [annotations.contentHash]: `sha256:${hash}` } },
  spec: { type: 'bits' as const, appRef: { name: 'app-guid' }, source: { registry: { image: 'registry/x@sha256:1' } } },
});

const image = asStored({
  metadata: meta('image-guid'),
  spec: { type: 'docker' as const, appRef: { name: 'app-guid' }, source: { registry: { image: 'nginx:1' } } },
});

const revision = {
  ...{ version: 3, guid: 'revision-guid', description: 'New droplet deployed.', droplet: 'build-guid', created: '2026-11-22T10:00:00Z' },
  ...{ deployed: true, deployable: true },
};

const settings = {
  env: { COLOUR: 'Ymx1ZQ==' },
  commands: { web: 'node server.js', worker: '' },
  sidecars: {
    web: '[{"name":"auth","command":"./auth","memoryMB":16},{"name":"log","command":"./log"}]',
    worker: '[{"name":"log","command":"./log"}]',
  },
};

const quota = asStored<CFQuota>({
  metadata: meta('quota-guid', 'org-guid'),
  spec: { displayName: 'small', totalMemoryMB: 1024, routes: 0, appInstances: 10 },
});

const usage = { startedInstances: 3, memoryMB: 768, routes: 2, serviceInstances: 1, runningTasks: 1, serviceKeys: 0 };

const golden: [name: string, resource: unknown][] = [
  ['root', presentRoot(link)],
  ['v3-root', presentV3Root(link)],
  ['info', presentInfo('0.1.0', link)],
  ['app', presentApp(app, link)],
  ['app-of-an-image', presentApp({ ...app, spec: { ...app.spec, lifecycle: { type: 'docker', data: { stack: '' } } } }, link)],
  ['env', presentEnv({ vcapServices: { db: [] }, vcapApplication: { name: 'shop' }, variables: { COLOUR: 'blue' } })],
  ['environment-variables', presentVariables(app, { COLOUR: 'blue' }, link)],
  ['features', presentFeatures(true)],
  ['process', presentProcess(process, link)],
  [
    'stats',
    presentStats(
      process,
      [
        {
          index: 0,
          state: 'running',
          since: '2026-11-22T11:59:00Z',
          cpu: 0.25,
          memoryBytes: 1_048_576,
          memoryMB: 128,
          diskMB: 512,
          pod: 'shop-0',
        },
        { index: 1, state: 'crashed', since: '2026-11-22T11:59:30Z', ready: false, details: 'exit code 1', pod: 'shop-1' },
        { index: 2, state: 'down' },
      ],
      new Date('2026-11-22T12:00:00Z'),
    ),
  ],
  ['package', presentPackage(bits, link)],
  ['package-of-an-image', presentPackage(image, link)],
  ['build', presentBuild(build, link)],
  ['build-that-failed', presentBuild({ ...build, status: { state: 'FAILED', failure: { reason: 'NoBuildpackMatched' } } }, link)],
  ['droplet', presentDroplet(build, link)],
  ['deployment', presentDeployment(app, link)],
  ['revision', presentRevision(app, revision, settings, link)],
  ['revision-environment-variables', presentRevisionVariables(app, revision.guid, { COLOUR: 'blue' }, link)],
  ['organization-quota', presentOrgQuota(quota, ['org-guid'], link)],
  ['space-quota', presentSpaceQuota(quota, ['space-guid'], link)],
  ['usage-summary', presentUsage('organization', '/v3/organizations/org-guid', usage, link)],
  ['route', presentRoute(route, 'apps.example.com', link)],
  ['destinations', presentDestinations(route, link)],
  ['shared-spaces', presentSharedSpaces('route-guid', ['space-guid', 'other-guid'], link)],
  ['domain', presentDomain(domain, link)],
  ['organization', presentOrg(org, link)],
  ['space', presentSpace(space, link)],
  ['roles-of-a-space', roles('space-developer', 'space-guid')],
  ['roles-of-an-org', roles('organization-manager', 'org-guid')],
  ['user', presentUser('alice')],
  ['service-instance', presentServiceInstance(instance, link)],
  ['service-credential-binding', presentBinding(binding, link)],
  ['task', presentTask(task, details, link)],
  [
    'audit-event',
    presentEvent(app, { time: '2026-11-22T10:00:00Z', type: 'audit.app.stop', actor: 'alice', description: 'stopped' }, 'org-guid'),
  ],
  ['stacks', presentStacks(builder, link)],
  ['buildpacks', presentBuildpacks(builder, link)],
];

describe('a resource of the v3 API', () => {
  it.each(golden)('%s', async (name, resource) => {
    await expect(`${JSON.stringify(resource, null, 2)}\n`).toMatchFileSnapshot(`../../golden/v3/${name}.json`);
  });

  it('has no labels and annotations of the platform, and the time of its last change', () => {
    expect(presentApp(app, link)).toMatchObject({
      metadata: { labels: { env: 'prod' }, annotations: { contact: 'bob@example.com' } },
      updated_at: '2026-11-22T11:30:05Z',
    });
  });

  it('names the quota of an org and of a space', () => {
    const withQuota = <T extends { metadata: object }>(place: T): T => ({
      ...place,
      metadata: { ...place.metadata, annotations: { [annotations.quota]: 'quota-guid' } },
    });
    expect(presentOrg(withQuota(org), link)).toMatchObject({ relationships: { quota: { data: { guid: 'quota-guid' } } } });
    expect(presentSpace(withQuota(space), link)).toMatchObject({ relationships: { quota: { data: { guid: 'quota-guid' } } } });
  });

  it('is no role if it was copied from the org, belongs to the root namespace, or is none of cf', () => {
    expect(roles('space-developer', 'space-guid', { [labels.propagatedFrom]: 'org-guid' })).toEqual([]);
    expect(roles('root-namespace-user', 'cf')).toEqual([]);
    expect(roles('something-else', 'space-guid')).toEqual([]);
  });

  it.each([
    ['Pending', { value: 'ACTIVE', reason: 'DEPLOYING' }],
    ['Starting', { value: 'ACTIVE', reason: 'DEPLOYING' }],
    ['Serving', { value: 'FINALIZED', reason: 'DEPLOYED' }],
    ['Failed', { value: 'FINALIZED', reason: 'CANCELED' }],
  ] as const)('is a deployment %s', (phase, status) => {
    expect(presentDeployment({ ...app, status: { deployment: { id: 'x', phase } } }, link)).toMatchObject({ guid: 'x', status });
  });

  it('is no deployment for an app that was never started, or was stopped', () => {
    expect(presentDeployment({ ...app, status: {} }, link)).toBeUndefined();
    expect(presentDeployment({ ...app, status: { deployment: { id: 'x', phase: 'Stopped' } } }, link)).toBeUndefined();
  });
});

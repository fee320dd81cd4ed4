// The controller lets only the org of a private domain, and those it is shared with, have routes on it.

import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { domainReconciler } from '../../../src/controller/routes/domain.ts';
import { routeReconciler } from '../../../src/controller/routes/route.ts';
import { createLogger } from '../../../src/controller/runtime/log.ts';
import { Manager } from '../../../src/controller/runtime/manager.ts';
import { sources } from '../../../src/controller/sources.ts';
import { findCondition } from '../../../src/lib/api/conditions.ts';
import { configMapType, leaseType, namespaceType } from '../../../src/lib/api/core.ts';
import { httpRouteType } from '../../../src/lib/api/gateway.ts';
import { kinds } from '../../../src/lib/api/group.ts';
import { MemoryCluster } from '../../support/memory-cluster.ts';
import { patienceMs } from '../../support/until.ts';
import { info } from './build-scene.ts';

let cluster: MemoryCluster;
let stop: () => Promise<void>;

async function addSpace(org: string, name: string): Promise<void> {
  await cluster.create(namespaceType, { metadata: { name, labels: { 'kf.cloudfoundry.org/managed-by': 'kf' } } });
  await cluster.create(kinds.space, { metadata: { name, namespace: org }, spec: { displayName: name } });
}

beforeEach(async () => {
  cluster = new MemoryCluster();
  for (const name of ['cf', 'org-a', 'org-b'])
    await cluster.create(namespaceType, { metadata: { name, labels: { 'kf.cloudfoundry.org/managed-by': 'kf' } } });
  await addSpace('org-a', 'a');
  await addSpace('org-b', 'b');
  await cluster.create(configMapType, { metadata: { name: 'kf-info', namespace: 'cf' }, data: { 'info.json': JSON.stringify(info) } });
  await cluster.create(kinds.domain, { metadata: { name: 'd', namespace: 'cf' }, spec: { name: 'team.example', org: 'org-a' } });
  const aborter = new AbortController();
  const running = new Manager({
    cluster,
    sources: sources('cf'),
    reconcilers: [routeReconciler, domainReconciler],
    leader: { ns: 'kf-system', name: 'kf-controller', identity: 'one', followMs: 20 },
    rootNamespace: 'cf',
    log: createLogger('error', (line) => process.stderr.write(line)),
  }).run(aborter.signal);
  stop = async () => {
    aborter.abort();
    await running;
  };
});

afterEach(async () => {
  await stop();
  cluster.close();
});

const claimed = (ns: string) => findCondition(cluster.peek(kinds.route, ns, 'r') ?? { metadata: {} }, 'Claimed');
const addRoute = (ns: string, host: string) =>
  cluster.create(kinds.route, {
    metadata: { name: 'r', namespace: ns },
    spec: { host, domainRef: { name: 'd', namespace: 'cf' }, destinations: [] },
  });
const untilClaimed = (ns: string, status: string) =>
  vi.waitFor(() => expect(claimed(ns)?.status).toBe(status), { timeout: patienceMs, interval: 5 });
const httpRoutes = () => cluster.all(httpRouteType).map(({ metadata }) => metadata.namespace);

describe('a domain of an org', () => {
  test('takes a route for every host from its own org, without a path and without an operator', async () => {
    await cluster.mergePatch(kinds.domain, 'cf', 'd', { spec: { sharedWith: ['org-b'] } });
    await addRoute('b', '*');
    await untilClaimed('b', 'False');
    expect(claimed('b')?.reason).toBe('WildcardNotAllowed');
    await cluster.create(kinds.route, {
      metadata: { name: 'path', namespace: 'a' },
      spec: { host: '*', path: '/login', domainRef: { name: 'd', namespace: 'cf' }, destinations: [] },
    });
    await addRoute('a', '*');
    await untilClaimed('a', 'True');
    await vi.waitFor(
      () => expect(findCondition(cluster.peek(kinds.route, 'a', 'path') ?? { metadata: {} }, 'Claimed')?.reason).toBe('WildcardNotAllowed'),
      { timeout: patienceMs, interval: 5 },
    );
  });

  test('takes routes of its org, and refuses those of others without a claim on the host', async () => {
    await addRoute('b', 'www');
    await untilClaimed('b', 'False');
    expect(claimed('b')).toMatchObject({
      reason: 'InvalidDomainRef',
      message: "The domain 'team.example' is private, and not to be used by this org: an operator shares it with the org.",
    });
    expect(cluster.all(leaseType).filter(({ metadata }) => metadata.namespace === 'cf')).toEqual([]);
    await addRoute('a', 'www');
    await untilClaimed('a', 'True');
    await vi.waitFor(() => expect(httpRoutes()).toEqual(['a']), { timeout: patienceMs, interval: 5 });
  });

  test('takes routes of an org while it is shared with it', async () => {
    await addRoute('b', 'guest');
    await untilClaimed('b', 'False');
    await cluster.mergePatch(kinds.domain, 'cf', 'd', { spec: { sharedWith: ['org-b'] } });
    await untilClaimed('b', 'True');
    await vi.waitFor(() => expect(httpRoutes()).toEqual(['b']), { timeout: patienceMs, interval: 5 });
    await cluster.mergePatch(kinds.domain, 'cf', 'd', { spec: { sharedWith: [] } });
    await untilClaimed('b', 'False');
    await vi.waitFor(() => expect(httpRoutes()).toEqual([]), { timeout: patienceMs, interval: 5 });
  });
});

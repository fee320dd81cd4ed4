// What restore.sh of docs/backup.md restores, and in which order. It needs jq, as the page says; test/cluster/backup.test.ts runs the whole program.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { compareApp, seenOf, type AppObjects } from '../../../src/lib/api/app-events.ts';
import type { ConfigMap } from '../../../src/lib/api/core.ts';
import { readSeen } from '../../../src/lib/api/event-log.ts';
import type { CFApp, CFBuild, CFPackage, CFRoute, CFServiceBinding, CFTask } from '../../../src/lib/api/types.generated.ts';
import { asStored } from '../../support/stored.ts';

interface Planned {
  kind: string;
  step: number;
  metadata: { name: string };
}

const page = readFileSync('docs/backup.md', 'utf8');
let folder: string;

beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'kf-plan-'));
});
afterAll(() => {
  rmSync(folder, { recursive: true });
});

/** Runs one of the jq programs of restore.sh, which is a file there or, as `statuses`, an argument. */
function jq<T>(program: string, input: unknown, ...args: string[]): T {
  const place =
    program === 'statuses'
      ? /jq --slurpfile plan "\$work\/plan\.json" '\n([^]*?)' \\\n/
      : new RegExp(`"\\$work/${program}" <<'JQ'\n([^]*?)\nJQ\n`);
  const [, text = ''] = place.exec(page) ?? [];
  const file = path.join(folder, program);
  writeFileSync(file, text);
  const { status, stdout, stderr, error } = spawnSync('jq', [...args, '-f', file], { input: JSON.stringify(input), encoding: 'utf8' });
  if (status !== 0) throw new Error(`jq: ${stderr}`, { cause: error });
  return JSON.parse(stdout) as T;
}

type More = Record<string, unknown> & { metadata?: object };
const object = (kind: string, namespace: string | undefined, name: string, { metadata, ...more }: More = {}) => ({
  kind,
  metadata: { name, namespace, uid: `uid-${name}`, ...metadata },
  ...more,
});
const home = (name: string, owner: string) =>
  object('Namespace', undefined, name, { metadata: { uid: `ns-${name}`, annotations: { 'kf.cloudfoundry.org/owner-uid': owner } } });
const condition = (type: string, status: string) => ({ status: { conditions: [{ type, status }] } });
const ofApp = { ownerReferences: [{ kind: 'CFApp', uid: 'uid-app' }] };

const places = [
  object('Namespace', undefined, 'cf'),
  object('Namespace', undefined, 'kf-system'),
  home('org', 'uid-org'),
  home('space', 'uid-space'),
  object('CFOrg', 'cf', 'org'),
  object('CFSpace', 'org', 'space'),
  object('CFApp', 'space', 'app'),
];
const planOf = (...items: unknown[]): Record<string, number> =>
  Object.fromEntries(
    jq<Planned[]>('plan.jq', { items: [...places, ...items] }).map(({ kind, metadata, step }) => [`${kind} ${metadata.name}`, step]),
  );

describe('the plan of restore.sh', () => {
  test('makes owners before what they own', () => {
    expect(planOf(object('Secret', 'space', 'app-env', { metadata: ofApp }), object('CFDomain', 'cf', 'domain'))).toEqual({
      'Namespace cf': 0,
      'Namespace kf-system': 0,
      'CFOrg org': 1,
      'Namespace org': 2,
      'CFSpace space': 3,
      'Namespace space': 4,
      'CFApp app': 5,
      'Secret app-env': 6,
      'CFDomain domain': 6,
    });
  });

  test('makes those of one app whose age counts in the order of their ages, each in a step of its own', () => {
    const build = (name: string, creationTimestamp: string, app = 'app') =>
      object('CFBuild', 'space', name, {
        metadata: { creationTimestamp },
        spec: { appRef: { name: app } },
        status: { state: 'STAGED' },
      });
    const route = object('CFRoute', 'space', 'half', { spec: { sharedFrom: { uid: 'uid-other' } } });
    const steps = planOf(build('new', '2026-02'), build('old', '2026-01'), build('other', '2026-03', 'app-2'), route);
    expect(steps).toMatchObject({ 'CFBuild old': 6, 'CFBuild new': 7, 'CFBuild other': 6, 'CFRoute half': 8 });
  });

  test("makes the record of an app's events when all the objects that it has seen are there", () => {
    const record = object('ConfigMap', 'space', 'app-events', { metadata: ofApp, data: { seen: '{}' } });
    const secret = object('Secret', 'space', 'app-env', { metadata: ofApp, data: { seen: 'eHl6' } });
    const route = object('CFRoute', 'space', 'half', { spec: { sharedFrom: { uid: 'uid-other' } } });
    expect(planOf(record, secret, route)).toMatchObject({ 'Secret app-env': 6, 'CFRoute half': 7, 'ConfigMap app-events': 8 });
  });

  test.each([
    ['a route that was refused', object('CFRoute', 'space', 'x', condition('Claimed', 'False'))],
    ['a space whose namespace is that of another one', object('CFSpace', 'org', 'org', { metadata: { uid: 'uid-thief' } })],
    ['an object of a space that is not restored', object('CFApp', 'elsewhere', 'x')],
    ['an object that is being deleted', object('CFApp', 'space', 'x', { metadata: { deletionTimestamp: '2026' } })],
    ['an object whose owner is gone', object('CFProcess', 'space', 'x', { metadata: { ownerReferences: [{ uid: 'gone' }] } })],
    ['a build that has not ended', object('CFBuild', 'space', 'x', { spec: { appRef: { name: 'app' } }, status: { state: 'STAGING' } })],
    ['a task that has not ended', object('CFTask', 'space', 'x', condition('Started', 'True'))],
    ['a credential that kf makes', object('Secret', 'space', 'kf-registry-push')],
    ['the key of the registry', object('Secret', 'kf-system', 'kf-registry-key')],
    ['a token of an account', object('Secret', 'space', 'x', { type: 'kubernetes.io/service-account-token' })],
    ['a copy of a role', object('RoleBinding', 'space', 'x', { metadata: { labels: { 'cloudfoundry.org/propagated-from': 'org' } } })],
  ])('leaves out %s', (_, item) => {
    expect(planOf(item)).toEqual(planOf());
  });

  test.each([
    ['a task that has ended', object('CFTask', 'space', 'x', condition('Failed', 'True'))],
    [
      "the controller's own role",
      object('RoleBinding', 'space', 'kf-controller-space', { metadata: { labels: { 'kf.cloudfoundry.org/managed-by': 'kf' } } }),
    ],
    ['the settings', object('ConfigMap', 'kf-system', 'kf-setup')],
    ['credentials of an outside registry', object('Secret', 'cf', 'kf-registry-push')],
  ])('contains %s', (_, item) => {
    expect(planOf(item)).toHaveProperty([`${item.kind} ${item.metadata.name}`]);
  });
});

/** The objects of step 6 as they are sent. */
function sent(uids: Record<string, string>, ...planned: object[]): object[] {
  const file = path.join(folder, 'uids.json');
  writeFileSync(file, JSON.stringify(uids));
  return jq<{ items: object[] }>('fresh.jq', planned, '--argjson', 'step', '6', '--slurpfile', 'uids', file).items;
}

test('an object is sent without what the cluster fills in, and with the uids of now', () => {
  const half = object('CFRoute', 'space', 'half', {
    metadata: { ...ofApp, resourceVersion: '7', finalizers: ['x'], annotations: { note: 'kept' } },
    spec: { sharedFrom: { uid: 'uid-route', space: 'other' } },
    ...condition('Ready', 'True'),
  });
  const items = sent({ 'uid-app': 'new-app', 'uid-route': 'new-route' }, { ...half, step: 6 }, { ...half, step: 7 });
  const metadata = {
    name: 'half',
    namespace: 'space',
    annotations: { note: 'kept' },
    ownerReferences: [{ kind: 'CFApp', uid: 'new-app' }],
  };
  expect(items).toEqual([{ kind: 'CFRoute', metadata, spec: { sharedFrom: { uid: 'new-route', space: 'other' } } }]);
});

test('a route gets its address back, and an app what only its status has', () => {
  const before = [
    object('CFRoute', 'space', 'route', { status: { uri: 'shop.example.com', conditions: [] } }),
    object('CFRoute', 'space', 'waiting'),
    object('CFApp', 'space', 'app', { status: { revision: { version: 2 }, deployment: { id: 'd' } } }),
    object('CFBuild', 'space', 'build', { status: { state: 'STAGED' } }),
  ];
  const plan = path.join(folder, 'plan.json');
  writeFileSync(plan, JSON.stringify(before));
  const now = before.map(({ kind, metadata }) => ({ kind, metadata }));
  const { items } = jq<{ items: { status: unknown }[] }>('statuses', { items: now }, '--slurpfile', 'plan', plan);
  expect(items.map(({ status }) => status)).toEqual([{ uri: 'shop.example.com' }, {}, { revision: { version: 2 } }, { state: 'STAGED' }]);
});

describe("the record of an app's events", () => {
  const created = '2026-11-22T10:00:00Z';
  const meta = (name: string, uid: string) => ({ name, namespace: 'space', uid, creationTimestamp: created });
  const lifecycle = { type: 'docker' as const, data: { stack: '' } };
  const build = { appRef: { name: 'app' }, packageRef: { name: 'package' }, lifecycle, stagingMemoryMB: 1, stagingDiskMB: 1 };
  const service = { appRef: { name: 'app' }, service: { name: 'db' }, type: 'app' as const, parameters: { name: '' } };
  /** An app with all kinds of objects. @param ids the first characters of their uids */
  const objectsWith = (ids: string): AppObjects => ({
    app: asStored<CFApp>({ metadata: meta('app', `${ids}01-app`), spec: { displayName: 'shop', desiredState: 'STARTED', lifecycle } }),
    processes: [],
    packages: [asStored<CFPackage>({ metadata: meta('package', `${ids}02-x`), spec: { type: 'bits', appRef: { name: 'app' } } })],
    builds: [asStored<CFBuild>({ metadata: meta('build', `${ids}03-x`), spec: build, status: { state: 'STAGED' } })],
    bindings: [asStored<CFServiceBinding>({ metadata: meta('binding', `${ids}04-x`), spec: service })],
    routes: [
      asStored<CFRoute>({
        metadata: meta('route', `${ids}05-x`),
        spec: { domainRef: { name: 'domain' } },
        status: { uri: 'shop.example.com' },
      }),
    ],
    tasks: [asStored<CFTask>({ metadata: meta('task', `${ids}06-x`), spec: { appRef: { name: 'app' } } })],
    pods: [],
  });
  const uidsOf = ({ app, packages, builds, bindings, routes, tasks }: AppObjects): string[] =>
    [app, ...packages, ...builds, ...bindings, ...routes, ...tasks].map(({ metadata }) => metadata.uid);
  const record = (seen: string) =>
    object('ConfigMap', 'space', 'app-events', { metadata: ofApp, data: { 1: '{"time":""}', seen }, step: 6 });

  test('knows the objects by the uids of now, so the restore is no event', () => {
    const [before, after] = [objectsWith('aaaaaa'), objectsWith('bbbbbb')];
    const uids = Object.fromEntries(uidsOf(before).map((uid, at) => [uid, uidsOf(after)[at] ?? '']));
    const [map] = sent(uids, record(JSON.stringify(seenOf(before, created))));
    const seen = readSeen(map as ConfigMap);
    expect(seen).toEqual(seenOf(after, created));
    expect(compareApp(seen, after, Date.now()).events).toEqual([]);
    expect(map).toMatchObject({ data: { 1: '{"time":""}' } });
  });

  test.each(['', '{', '"text"'])('%j in it does not stop the restore', (seen) => {
    expect(sent({}, record(seen))).toHaveLength(1);
  });
});

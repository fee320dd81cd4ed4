// What restore.sh of docs/backup.md restores, and in which order. It needs jq, as the page says; test/cluster/backup.test.ts runs the whole program.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

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

/** Runs one of the jq programs of restore.sh. */
function jq<T>(program: string, input: unknown, ...args: string[]): T {
  const [, text = ''] = new RegExp(`"\\$work/${program}" <<'JQ'\n([^]*?)\nJQ\n`).exec(page) ?? [];
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

test('an object is sent without what the cluster fills in, and with the uids of now', () => {
  const uids = path.join(folder, 'uids.json');
  writeFileSync(uids, JSON.stringify({ 'uid-app': 'new-app', 'uid-route': 'new-route' }));
  const half = object('CFRoute', 'space', 'half', {
    metadata: { ...ofApp, resourceVersion: '7', finalizers: ['x'], annotations: { note: 'kept' } },
    spec: { sharedFrom: { uid: 'uid-route', space: 'other' } },
    ...condition('Ready', 'True'),
  });
  const sent = jq<{ items: unknown[] }>(
    'fresh.jq',
    [
      { ...half, step: 6 },
      { ...half, step: 7 },
    ],
    '--argjson',
    'step',
    '6',
    '--slurpfile',
    'uids',
    uids,
  );
  const metadata = {
    name: 'half',
    namespace: 'space',
    annotations: { note: 'kept' },
    ownerReferences: [{ kind: 'CFApp', uid: 'new-app' }],
  };
  expect(sent.items).toEqual([{ kind: 'CFRoute', metadata, spec: { sharedFrom: { uid: 'new-route', space: 'other' } } }]);
});

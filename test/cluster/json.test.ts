// Every everyday command with --json: one document on stdout, in the same envelope.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { Kf, kubectl, kubectlJson, ringEnv } from '../support/kf.ts';

const [app, db, org] = ['json-app', 'json-db', 'json-org'];
const url = ['apps.localhost', '-n', 'json-too'];
let kf: Kf;
let admin: Kf;

beforeAll(async () => {
  [kf, admin] = await Promise.all([Kf.create(), Kf.create('admin')]);
});
afterAll(async () => {
  await kf.run(['delete', app, '-r', '-f']);
  await kf.run(['delete-service', db, '-f']);
  const { items } = await kubectlJson<{ items: { metadata: { name: string }; spec: { displayName: string } }[] }>(
    'get',
    'cforgs',
    '-n',
    'cf',
  );
  const made = items.filter(({ spec }) => spec.displayName === org);
  for (const { metadata } of made) await kubectl('delete', 'cforg', metadata.name, '-n', 'cf', '--wait=false');
  await Promise.all([kf.remove(), admin.remove()]);
});

/** In an order in which each finds what it needs; with the required parts of the result. */
const everyday: [args: string[], has: unknown][] = [
  [['push', app, '-o', `${ringEnv('KF_CLUSTER_NODE_REGISTRY')}/kf/sample:1`, '-m', '64M'], { apps: [{ name: app, unchanged: false }] }],
  [['apps'], [{ name: app }]],
  [['app', app], { name: app, state: 'started' }],
  [['env', app], { vcapServices: {}, variables: {} }],
  [['set-env', app, 'COLOUR', 'green'], { app, name: 'COLOUR' }],
  [['unset-env', app, 'COLOUR'], { app, name: 'COLOUR', changed: true }],
  [['unset-env', app, 'COLOUR'], { changed: false }],
  [['create-user-provided-service', db, '-p', '{"uri":"postgres://db.example.com/json"}'], { name: db, created: true }],
  [['create-user-provided-service', db, '-p', '{}'], { created: false }],
  [['bind-service', app, db], { app, service: db, bound: true }],
  [['services'], [{ name: db, boundApps: [app] }]],
  [['service', db], { name: db, type: 'user-provided', boundApps: [{ name: app, status: 'create succeeded' }] }],
  [['update-user-provided-service', db, '-p', '{"uri":"postgres://db.example.com/moved"}'], { name: db, changed: true }],
  [['rename-service', db, `${db}-2`], { name: `${db}-2`, before: db }],
  [['rename-service', `${db}-2`, db], { name: db }],
  [['restart', app], { name: app, state: 'started' }],
  [['env', app], { vcapServices: { 'user-provided': [{ name: db, credentials: { uri: 'postgres://db.example.com/moved' } }] } }],
  [['unbind-service', app, db], { app, service: db, unbound: true }],
  [['delete-service', db, '-f'], { name: db, deleted: true }],
  [['domains'], [{ name: 'apps.internal' }, { name: 'apps.localhost' }]],
  [['map-route', app, ...url], { app, url: 'json-too.apps.localhost', mapped: true }],
  [
    ['routes'],
    [
      { host: app, apps: [app] },
      { host: 'json-too', apps: [app] },
    ],
  ],
  [['unmap-route', app, ...url], { app, url: 'json-too.apps.localhost', unmapped: true }],
  [['orgs'], [{ name: ringEnv('KF_TEST_ORG') }]],
  [['spaces'], [{ name: ringEnv('KF_TEST_SPACE') }]],
  [['target'], { org: { name: ringEnv('KF_TEST_ORG') }, space: { name: ringEnv('KF_TEST_SPACE') } }],
  [['scale', app, '-i', '2'], { name: app, processes: [{ type: 'web', instances: 2 }] }],
  [['scale', app], { name: app, processes: [{ type: 'web', instances: 2 }] }],
  [['restage', app], { name: app, state: 'started' }],
  [['run-task', app, '-c', 'sleep 60', '--name', 'job', '-m', '32M'], { id: 1, name: 'job' }],
  [['tasks', app], [{ id: 1, name: 'job', command: 'sleep 60' }]],
  [['task', app, '1'], { id: 1, memoryMB: 32 }],
  [['terminate-task', app, '1'], { id: 1, state: 'CANCELING' }],
  [['stop', app], { name: app, changed: true }],
  [['start', app], { name: app, state: 'started' }],
  [['delete', app, '-r', '-f'], { name: app, deleted: true, routes: ['json-app.apps.localhost'] }],
  [['delete', app, '-r', '-f'], { name: app, deleted: false }],
];
const tenancy: [args: string[], has: unknown][] = [
  [['create-org', org], { name: org, created: true }],
  [['create-space', 'json-space', '-o', org], { name: 'json-space', created: true, org: { name: org } }],
  [['create-space', 'json-space', '-o', org], { created: false }],
];

/** A part of a result: some entries of a list, some keys of an object. */
function having(wanted: unknown): unknown {
  if (Array.isArray(wanted)) return expect.arrayContaining(wanted.map(having)) as unknown;
  if (typeof wanted !== 'object' || wanted === null) return wanted;
  return expect.objectContaining(Object.fromEntries(Object.entries(wanted).map(([key, value]) => [key, having(value)]))) as unknown;
}

/** While the app of {@link everyday} exists. */
async function expectLogLines(): Promise<void> {
  const { stdout } = await kf.ok('logs', app, '--recent', '--json');
  const lines = stdout
    .trimEnd()
    .split('\n')
    .map((line): unknown => JSON.parse(line));
  expect(lines).toEqual(
    expect.arrayContaining([having({ source: 'APP/PROC/WEB/0', stream: 'OUT', text: 'sample 1, instance 0, listening on port 8080' })]),
  );
}

test('every command prints one document: status, result, warnings', async () => {
  for (const [who, commands] of [
    [kf, everyday],
    [admin, tenancy],
  ] as const) {
    for (const [args, has] of commands) {
      const { code, stdout, stderr } = await who.run([...args, '--json']);
      const document = JSON.parse(stdout) as Record<string, unknown>;
      expect([args, code, document]).toEqual([args, 0, { status: 0, result: having(has), warnings: expect.any(Array) as unknown }]);
      expect([args, stderr]).toEqual([args, expect.not.stringContaining('FAILED')]);
      if (args[0] === 'target') await expectLogLines();
    }
  }
});

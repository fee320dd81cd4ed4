// An update that failed, then a stop and a start: the app runs again as it did.

import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { get } from '../support/http.ts';
import { Kf } from '../support/kf.ts';
import { until } from '../support/until.ts';

const source = path.resolve('test/fixtures/apps/node-hello');
let kf: Kf;

beforeAll(async () => {
  kf = await Kf.create();
  await kf.ok('push', 'falls-back', '-p', source, '-m', '64M');
});
afterAll(async () => {
  await kf.run(['delete', 'falls-back', '-f', '-r']);
  await kf.remove();
});

test('start says that the newest version fails, waits for the one that served last, and ends well', async () => {
  const failed = await kf.run(['push', 'falls-back', '-p', source, '-c', 'echo no such thing; exit 7']);
  expect(failed.code).toBe(1);
  await kf.ok('stop', 'falls-back');
  const started = await kf.ok('start', 'falls-back');
  expect(started.stderr).toMatch(/The newest version of app 'falls-back' does not start\. .*exit code 7/);
  expect(started.stderr).toContain("App 'falls-back' runs as the version that served last.");
  expect(started.stdout).toMatch(/^instances: +1\/1$/m);
  await until('an answer', async () => (await get('falls-back.apps.localhost')).body.startsWith('hello from instance'));
});

// Source code: built by a real CNB lifecycle, built once, and a failed build says why.

import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { countRequests } from '../support/audit.ts';
import { get } from '../support/http.ts';
import { Kf } from '../support/kf.ts';

const fixtures = path.resolve('test/fixtures/apps');
let kf: Kf;
let folder: string;

beforeAll(async () => {
  kf = await Kf.create();
  folder = await mkdtemp(path.join(tmpdir(), 'kf-source-'));
});
afterAll(async () => {
  await kf.remove();
  await rm(folder, { recursive: true, force: true });
});

interface PushResult {
  apps: { unchanged: boolean; built: boolean; layerBytesSent: number }[];
}

describe('push of source code', () => {
  test('a folder becomes an app that answers, and its build log is shown', async () => {
    await cp(path.join(fixtures, 'node-hello'), path.join(folder, 'hello'), { recursive: true });
    const push = () => kf.ok('push', 'source-app', '-p', path.join(folder, 'hello'), '-m', '128M');
    const { result: ran, requests } = await countRequests(push);
    expect(requests.api).toBeGreaterThan(5);
    expect(requests.api).toBeLessThanOrEqual(25);
    expect(requests.registry).toBeLessThanOrEqual(13);
    expect(ran.stdout).toContain('Staging app and tracing logs...');
    // The ring's homes cannot be written: that costs the cache and is said, nothing more.
    expect(ran.stderr).toMatch(/The cache folder '\S+' cannot be used/);
    expect((await get('source-app.apps.localhost')).status).toBe(200);
  });

  test('an unchanged folder sends no layer byte and builds nothing', async () => {
    const push = () => kf.json<PushResult>('push', 'source-app', '-p', path.join(folder, 'hello'), '-m', '128M');
    const { result, requests } = await countRequests(push);
    expect(result.apps[0]).toMatchObject({ unchanged: true, built: false, layerBytesSent: 0 });
    expect([requests.api <= 12, requests.registry]).toEqual([true, 0]);
  });

  test('one more file is a new build', async () => {
    await writeFile(path.join(folder, 'hello', 'changed.txt'), 'changed');
    const pushed = await kf.json<PushResult>('push', 'source-app', '-p', path.join(folder, 'hello'), '-m', '128M');
    expect(pushed.apps[0]).toMatchObject({ unchanged: false, built: true });
    expect((await get('source-app.apps.localhost')).status).toBe(200);
  });

  test('a build that fails shows its own last lines and leaves the old version serving', async () => {
    const ran = await kf.run(['push', 'source-app', '-p', path.join(fixtures, 'broken-build')]);
    expect(ran.code).toBe(1);
    expect(ran.stderr).toContain('Error staging application');
    expect((await get('source-app.apps.localhost')).status).toBe(200);
  });

  test('no buildpack that matches: what was looked for', async () => {
    const ran = await kf.run(['push', 'no-match', '-p', path.join(fixtures, 'no-match'), '--json']);
    const { error } = JSON.parse(ran.stdout) as { error: { code: string; message: string; details: { reason: string } } };
    expect(ran.code).toBe(1);
    expect(error.code).toBe('build');
    expect(error.details.reason).toBe('NoBuildpackMatched');
  });

  test('the logs of the app and of its build are there afterwards', async () => {
    const { stdout } = await kf.ok('logs', 'source-app', '--recent');
    expect(stdout).toMatch(/\[APP\/PROC\/WEB\/0\] OUT /);
  });
});

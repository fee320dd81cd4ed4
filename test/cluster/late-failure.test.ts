// A version serves, and crashes before the version before it has ended: that one takes the requests again.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { get } from '../support/http.ts';
import { Kf, kubectlJson, ringEnv } from '../support/kf.ts';
import { until } from '../support/until.ts';
import { why } from '../support/why.ts';

const app = 'late-failure';
const host = `${app}.apps.localhost`;
const image = `${ringEnv('KF_CLUSTER_NODE_REGISTRY')}/kf/sample:1`;
/** It answers, and ends when somebody asks for `/die`. */
const mortal = 'require("http").createServer((q, r) => (q.url === "/die" ? process.exit(9) : r.end("mortal"))).listen(process.env.PORT)';

const space = ringEnv('KF_TEST_SPACE_GUID');
let guid: string;
let kf: Kf;
beforeAll(async () => {
  kf = await Kf.create();
  await kf.ok('push', app, '-o', image, '-m', '64M');
  guid = (await kf.ok('app', app, '--guid')).stdout.trim();
});
afterAll(async () => {
  await kf.run(['delete', app, '-r', '-f']);
  await kf.remove();
});

/** What the controller says of the app's last change. */
async function changeOf(): Promise<{ id?: string; phase?: string }> {
  const { status } = await kubectlJson<{ status?: { deployment?: { id: string; phase: string } } }>('get', 'cfapp', guid, '-n', space);
  return status?.deployment ?? {};
}

test('a version that crashes some seconds after its push is followed by the version before, and every screen says so', async () => {
  const served = await changeOf();
  const pushing = kf.run(['push', app, '-o', image, '-m', '64M', '-c', `exec node -e '${mortal}'`]);
  await until('the new version to serve', async () => {
    const { id, phase } = await changeOf();
    return id !== served.id && phase === 'Serving';
  });
  // Whichever version has the requests gets this one: only the new one dies of it.
  await until('the verdict', async () => {
    await get(host, '/die').catch(() => undefined);
    return (await why(kf, app)).state === 'failed';
  });
  expect((await pushing).code).toBe(0);
  expect(await why(kf, app)).toMatchObject({ state: 'failed', cause: 'exit-code', exitCode: 9, version: 2 });
  expect((await get(host)).body).toContain('kf sample 1');
  const { stdout } = await kf.ok('app', app);
  expect(stdout).toMatch(/last deployment: +failed/);
  expect((await kf.ok('revisions', app)).stdout).toMatch(/^1\(deployed\) /m);
});

// A failed update: its cause is reported completely and stays readable, and the version that served before comes back after a stop and a start.

import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { get } from '../support/http.ts';
import { Kf, ringEnv, type Ran } from '../support/kf.ts';
import { until } from '../support/until.ts';
import { why } from '../support/why.ts';

const sample = (version: number): string => `${ringEnv('KF_CLUSTER_NODE_REGISTRY')}/kf/sample:${version}`;
const names = {
  update: 'failed-update',
  example: 'hello',
  local: 'on-localhost',
  health: 'bad-health',
  memory: 'too-big',
  coded: 'with-a-code',
};
let kf: Kf;

beforeAll(async () => {
  kf = await Kf.create();
  await kf.ok('push', names.update, '-o', sample(1), '-m', '64M');
});
afterAll(async () => {
  for (const name of Object.values(names)) await kf.run(['delete', name, '-r', '-f']);
  await kf.remove();
});

const push = (name: string, ...more: string[]): Promise<Ran> => kf.run(['push', name, '-o', sample(2), '-m', '64M', ...more]);

describe('a version that prints its cause, then a long stack, and ends', () => {
  const command = 'echo ROOT CAUSE; i=1; while [ $i -le 60 ]; do echo "at frame $i"; i=$((i+1)); done; exit 3';

  test('is reported with its first and last lines, and the number of lines between', async () => {
    const { code, stderr } = await push(names.update, '-c', command);
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /ROOT CAUSE\n {3}at frame 1\n.*at frame 9\n {3}\.\.\. 21 lines left out \.\.\.\n {3}at frame 31\n.*at frame 60\n/s,
    );
    expect((await get(`${names.update}.apps.localhost`)).body).toContain('kf sample 1');
    expect(await why(kf, names.update)).toMatchObject({
      state: 'failed',
      cause: 'exit-code',
      exitCode: 3,
      message: 'The app ended with exit code 3.',
    });
  });

  test('keeps its lines readable once, with a mark, when its instances are gone', async () => {
    const stdout = await until('its instances to be gone', async () => {
      const shown = (await kf.ok('logs', names.update, '--recent')).stdout;
      return shown.includes('The version that failed') ? shown : undefined;
    });
    expect(stdout).toMatch(/\[KF\/0\] ERR The version that failed \(Crashed\) is gone; it said:\n.*\[APP\/PROC\/WEB\/0\] OUT ROOT CAUSE\n/);
    expect(stdout.match(/ROOT CAUSE/g), stdout).toHaveLength(1);
    expect(stdout).toContain('... 21 lines left out ...');
  });

  test('is replaced by the previous version after a stop and a start, and start says so', async () => {
    await kf.ok('stop', names.update);
    const started = await kf.run(['start', names.update]);
    expect([started.code, started.stderr]).toEqual([
      0,
      expect.stringContaining(`App '${names.update}' runs as the version that served last.`),
    ]);
    await until('the version before', async () => (await get(`${names.update}.apps.localhost`)).body.includes('kf sample 1'));
  });
});

test('of the examples, hello answers, and the failure of broken is reported with its line while hello serves', async () => {
  const { example } = names;
  await kf.ok('push', example, '-p', path.resolve('examples/hello'), '-m', '64M');
  const { code, stderr } = await kf.run(['push', example, '-p', path.resolve('examples/broken')]);
  expect(code).toBe(1);
  expect(stderr).toMatch(
    /^Start unsuccessful: The app ended with exit code 1\.\n {3}\/workspace\/server\.js:5\n {3}const server = http\.creatServer/m,
  );
  expect((await get(`${example}.apps.localhost`)).body).toBe('hello from instance 0\n');
});

describe('the message of an app that does not start', () => {
  test('on 127.0.0.1 says where to listen', async () => {
    const server = 'require("http").createServer((_, r) => r.end("x")).listen(process.env.PORT, "127.0.0.1")';
    const { code, stderr } = await push(names.local, '-t', '5', '-c', `exec node -e '${server}'`);
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /did not answer on port 8080 within 5 s\. Nothing answers .*must listen on 0\.0\.0\.0 at the port in \$PORT, not on 127\.0\.0\.1/,
    );
    expect((await why(kf, names.local)).cause).toBe('not-listening');
  });

  test('whose health check gets 404 names the 404, and no ports', async () => {
    const { code, stderr } = await push(names.health, '-t', '5', '-u', 'http', '--endpoint', '/nowhere');
    expect(code).toBe(1);
    expect(stderr).toMatch(/GET \/nowhere is answered with 404; .*health-check-http-endpoint/);
    expect(stderr).not.toContain('0.0.0.0');
    expect((await why(kf, names.health)).cause).toBe('health-http');
  });

  test('that needs more memory names the limit and the flag', async () => {
    const greedy = 'const a = []; for (;;) a.push(Buffer.alloc(8e6, 1));';
    // Checked by its port, which it never opens: with only its process checked, one that a busy node runs slowly would count as started.
    const { code, stderr } = await push(names.memory, '-c', `exec node -e '${greedy}'`, '--no-route');
    expect(code).toBe(1);
    expect(stderr).toMatch(/used more memory than its limit of 64M and was ended; -m gives it more/);
    expect((await why(kf, names.memory)).cause).toBe('oom');
  });

  test.each([
    ['command-not-found', ['-c', 'no-such-command', '--no-route', '-u', 'process']],
    ['image-not-found', ['-o', `${ringEnv('KF_CLUSTER_NODE_REGISTRY')}/kf/no-such-image:1`]],
  ])('has the code %s', async (cause, more) => {
    expect((await push(names.coded, ...more)).code).toBe(1);
    expect((await why(kf, names.coded)).cause).toBe(cause);
  });
});

// The output for a user: a push on a terminal, compared with the same push without one; and kf ssh to the pushed app.

import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Kf } from '../support/kf.ts';

let kf: Kf;
let folder: string;

beforeAll(async () => {
  kf = await Kf.create();
  folder = await mkdtemp(path.join(tmpdir(), 'kf-terminal-'));
  await cp(path.resolve('test/fixtures/apps/node-hello'), folder, { recursive: true });
  await writeFile(path.join(folder, 'data'), randomBytes(24 * 1024 * 1024));
});
afterAll(async () => {
  await kf.run(['delete', 'seen', '-f', '-r']);
  await kf.remove();
  await rm(folder, { recursive: true, force: true });
});

describe('a push on a terminal', () => {
  test('shows each step with its seconds and the uploaded bytes in place, and the build log above', async () => {
    const { code, screen } = await kf.onTerminal(['push', 'seen', '-p', folder, '-m', '64M'], 100);
    expect([code, code === 0 ? '' : screen]).toEqual([0, '']);
    // Hidden cursor, and lines that are drawn again.
    expect(screen).toContain('\u001B[?25l');
    expect(screen).toMatch(/\u001B\[2K|\u001B\[1G/);
    expect(screen).toMatch(/Uploading (?:\d[\d.]*[KMG]?B?|\d+) of \S+/);
    expect(screen).toMatch(/Staging[^\n]*\(\d+ s\)/);
    expect(screen).toMatch(/ {3}.*kf\/nodejs: web process: node server\.js/);
    expect(screen).toMatch(/\u001B\[\d+m/);
  });

  test('whose size is unknown prints plain lines, and ends', async () => {
    const { code, screen } = await kf.onTerminal(['push', 'seen', '-p', folder, '-m', '66M'], 0);
    expect(code).toBe(0);
    expect(screen).toContain('Waiting: ');
    expect(screen).not.toMatch(/\u001B\[(?:\?25l|\d*G|\dA|2?K)/);
  });

  test('prints plain lines without control characters if there is no terminal', async () => {
    const ran = await kf.ok('push', 'seen', '-p', folder, '-m', '65M');
    const all = ran.stdout + ran.stderr;
    expect(all).not.toMatch(/\u001B/);
    expect(ran.stdout).toContain('Waiting for app seen to start...');
    expect(ran.stderr).toContain('Waiting: ');
  });
});

/** Runs kf while `use` has the port that it forwards. */
async function forwarded<T>(remote: string, use: (port: number) => Promise<T>): Promise<T> {
  const child = kf.start(['ssh', 'seen', '-N', '-L', `127.0.0.1:0:${remote}`]);
  const ended = once(child, 'exit');
  let seen = '';
  const open = new Promise<number>((resolve) => {
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      seen += text;
      const port = /Forwarding 127\.0\.0\.1:(\d+) to/.exec(seen)?.[1];
      if (port !== undefined) resolve(Number(port));
    });
  });
  const failed = ended.then(() => Promise.reject(new Error(seen)));
  try {
    return await Promise.race([open.then(use), failed]);
  } finally {
    child.kill('SIGINT');
    await ended;
  }
}

describe('ssh to a built app', () => {
  test('passes outputs, exit code and a piped input', async () => {
    const command =
      "node -e 'let n = 0; process.stdin.on(`data`, (c) => (n += c.length)).on(`end`, () => console.log(n))'; echo err >&2; exit 7";
    const ran = await kf.run(['ssh', 'seen', '-c', command], { stdin: 'x'.repeat(300_000) });
    expect(ran).toMatchObject({ code: 7, stdout: '300000\n', stderr: 'err\n' });
  });

  test('a shell that reads a pipe has the environment of the app', async () => {
    const script = 'echo "$VCAP_APPLICATION"; echo "$MEMORY_LIMIT"; echo "$NODE_ENV"\n';
    const { code, stdout, stderr } = await kf.run(['ssh', 'seen'], { stdin: script });
    const [application = '', memory, mode] = stdout.split('\n');
    expect([code, stderr, memory]).toEqual([0, '', '65m']);
    expect(JSON.parse(application)).toMatchObject({ application_name: 'seen' });
    // Set by the buildpack, and only the launcher reads that.
    expect(mode).toBe('production');
  });

  test('gives a command a terminal of the size of the user’s', async () => {
    const command = "sleep 0.5; node -e 'const { columns, rows } = process.stdout; console.log([columns, rows, process.env.TERM].join())'";
    const sized = await kf.onTerminal(['ssh', 'seen', '-t', '-c', command], 101);
    expect(sized.code).toBe(0);
    expect(sized.screen).toContain('101,40,xterm-256color\r\n');
  });

  test('forwards a port to the app, and to a host that only the app can reach', async () => {
    const host = (await kf.ok('ssh', 'seen', '-c', 'hostname')).stdout.trim();
    for (const remote of ['localhost:8080', `${host}:8080`]) {
      const body = await forwarded(remote, async (port) => (await fetch(`http://127.0.0.1:${port}/`)).text());
      expect(body).toBe('hello from instance 0\n');
    }
  });
});

// The output for a user: a push on a terminal, compared with the same push without one.

import { randomBytes } from 'node:crypto';
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

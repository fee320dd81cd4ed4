import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';

const folder = mkdtempSync(path.join(tmpdir(), 'kf-lock-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const check = (...args: string[]) => spawnSync(process.execPath, ['tools/lock.ts', ...args], { encoding: 'utf8' });

test('npm run check checks the lockfile', () => {
  const checked = spawnSync(process.execPath, ['tools/check.ts', 'lock'], { encoding: 'utf8' });
  expect([checked.status, checked.stdout]).toEqual([0, expect.stringMatching(/^ok +lock /)]);
});

test('the lockfile contains no address of a registry, and npm is configured to keep it so', () => {
  expect(check()).toMatchObject({ status: 0, stderr: '' });
  expect(readFileSync('.npmrc', 'utf8')).toMatch(/^omit-lockfile-registry-resolved=true$/m);
});

test.each(['http', 'https'])('a lockfile with an address of %s is refused, and the line is named', (scheme) => {
  const file = path.join(folder, `${scheme}.json`);
  const entry = { version: '1.0.0', resolved: `${scheme}://registry.example.com/a/-/a-1.0.0.tgz`, integrity: 'sha512-x' };
  writeFileSync(file, JSON.stringify({ lockfileVersion: 3, packages: { 'node_modules/a': entry } }, undefined, 2));
  const { status, stderr } = check(file);
  expect(status).toBe(1);
  expect(stderr).toContain(`${file}:6: "resolved": "${entry.resolved}",`);
});

test('packages in a folder or a repository may have an address', () => {
  const file = path.join(folder, 'local.json');
  writeFileSync(file, JSON.stringify({ packages: { 'node_modules/a': { resolved: 'packages/a', link: true } } }, undefined, 2));
  expect(check(file).status).toBe(0);
});

import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openInBrowser } from '../../../src/lib/output/browser.ts';

let folder: string;

beforeEach(() => (folder = mkdtempSync(path.join(tmpdir(), 'kf-browser-'))));
afterEach(() => rmSync(folder, { recursive: true }));

test('the program of BROWSER gets the URL as its only argument', async () => {
  const [program, seen] = [path.join(folder, 'browser'), path.join(folder, 'seen')];
  writeFileSync(program, `#!/bin/sh\nprintf '%s|' "$#" "$@" > "${seen}.new" && mv "${seen}.new" "${seen}"\n`);
  chmodSync(program, 0o755);
  expect(await openInBrowser('http://shop.example.com/a b', { BROWSER: program })).toBe(true);
  await expect.poll(() => existsSync(seen), { timeout: 10_000 }).toBe(true);
  expect(readFileSync(seen, 'utf8')).toBe('1|http://shop.example.com/a b|');
});

test('without such a program nothing is opened, and nothing fails', async () => {
  expect(await openInBrowser('http://shop.example.com', { BROWSER: path.join(folder, 'nothing') })).toBe(false);
});

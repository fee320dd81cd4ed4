// What setup finds on a bare control plane: no storage, no Gateway API, no kf.

import { expect, test } from 'vitest';
import { kf } from './kf.ts';

test('setup without a StorageClass says that the registry needs a volume, and how else', async () => {
  const ran = await kf('setup', '--dry-run');
  expect(ran.code).toBe(1);
  expect(ran.stdout).toMatch(/FAILED\n$/);
  expect(ran.stderr).toContain('no default StorageClass');
  expect(ran.stderr).toContain('kf setup --registry HOST/PREFIX');
});

test('setup brings the Gateway API where there is none', async () => {
  const ran = await kf('setup', '--dry-run', '--storage-class', 'any');
  expect(ran.stderr).not.toContain('FAILED');
  expect(ran.code).toBe(0);
  expect(ran.stdout).toContain('name: httproutes.gateway.networking.k8s.io');
  expect(ran.stdout).toContain('name: cfapps.korifi.cloudfoundry.org');
});

test('images of a mirror are taken by prefix', async () => {
  const ran = await kf('setup', '--dry-run', '--storage-class', 'any', '--image-prefix', 'mirror.example.com/all');
  expect(ran.stdout).toMatch(/image: mirror\.example\.com\/all\/library\/node:24/);
  expect(ran.stdout).not.toContain('image: docker.io/');
});

test('a command on a cluster without kf names the command that installs it', async () => {
  const ran = await kf('target', '-o', 'none');
  expect(ran.code).toBe(1);
  expect(ran.stderr).toContain('kf setup');
});

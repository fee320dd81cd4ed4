import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { contextFor } from '../../../src/lib/ops/tenancy/login.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'kf-context-'));
const file = path.join(folder, 'config');
const server = (name: string, url: string) => ({ name, cluster: { server: url } });
writeFileSync(
  file,
  JSON.stringify({
    clusters: [
      server('plain', 'http://k8s.example.com'),
      server('port', 'https://k8s.example.com:6443/'),
      server('path', 'https://proxy/c1'),
    ],
    contexts: ['plain', 'port', 'path'].map((name) => ({ name: `at-${name}`, context: { cluster: name, user: 'alice' } })),
    users: [{ name: 'alice', user: {} }],
  }),
);
afterAll(() => rmSync(folder, { recursive: true }));

it.each([
  ['at-path', 'at-path'],
  ['https://k8s.example.com:6443', 'at-port'],
  ['k8s.example.com:6443/', 'at-port'],
  ['K8S.example.com', 'at-port'],
  ['http://k8s.example.com/', 'at-plain'],
  ['proxy/c1', 'at-path'],
])('%s is the cluster of the context %s', async (given, context) => {
  expect(await contextFor({ KUBECONFIG: file }, given)).toBe(context);
});

it.each(['example.com', 'https://k8s.example.com', 'k8s.example.com:443', 'proxy/c2'])('%s is none', async (given) => {
  await expect(contextFor({ KUBECONFIG: file }, given)).rejects.toThrow(`neither a context nor a cluster '${given}'`);
});

// Setup on a cluster without a kind that some clusters do not have: the real API server, behind a proxy that does not know the kind.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { Agent, request } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { kf, kfWith } from './kf.ts';
import { kubectlJson, makeStorageClass } from './kubectl.ts';

interface Config {
  clusters: { cluster: Record<string, string> }[];
  users: { user: Record<string, string> }[];
}

const lacking = 'mutatingadmissionpolic';
const folder = mkdtempSync(path.join(tmpdir(), 'kf-served-'));
const kubeconfig = path.join(folder, 'kubeconfig');
const asked: string[] = [];
let agent: Agent;
let upstream: string;

const proxy = createServer((incoming, answer) => {
  const { url = '/', method, headers } = incoming;
  asked.push(url);
  if (url.includes(lacking)) {
    answer.writeHead(404, { 'Content-Type': 'text/plain' }).end('404 page not found\n');
    return;
  }
  const onward = request(new URL(url, upstream), { agent, method, headers: { ...headers, 'accept-encoding': 'identity' } }, (reply) => {
    const chunks: Buffer[] = [];
    reply.on('data', (chunk: Buffer) => chunks.push(chunk));
    reply.on('end', () => {
      const body = Buffer.concat(chunks);
      const isList = url === '/apis/admissionregistration.k8s.io/v1';
      answer.writeHead(reply.statusCode ?? 502, { 'Content-Type': reply.headers['content-type'] ?? 'application/json' });
      answer.end(isList ? without(body.toString()) : body);
    });
  });
  incoming.pipe(onward);
});

function without(list: string): string {
  const all = JSON.parse(list) as { resources: { name: string }[] };
  return JSON.stringify({ ...all, resources: all.resources.filter(({ name }) => !name.startsWith(lacking)) });
}

beforeAll(async () => {
  await makeStorageClass('any');
  const config = await kubectlJson<Config>(['config', 'view', '--raw', '--flatten']);
  const [{ cluster } = { cluster: {} }, { user } = { user: {} }] = [config.clusters[0], config.users[0]];
  const decode = (data: string | undefined): Buffer => Buffer.from(data ?? '', 'base64');
  agent = new Agent({
    ca: decode(cluster['certificate-authority-data']),
    cert: decode(user['client-certificate-data']),
    key: decode(user['client-key-data']),
    keepAlive: true,
  });
  upstream = cluster['server'] ?? '';
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  const server = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  writeFileSync(kubeconfig, JSON.stringify({ ...config, clusters: config.clusters.map((one) => ({ ...one, cluster: { server } })) }));
});

afterAll(() => {
  proxy.close();
  agent.destroy();
  rmSync(folder, { recursive: true });
});

const dryRun = ['setup', '--dry-run', '--storage-class', 'any'];
const kindsIn = (printed: string): string[] => [...printed.matchAll(/^kind: (\w+)$/gm)].map(([, kind = '']) => kind);

test('policies that set labels are among the objects if the cluster serves their kind', async () => {
  const ran = await kf(...dryRun);
  expect(ran.code, ran.stderr).toBe(0);
  const policies = kindsIn(ran.stdout).filter((kind) => kind.startsWith('Mutating'));
  expect(policies.toSorted()).toEqual([
    ...['MutatingAdmissionPolicy', 'MutatingAdmissionPolicy', 'MutatingAdmissionPolicy'],
    ...['MutatingAdmissionPolicyBinding', 'MutatingAdmissionPolicyBinding', 'MutatingAdmissionPolicyBinding'],
  ]);
});

test('they are left out if it does not, and nothing else is', async () => {
  const [there, here] = [await kf(...dryRun), await kfWith(kubeconfig, dryRun)];
  expect(here.code, here.stderr).toBe(0);
  expect(kindsIn(here.stdout)).toEqual(kindsIn(there.stdout).filter((kind) => !kind.startsWith('Mutating')));
  expect(asked).toContain('/apis/admissionregistration.k8s.io/v1');
  expect(asked.filter((url) => url.includes(lacking))).toEqual([]);
});

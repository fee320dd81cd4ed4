// Some 300 commands of everyday use on a real cluster, with exactly what they print: test/fixtures/session/transcript.txt. `npm run session` compares
// it, and with --update writes the file as the cluster answers now.

import { cp, readFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { addGreeting } from '../support/greeting-wheel.ts';
import { Kf, ringEnv } from '../support/kf.ts';
import { Pipeline } from '../support/pipelines.ts';
import { replay, ResultSchemas } from '../support/transcript.ts';

const file = path.resolve('test/fixtures/session/transcript.txt');
const address = ringEnv('KF_CLUSTER_NODE_REGISTRY');
const schemas = new ResultSchemas();
const users: Record<string, Pipeline> = {};
const names: Record<string, string> = {};

interface KubeConfig {
  'current-context': string;
  users: { name: string }[];
  clusters: { cluster: { server: string } }[];
}

async function configOf(kubeconfig: string): Promise<{ user: string; server: string; context: string }> {
  const config = parse(await readFile(kubeconfig, 'utf8')) as KubeConfig;
  return { user: config.users[0]?.name ?? '', server: config.clusters[0]?.cluster.server ?? '', context: config['current-context'] };
}

/** A user with folders of source. */
async function addUser(name: string, kubeconfig: string, variables: Record<string, string>): Promise<void> {
  const pipeline = await Pipeline.create({ KUBECONFIG: kubeconfig, IMAGE: `${address}/kf/sample:1`, ...variables });
  for (const [folder, app] of [
    ['node', 'node-hello'],
    ['worker', 'procfile-worker'],
    ['site', 'static-site'],
    ['shell', 'binary-app'],
    ['py', 'python-hello'],
    ['gopher', 'go-hello'],
  ] as const)
    await cp(path.resolve('test/fixtures/apps', app), path.join(pipeline.folder, folder), { recursive: true });
  await addGreeting(path.join(pipeline.folder, 'py'));
  users[name] = pipeline;
}

beforeAll(async () => {
  const kubeconfigs = { developer: ringEnv('KF_TEST_DEVELOPER'), admin: ringEnv('KF_TEST_KUBECONFIG') };
  const [developer, admin] = await Promise.all([configOf(kubeconfigs.developer), configOf(kubeconfigs.admin)]);
  const variables = { DEVELOPER: `system:serviceaccount:kf-test-users:${developer.user}` };
  await addUser('developer', kubeconfigs.developer, { ...variables, CF_USERNAME: developer.user });
  await addUser('admin', kubeconfigs.admin, variables);
  Object.assign(names, { [developer.user]: 'DEVELOPER', [admin.user]: 'ADMIN', [admin.server]: 'https://API', [address]: 'REGISTRY' });
  names[admin.context] = 'CONTEXT';
});

afterAll(async () => {
  const admin = await Kf.create('admin');
  for (const org of ['acme', 'globex', 'initech']) await admin.run(['delete-org', org, '-f']);
  for (const domain of ['acme.localhost', 'other.localhost']) await admin.run(['delete-shared-domain', domain, '-f']);
  await Promise.all([admin.remove(), ...Object.values(users).map((user) => user.remove())]);
});

test('a session prints what it printed when it was written down', async () => {
  const transcript = await readFile(file, 'utf8');
  await expect(await replay(transcript, { users, names, schemas })).toMatchFileSnapshot(file);
}, 1_800_000);

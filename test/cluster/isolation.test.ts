// What code of one space can reach of another: nothing. Images behind every door of the registry, credentials in builds and apps.

import { execFile } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { get } from '../support/http.ts';
import { Kf, kubectl, kubectlJson, ringEnv } from '../support/kf.ts';
import { until } from '../support/until.ts';

const execute = promisify(execFile);
const script = path.resolve('test/fixtures/attempts/registry.cjs');
const manifestType = 'application/vnd.oci.image.manifest.v1+json';
const own = ringEnv('KF_TEST_SPACE_GUID');
const names = { space: `isolated-${randomUUID().slice(0, 6)}`, app: 'isolated-app', search: 'credential-search', pod: 'attempts' };
let admin: Kf;
let kf: Kf;
let foreign: { org: string; space: string; packages: string; digest: string; layer: string };

interface Named {
  metadata: { name: string; namespace: string };
}

const basic = (user: string, password: string): string => `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;

async function secretData(space: string, name: string): Promise<Record<string, string>> {
  const { data } = await kubectlJson<{ data: Record<string, string> }>('get', 'secret', name, '-n', space);
  return Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value, 'base64').toString()]));
}

/** The Authorization values that a space holds: to push, and to pull. */
async function credentialsOf(space: string): Promise<{ push: string; pull: string }> {
  const { username = '', password = '' } = await secretData(space, 'kf-registry-push');
  const config = JSON.parse((await secretData(space, 'image-registry-credentials'))['.dockerconfigjson'] ?? '{}') as {
    auths: Record<string, { auth?: string; username?: string; password?: string }>;
  };
  const [pull = {}] = Object.values(config.auths);
  return {
    push: basic(username, password),
    pull: pull.auth === undefined ? basic(pull.username ?? '', pull.password ?? '') : `Basic ${pull.auth}`,
  };
}

beforeAll(async () => {
  [admin, kf] = [await Kf.create('admin'), await Kf.create()];
  await admin.ok('create-space', names.space);
  const elsewhere = await Kf.create('admin', { KF_SPACE: names.space });
  const folder = path.resolve('test/fixtures/apps/node-hello');
  const pushed = await elsewhere.json<{ apps: { guid: string }[] }>('push', names.app, '-p', folder, '-m', '128M', '--no-route');
  await elsewhere.remove();
  const spaces = await kubectlJson<{ items: (Named & { spec: { displayName: string } })[] }>('get', 'cfspaces', '-A');
  const { name: space = '', namespace: org = '' } = spaces.items.find(({ spec }) => spec.displayName === names.space)?.metadata ?? {};
  const packages = await kubectlJson<{ items: { spec: { source: { registry: { image: string } } } }[] }>('get', 'cfpackages', '-n', space);
  const digest = packages.items[0]?.spec.source.registry.image.split('@')[1] ?? '';
  foreign = { org, space, packages: `${space}/${pushed.apps[0]?.guid ?? ''}-packages`, digest, layer: '' };
});

afterAll(async () => {
  await kubectl('delete', 'pod', names.pod, '-n', own, '--ignore-not-found', '--wait=false');
  await kf.run(['delete', names.search, '-r', '-f']);
  await kubectl('delete', 'cfspace', foreign.space, '-n', foreign.org, '--wait=false');
  await Promise.all([kf.remove(), admin.remove()]);
});

interface Attempt {
  url: string;
  method: string;
  headers: Record<string, string>;
  body?: string;
}

interface Answer {
  status: number;
  location?: string;
  body: string;
}

/** Everything that would touch the foreign image: reading, overwriting, deleting, borrowing its layer for the own space. */
function attemptsOn(base: string, header: string, credential: string): Attempt[] {
  const { packages, digest, layer } = foreign;
  const manifest = '{"schemaVersion":2}';
  const headers = { [header]: credential, accept: manifestType };
  const at = (method: string, urlPath: string, body?: string): Attempt => ({
    url: `${base}/v2/${urlPath}`,
    method,
    headers,
    ...(body === undefined ? {} : { body }),
  });
  return [
    at('GET', `${packages}/manifests/${digest}`),
    at('HEAD', `${packages}/manifests/${digest}`),
    at('GET', `${packages}/blobs/${layer}`),
    at('GET', `${packages}/tags/list`),
    at('GET', '_catalog'),
    at('PUT', `${packages}/manifests/taken-over`, manifest),
    at('POST', `${packages}/blobs/uploads/`),
    at('DELETE', `${packages}/manifests/${digest}`),
    at('DELETE', `${packages}/blobs/${layer}`),
    at('GET', `${own}/../${packages}/manifests/${digest}`),
    at('GET', `${own}%2f..%2f${packages}/manifests/${digest}`),
  ];
}

async function runHere(attempts: Attempt[]): Promise<Answer[]> {
  const { stdout } = await execute(process.execPath, [script], { env: { ATTEMPTS: JSON.stringify(attempts) } });
  return JSON.parse(stdout.replace('ANSWERS ', '')) as Answer[];
}

async function runInPod(attempts: Attempt[]): Promise<Answer[]> {
  const settings = await readFile(ringEnv('KF_TEST_SETUP_FILE'), 'utf8');
  const security = {
    allowPrivilegeEscalation: false,
    runAsNonRoot: true,
    runAsUser: 1000,
    capabilities: { drop: ['ALL'] },
    seccompProfile: { type: 'RuntimeDefault' },
  };
  const container = {
    name: names.pod,
    image: /node: (\S+)/.exec(settings)?.[1],
    command: ['node', '-e', await readFile(script, 'utf8')],
    env: [{ name: 'ATTEMPTS', value: JSON.stringify(attempts) }],
    securityContext: security,
  };
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: names.pod, namespace: own },
    spec: { restartPolicy: 'Never', containers: [container] },
  };
  const child = execute('kubectl', ['apply', '-f', '-'], { env: { ...process.env, KUBECONFIG: ringEnv('KF_TEST_KUBECONFIG') } });
  child.child.stdin?.end(JSON.stringify(pod));
  await child;
  const text = await until('the pod to end', async () => /ANSWERS (.*)\n/.exec(await kubectl('logs', names.pod, '-n', own))?.[1], 60_000);
  await kubectl('delete', 'pod', names.pod, '-n', own, '--grace-period=0', '--force');
  return JSON.parse(text) as Answer[];
}

/** kubectl's own way through the API server, for as long as `use` takes. */
async function throughApiServer<T>(use: (base: string) => Promise<T>): Promise<T> {
  const proxy = execFile('kubectl', ['proxy', '--port=0', '--reject-methods=^$', '--disable-filter=true'], {
    env: { ...process.env, KUBECONFIG: ringEnv('KF_TEST_KUBECONFIG') },
  });
  try {
    const port = await new Promise<string>((resolve) =>
      proxy.stdout?.on('data', (text: string) => resolve(/:(\d+)/.exec(text)?.[1] ?? '')),
    );
    return await use(`http://127.0.0.1:${port}/api/v1/namespaces/kf-system/services/http:kf-registry:5000/proxy`);
  } finally {
    proxy.kill();
  }
}

const pullDoor = `http://${ringEnv('KF_CLUSTER_ADDRESS')}:32500`;
const service = 'http://kf-registry.kf-system.svc:5000';
const refused = [400, 401, 403, 404, 405];

function expectRefused(attempts: Attempt[], answers: Answer[]): void {
  const wrong = attempts.flatMap(({ method, url }, index) =>
    refused.includes(answers[index]?.status ?? 0) ? [] : [`${method} ${url}: ${JSON.stringify(answers[index])}`],
  );
  expect(wrong).toEqual([]);
}

describe('images of another space', () => {
  test('its own credentials open them: the attempts below fail for the credential alone', async () => {
    const { push, pull } = await credentialsOf(foreign.space);
    const manifest = `${foreign.packages}/manifests/${foreign.digest}`;
    const [atPull] = await runHere([
      { url: `${pullDoor}/v2/${manifest}`, method: 'GET', headers: { authorization: pull, accept: manifestType } },
    ]);
    expect(atPull?.status, atPull?.body).toBe(200);
    const answers = await runInPod([
      { url: `${service}/v2/${manifest}`, method: 'GET', headers: { authorization: push, accept: manifestType } },
    ]);
    expect(answers[0]?.status, answers[0]?.body).toBe(200);
    const [atProxy] = await throughApiServer((base) =>
      runHere([{ url: `${base}/v2/${manifest}`, method: 'GET', headers: { 'x-kf-authorization': push, accept: manifestType } }]),
    );
    expect(atProxy?.status, atProxy?.body).toBe(200);
    const layer = /"layers":\[\{[^\]]*?"digest":"([^"]+)"/.exec(await fullManifest(pull, manifest))?.[1];
    foreign.layer = layer ?? '';
    expect(foreign.layer).toMatch(/^sha256:/);
  });

  async function fullManifest(pull: string, manifest: string): Promise<string> {
    return (await fetch(`${pullDoor}/v2/${manifest}`, { headers: { authorization: pull, accept: manifestType } })).text();
  }

  test.each(['push', 'pull', 'none', 'guessed'] as const)(
    'the %s credential of this space reads, overwrites and deletes nothing at any door',
    async (which) => {
      const credentials = await credentialsOf(own);
      const password = createHash('sha256').update('guess').digest('base64url');
      const credential = { ...credentials, none: '', guessed: basic(`push.${foreign.space}`, password) }[which];
      const viaProxy = await throughApiServer(async (base) => {
        const attempts = attemptsOn(base, 'x-kf-authorization', credential);
        return { attempts, answers: await runHere(attempts) };
      });
      expectRefused(viaProxy.attempts, viaProxy.answers);
      const atPull = attemptsOn(pullDoor, 'authorization', credential);
      expectRefused(atPull, await runHere(atPull));
      const inPod = attemptsOn(service, 'authorization', credential);
      expectRefused(inPod, await runInPod(inPod));
    },
  );

  test('a layer of theirs cannot be borrowed by a mount into the own space', async () => {
    const { push } = await credentialsOf(own);
    const [answer] = await throughApiServer((base) =>
      runHere([
        {
          url: `${base}/v2/${own}/mount-packages/blobs/uploads/?mount=${encodeURIComponent(foreign.layer)}&from=${encodeURIComponent(foreign.packages)}`,
          method: 'POST',
          headers: { 'x-kf-authorization': push, 'content-length': '0' },
        },
      ]),
    );
    expect(answer?.status).toBe(202);
  });

  test('a developer of this space cannot read the credential of the other, nor the key behind them', async () => {
    const env = { ...process.env, KUBECONFIG: ringEnv('KF_TEST_DEVELOPER') };
    for (const [secret, space] of [
      ['kf-registry-push', foreign.space],
      ['image-registry-credentials', foreign.space],
      ['kf-registry-key', 'kf-system'],
    ] as const) {
      await expect(execute('kubectl', ['get', 'secret', secret, '-n', space], { env })).rejects.toThrow(/forbidden/i);
    }
  });

  test('the image is as it was', async () => {
    const { pull } = await credentialsOf(foreign.space);
    const [answer, taken] = await runHere([
      {
        url: `${pullDoor}/v2/${foreign.packages}/manifests/${foreign.digest}`,
        method: 'GET',
        headers: { authorization: pull, accept: manifestType },
      },
      {
        url: `${pullDoor}/v2/${foreign.packages}/manifests/taken-over`,
        method: 'GET',
        headers: { authorization: pull, accept: manifestType },
      },
    ]);
    expect([answer?.status, taken?.status]).toEqual([200, 404]);
  });
});

describe('a program that searches for credentials', () => {
  const decoy = /^\/(workspace|layers\/\S+|proc\/\d+\/root\S*)\/\.docker(\/config\.json)?: /;
  const unexpected = (lines: string[]): string[] => lines.filter((line) => !decoy.test(line) && !line.includes('DECOY'));

  test('finds its decoys and nothing else while it is built, and while it runs', async () => {
    const folder = path.resolve('test/fixtures/apps/credential-search');
    const decoyValue = `push.${randomUUID()}`;
    await kf.run(['push', names.search, '-p', folder, '-m', '128M', '--no-start']);
    await kf.ok('set-env', names.search, 'DECOY', decoyValue);
    const ran = await kf.ok('push', names.search, '-p', folder, '-m', '128M');
    expect(ran.stdout).toMatch(/SEARCH ENDED with \d+/);
    const inBuild = [...ran.stdout.matchAll(/SEARCH FOUND (.*)/g)].map(([, line = '']) => line);
    expect(inBuild.filter((line) => decoy.test(line)).length, ran.stdout).toBeGreaterThan(0);
    expect(inBuild.filter((line) => line.includes('DECOY')).length, ran.stdout).toBeGreaterThan(0);
    expect(unexpected(inBuild)).toEqual([]);
    const { body } = await get(`${names.search}.apps.localhost`, '/search');
    const inApp = body.trim().split('\n');
    expect(inApp.filter((line) => decoy.test(line)).length, body).toBeGreaterThan(0);
    expect(inApp.filter((line) => line.includes('DECOY')).length, body).toBeGreaterThan(0);
    expect(unexpected(inApp)).toEqual([]);
  });
});

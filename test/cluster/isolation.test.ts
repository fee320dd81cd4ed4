// Code of one space cannot reach anything of another: images at every endpoint of the registry, credentials in builds and apps.

import { execFile } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { feed } from '../support/feed.ts';
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
let foreign: { org: string; space: string; packages: string; digest: string; tag: string; layer: string; manifest: string };

interface Named {
  metadata: { name: string; namespace: string };
}

const basic = (user: string, password: string): string => `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;

async function secretData(space: string, name: string): Promise<Record<string, string>> {
  const { data } = await kubectlJson<{ data: Record<string, string> }>('get', 'secret', name, '-n', space);
  return Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value, 'base64').toString()]));
}

/** The Authorization values of a space: for push, and for pull. */
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
  const packages = await kubectlJson<{ items: (Named & { spec: { source: { registry: { image: string } } } })[] }>(
    'get',
    'cfpackages',
    '-n',
    space,
  );
  const digest = packages.items[0]?.spec.source.registry.image.split('@')[1] ?? '';
  const repository = `${space}/${pushed.apps[0]?.guid ?? ''}-packages`;
  const { manifest, tags } = await contentOf(repository, digest, (await credentialsOf(space)).pull);
  const { layers = [] } = JSON.parse(manifest) as { layers?: { digest: string }[] };
  foreign = { org, space, packages: repository, digest, tag: tags[0] ?? '', layer: layers[0]?.digest ?? '', manifest };
  expect([foreign.tag, foreign.layer]).toEqual([packages.items[0]?.metadata.name, expect.stringMatching(/^sha256:/)]);
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

/** The content of the repository at the pull port: the text of the manifest, and all tags. */
async function contentOf(repository: string, reference: string, pull: string): Promise<{ manifest: string; tags: string[] }> {
  const ask = async (urlPath: string): Promise<string> => {
    const answer = await fetch(`${pullEndpoint}/v2/${repository}/${urlPath}`, { headers: { authorization: pull, accept: manifestType } });
    expect(answer.status, urlPath).toBe(200);
    return answer.text();
  };
  const { tags } = JSON.parse(await ask('tags/list')) as { tags: string[] };
  return { manifest: await ask(`manifests/${reference}`), tags };
}

/** A manifest that the registry would accept in that repository, and that differs from the existing one. */
const replacement = (): string => JSON.stringify({ ...(JSON.parse(foreign.manifest) as object), annotations: { taken: 'over' } });

interface Endpoint {
  base: string;
  header: string;
}

function requestAt({ base, header }: Endpoint, credential: string, method: string, urlPath: string, body?: string): Attempt {
  const headers = { [header]: credential, accept: manifestType };
  const url = `${base}/v2/${urlPath}`;
  return body === undefined ? { url, method, headers } : { url, method, headers: { ...headers, 'content-type': manifestType }, body };
}

type Refusal = 'DENIED' | 'UNAUTHORIZED' | 'UNSUPPORTED';

/**
 * All requests that would touch the foreign image: reading, overwriting, deleting, by its name and by other forms of it; with the status that the
 * gate returns for a valid credential of another space.
 */
function attemptsOn(endpoint: Endpoint, credential: string): (Attempt & { forOthers: number })[] {
  const { packages, digest, layer, tag } = foreign;
  const at = (forOthers: number, method: string, urlPath: string, body?: string): Attempt & { forOthers: number } => ({
    ...requestAt(endpoint, credential, method, urlPath, body),
    forOthers,
  });
  // The API server decodes the path, so that the gate gets the plain path; kubectl's proxy redirects for `..` by itself.
  const isResolved = endpoint.base.includes('/proxy');
  return [
    at(403, 'GET', `${packages}/manifests/${digest}`),
    at(403, 'HEAD', `${packages}/manifests/${digest}`),
    at(403, 'GET', `${packages}/manifests/${tag}`),
    at(403, 'GET', `${packages}/blobs/${layer}`),
    at(403, 'GET', `${packages}/tags/list`),
    at(403, 'PUT', `${packages}/manifests/taken-over`, replacement()),
    at(403, 'PUT', `${packages}/manifests/${tag}`, replacement()),
    at(403, 'PUT', `${packages}/manifests/${digest}`, foreign.manifest),
    at(403, 'POST', `${packages}/blobs/uploads/`),
    at(404, 'GET', '_catalog'),
    at(isResolved ? 403 : 404, 'GET', `${own}%2f..%2f${packages}/manifests/${digest}`),
    ...(isResolved ? [] : [at(404, 'GET', `${own}/../${packages}/manifests/${digest}`)]),
    at(405, 'DELETE', `${packages}/manifests/${digest}`),
    at(405, 'DELETE', `${packages}/manifests/${tag}`),
    at(405, 'DELETE', `${packages}/blobs/${layer}`),
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
    resources: { requests: { cpu: '10m', memory: '64Mi' }, limits: { memory: '128Mi' } },
    securityContext: security,
  };
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    // As a build: NetworkPolicies prevent all other pods of a space from reaching the push port.
    metadata: { name: names.pod, namespace: own, labels: { 'korifi.cloudfoundry.org/build-guid': names.pod } },
    spec: { restartPolicy: 'Never', containers: [container] },
  };
  const child = execute('kubectl', ['apply', '-f', '-'], { env: { ...process.env, KUBECONFIG: ringEnv('KF_TEST_KUBECONFIG') } });
  feed(child.child, JSON.stringify(pod));
  await child;
  const text = await until('the pod to end', async () => /ANSWERS (.*)\n/.exec(await kubectl('logs', names.pod, '-n', own))?.[1]);
  await kubectl('delete', 'pod', names.pod, '-n', own, '--grace-period=0', '--force');
  return JSON.parse(text) as Answer[];
}

/** kubectl's own connection through the API server, while `use` runs. */
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

const pullEndpoint = `http://${ringEnv('KF_CLUSTER_ADDRESS')}:32500`;
const service = 'http://kf-registry.kf-system.svc:5000';

/** Every endpoint of the registry: the pull port from outside, the push port from a pod and through the API server. */
async function atEveryEndpoint(attempts: (endpoint: Endpoint) => Attempt[]): Promise<{ attempt: Attempt; answer: Answer }[]> {
  const pairs = (asked: Attempt[], answers: Answer[]): { attempt: Attempt; answer: Answer }[] =>
    asked.map((attempt, index) => ({ attempt, answer: answers[index] ?? { status: 0, body: 'not asked' } }));
  const atPull = attempts({ base: pullEndpoint, header: 'authorization' });
  const inPod = attempts({ base: service, header: 'authorization' });
  const viaProxy = await throughApiServer(async (base) => {
    const asked = attempts({ base, header: 'x-kf-authorization' });
    return pairs(asked, await runHere(asked));
  });
  return [...pairs(atPull, await runHere(atPull)), ...pairs(inPod, await runInPod(inPod)), ...viaProxy];
}

const codes: Record<number, Refusal> = { 401: 'UNAUTHORIZED', 403: 'DENIED', 404: 'UNSUPPORTED', 405: 'UNSUPPORTED' };

/** The gate's own refusal: that status with the gate's code, which an answer to HEAD does not contain. */
function expectRefused(asked: { attempt: Attempt; answer: Answer }[], statusOf: (attempt: Attempt) => number): void {
  const wrong = asked.flatMap(({ attempt, answer }) => {
    const status = statusOf(attempt);
    const isGate = attempt.method === 'HEAD' || answer.body.startsWith(`{"errors":[{"code":"${codes[status] ?? '?'}",`);
    return answer.status === status && isGate ? [] : [`${attempt.method} ${attempt.url} (${status}): ${JSON.stringify(answer)}`];
  });
  expect(wrong).toEqual([]);
}

describe('images of another space', () => {
  test('can be read with its own credentials, so the attempts below fail only because of the credential', async () => {
    const { push, pull } = await credentialsOf(foreign.space);
    const { packages, digest } = foreign;
    const credentialAt = ({ base }: Endpoint): string => (base === pullEndpoint ? pull : push);
    const asked = await atEveryEndpoint((endpoint) => [
      requestAt(endpoint, credentialAt(endpoint), 'GET', `${packages}/manifests/${digest}`),
      requestAt(endpoint, credentialAt(endpoint), 'PUT', `${packages}/manifests/put-by-its-owner`, replacement()),
      requestAt(endpoint, credentialAt(endpoint), 'POST', `${packages}/blobs/uploads/`),
      requestAt(endpoint, credentialAt(endpoint), 'DELETE', `${packages}/manifests/${digest}`),
    ]);
    // No credential may delete, and the pull port accepts no writes.
    expect(asked.map(({ answer }) => answer.status)).toEqual([200, 403, 403, 405, 200, 201, 202, 405, 200, 201, 202, 405]);
  });

  test.each(['push', 'pull', 'none', 'guessed'] as const)(
    'the %s credential of this space reads, overwrites and deletes nothing at any endpoint',
    async (which) => {
      const credentials = await credentialsOf(own);
      const password = createHash('sha256').update('guess').digest('base64url');
      const credential = { ...credentials, none: '', guessed: basic(`push.${foreign.space}`, password) }[which];
      const isOne = which === 'push' || which === 'pull';
      const asked = await atEveryEndpoint((endpoint) => attemptsOn(endpoint, credential));
      expectRefused(asked, (attempt) => (isOne ? (attempt as Attempt & { forOthers: number }).forOthers : 401));
    },
  );

  test('have layers that cannot be mounted into this space', async () => {
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
    const [borrowed] = await throughApiServer((base) =>
      runHere([requestAt({ base, header: 'x-kf-authorization' }, push, 'GET', `${own}/mount-packages/blobs/${foreign.layer}`)]),
    );
    expect(borrowed?.status).toBe(404);
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

  test('the image is unchanged under its digest and tag, and has only the tags of its owner', async () => {
    const { pull } = await credentialsOf(foreign.space);
    const { packages, digest, tag, manifest, layer } = foreign;
    expect(await contentOf(packages, digest, pull)).toEqual({
      manifest,
      tags: expect.arrayContaining([tag, 'put-by-its-owner']) as string[],
    });
    const { manifest: tagged, tags } = await contentOf(packages, tag, pull);
    expect([tagged, tags.length]).toEqual([manifest, 2]);
    const bytes = await fetch(`${pullEndpoint}/v2/${packages}/blobs/${layer}`, { headers: { authorization: pull } });
    const content = Buffer.from(await bytes.arrayBuffer());
    expect(`sha256:${createHash('sha256').update(content).digest('hex')}`).toBe(layer);
  });
});

describe('a program that searches for credentials', () => {
  const decoy = /^\/(workspace|layers\/\S+|proc\/\d+\/root\S*)\/\.docker(\/config\.json)?: /;
  const unexpected = (lines: string[]): string[] => lines.filter((line) => !decoy.test(line) && !line.includes('DECOY'));

  test('finds only the planted decoys, during its build and while it runs', async () => {
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

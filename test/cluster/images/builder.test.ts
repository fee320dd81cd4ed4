// The builder image on the cluster: it builds every sample app, and the results run. crane checks the images.
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { join } from 'node:path';

import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { tryRun } from '../../../tools/cluster/process.ts';

const env = (name: string): string => {
  const value = process.env[name];
  if (value === undefined)
    throw new Error(`${name} is not set: these tests run against a cluster of their own only (npm run test:cluster).`);
  return value;
};
const namespace = `kf-test-builder-${randomBytes(3).toString('hex')}`;
const apps = join(import.meta.dirname, '..', '..', 'fixtures', 'apps');

function kubectl(args: string[], input?: string): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const all = ['--kubeconfig', env('KF_TEST_KUBECONFIG'), '--namespace', namespace, ...args];
  return tryRun(env('KF_CLUSTER_KUBECTL'), all, input === undefined ? {} : { input });
}

function crane(...args: string[]): string {
  return execFileSync(env('KF_CLUSTER_CRANE'), [...args, '--insecure'], { encoding: 'utf8' });
}

const restricted = {
  runAsNonRoot: true,
  seccompProfile: { type: 'RuntimeDefault' },
};
const confined = { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } };

async function create(object: object): Promise<void> {
  const result = await kubectl(['create', '-f', '-'], JSON.stringify(object));
  if (result.code !== 0) throw new Error(result.stderr);
}

function reference(app: string, registry: string): string {
  return `${registry}/kf-test/${namespace}/${app}:1`;
}

interface BuildResult {
  exitCode: number;
  log: string;
}

/** Builds a sample app as kf does, but with all phases in one container, because this tests the builder. */
async function build(app: string, name: string): Promise<BuildResult> {
  const registry = env('KF_CLUSTER_NODE_REGISTRY');
  const source = execFileSync('tar', ['-C', join(apps, app), '--transform=s,^\\./,,', '-czf', '-', '.'], { maxBuffer: 2 ** 24 });
  const buildEnv = { NPM_CONFIG_REGISTRY: env('KF_CLUSTER_NPM_REGISTRY') };
  await create({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name },
    binaryData: { 'source.tgz': source.toString('base64') },
    data: buildEnv,
  });
  const script = `tar -xzf /source/source.tgz -C /workspace --no-overwrite-dir -m --no-same-permissions
exec /cnb/lifecycle/creator -app=/workspace -layers=/layers -platform=/platform -insecure-registry=${registry} -run-image=${registry}/kf/run:1 ${reference(app, registry)}`;
  const mount = (volume: string, mountPath: string): object => ({ name: volume, mountPath });
  await create({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: {
      restartPolicy: 'Never',
      securityContext: { ...restricted, fsGroup: 1000 },
      containers: [
        {
          name: 'build',
          image: `${registry}/kf/builder:1`,
          command: ['sh', '-c', script],
          env: [
            { name: 'CNB_PLATFORM_API', value: '0.14' },
            { name: 'CNB_NO_COLOR', value: 'true' },
          ],
          securityContext: confined,
          volumeMounts: [
            mount('workspace', '/workspace'),
            mount('layers', '/layers'),
            mount('tmp', '/tmp'),
            mount('source', '/source'),
            mount('env', '/platform/env'),
          ],
        },
      ],
      volumes: [
        ...['workspace', 'layers', 'tmp'].map((volume) => ({ name: volume, emptyDir: {} })),
        { name: 'source', configMap: { name, items: [{ key: 'source.tgz', path: 'source.tgz' }] } },
        { name: 'env', configMap: { name, items: Object.keys(buildEnv).map((key) => ({ key, path: key })) } },
      ],
    },
  });
  return ended(name);
}

interface Pod {
  status: { podIP?: string; phase?: string; containerStatuses?: { state: { terminated?: { exitCode: number } } }[] };
}

async function readPod(name: string): Promise<Pod> {
  return JSON.parse((await kubectl(['get', 'pod', name, '-o', 'json'])).stdout) as Pod;
}

async function until<T>(what: string, check: () => Promise<T | undefined>): Promise<T> {
  const end = Date.now() + 60_000;
  for (;;) {
    const found = await check();
    if (found !== undefined) return found;
    if (Date.now() > end) throw new Error(`waited 60 s for ${what}:\n${(await kubectl(['get', 'pods,events'])).stdout}`);
    await sleep(200);
  }
}

async function ended(name: string): Promise<BuildResult> {
  const exitCode = await until(
    `the end of pod ${name}`,
    async () => (await readPod(name)).status.containerStatuses?.[0]?.state.terminated?.exitCode,
  );
  const logs = await kubectl(['logs', name]);
  return { exitCode, log: logs.stdout };
}

/** Runs the built image with its default process, and requests "/". */
async function answerOf(app: string): Promise<string> {
  const name = `run-${app}`;
  const image = reference(app, env('KF_CLUSTER_NODE_REGISTRY'));
  const container = { name: 'app', image, env: [{ name: 'PORT', value: '8080' }], securityContext: confined };
  await create({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: { terminationGracePeriodSeconds: 2, securityContext: restricted, containers: [container] },
  });
  return until(`an answer of ${app}`, async () => {
    const answer = await kubectl(['get', '--raw', `/api/v1/namespaces/${namespace}/pods/${name}:8080/proxy/`]);
    return answer.code === 0 ? answer.stdout : undefined;
  });
}

function processesOf(app: string): Record<string, string[]> {
  const config = JSON.parse(crane('config', reference(app, env('KF_CLUSTER_REGISTRY')))) as { config: { Labels: Record<string, string> } };
  const metadata = JSON.parse(config.config.Labels['io.buildpacks.build.metadata'] ?? '{}') as {
    processes: { type: string; command: string[] }[];
  };
  return Object.fromEntries(metadata.processes.map(({ type, command }) => [type, command]));
}

beforeAll(async () => {
  await kubectl(['create', 'namespace', namespace]);
});
afterAll(async () => {
  await kubectl(['delete', 'namespace', namespace, '--wait=false']);
});

describe('the images in the registry', () => {
  // Together these contain every layer of the other images.
  test.each(['registry:3', 'traefik:3.6', 'builder:1', 'sample:1'])('kf/%s is complete', (image) => {
    expect(crane('validate', '--remote', `${env('KF_CLUSTER_REGISTRY')}/kf/${image}`)).toContain('PASS');
  });

  test.each(['node:24', 'registry:3', 'traefik:3.6', 'run:1', 'builder:1', 'sample:1', 'sample:2', 'crash:1', 'silent:1', 'wrongport:1'])(
    'the user of kf/%s is a number and not root',
    (image) => {
      const config = JSON.parse(crane('config', `${env('KF_CLUSTER_REGISTRY')}/kf/${image}`)) as { config: { User: string } };
      expect(config.config.User).toMatch(/^[1-9]\d*:[1-9]\d*$/);
    },
  );

  test('kf/root:1 names no user', () => {
    const config = JSON.parse(crane('config', `${env('KF_CLUSTER_REGISTRY')}/kf/root:1`)) as { config: { User?: string } };
    expect(config.config.User ?? '').toBe('');
  });
});

describe('the builder', () => {
  test('builds an app with 50 and more locked packages, and builds it again without installing them', async () => {
    const first = await build('node-deps', 'first');
    expect(first).toMatchObject({ exitCode: 0 });
    expect(first.log).toMatch(/added [5-9]\d packages/);
    const second = await build('node-deps', 'second');
    expect(second).toMatchObject({ exitCode: 0 });
    expect(second.log).toContain('the packages of the previous build are used again');
    expect(second.log).toContain("Reusing layer 'kf/nodejs:modules'");
    expect(JSON.parse(await answerOf('node-deps'))).toMatchObject({ app: 'node-deps' });
  });

  test('takes processes from the Procfile, which has priority over the start script', async () => {
    expect(await build('procfile-worker', 'procfile')).toMatchObject({ exitCode: 0 });
    expect(processesOf('procfile-worker')).toEqual({
      web: ['bash', '-c', 'node server.js --title "from the Procfile"'],
      worker: ['bash', '-c', 'node worker.js'],
    });
    expect(await answerOf('procfile-worker')).toBe('web from the Procfile\n');
  });

  test.each([
    ['static-site', '<h1>A static site</h1>'],
    ['binary-app', 'hello from an executable'],
    ['node-hello', 'hello from instance 0'],
  ])('builds %s, and the app answers', async (app, text) => {
    expect(await build(app, `build-${app}`)).toMatchObject({ exitCode: 0 });
    expect(await answerOf(app)).toContain(text);
  });

  test('ends a failed build with the words of the script that failed', async () => {
    const result = await build('broken-build', 'broken');
    expect(result.exitCode).toBe(51);
    expect(result.log).toContain('local: the compiler that this package needs is missing');
  });

  test('says what it looked for when no buildpack matches', async () => {
    const result = await build('no-match', 'no-match');
    expect(result.exitCode).toBe(20);
    for (const text of [
      'looked for package.json',
      'looked for go.mod',
      'looked for Staticfile or index.html',
      'looked for Procfile or an executable file',
    ]) {
      expect(result.log).toContain(text);
    }
  });
});

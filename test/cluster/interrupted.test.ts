// A push that is interrupted, by its user or by a dependency, reports it in time; the same push succeeds afterwards and sends nothing twice. So it does after
// one that was killed.

import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { randomBytes } from 'node:crypto';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parse, stringify } from 'yaml';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CertificateAuthority } from '../support/certificates.ts';
import { ConnectProxy } from '../support/connect-proxy.ts';
import { reportTime } from '../support/figures.ts';
import { get } from '../support/http.ts';
import { Kf, kubectl, kubectlJson, ringEnv } from '../support/kf.ts';

const fixture = path.resolve('test/fixtures/apps/node-hello');
let kf: Kf;
let folder: string;
let source: string;

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'kf-interrupted-'));
  source = path.join(folder, 'source');
  await cp(fixture, source, { recursive: true });
  kf = await Kf.create('developer', { XDG_CACHE_HOME: path.join(folder, 'cache') });
});
afterAll(async () => {
  for (const app of ['interrupted', 'killed-1', 'killed-2', 'killed-3', 'killed-4', 'no-builder'])
    await kf.run(['delete', app, '-r', '-f']);
  await kf.remove();
  await rm(folder, { recursive: true, force: true });
});

/** Random bytes keep their size when they are packed. */
function ballast(megabytes: number): Promise<void> {
  return writeFile(path.join(source, 'ballast.bin'), randomBytes(megabytes * 1024 * 1024));
}

interface Ended {
  code: number | null;
  /** The signal that ended it. */
  signal: NodeJS.Signals | null;
  output: string;
  /** Milliseconds from the signal to the end. */
  milliseconds: number;
}

const push = (app: string): string[] => ['push', app, '-p', source, '-m', '128M'];

/** Pushes and sends the signal as soon as the text has appeared. */
function interruptAt(app: string, text: string, signal: NodeJS.Signals): Promise<Ended> {
  const child = kf.start(push(app));
  let output = '';
  let sent = 0;
  const read = (part: string): void => {
    output += part;
    if (sent === 0 && output.includes(text)) {
      sent = performance.now();
      child.kill(signal);
    }
  };
  child.stdout?.setEncoding('utf8').on('data', read);
  child.stderr?.setEncoding('utf8').on('data', read);
  return new Promise((resolve) =>
    child.on('close', (code, by) => resolve({ code, signal: by, output, milliseconds: performance.now() - sent })),
  );
}

interface Pushed {
  apps: { guid: string; unchanged: boolean; built: boolean; layerBytesSent: number }[];
}

describe('a push that gets a signal', () => {
  test.each([
    ['Packing', 'SIGINT', 6],
    ['Uploading', 'SIGTERM', 40],
    ['Staging', 'SIGINT', 1],
    ['Waiting: ', 'SIGTERM', 1],
  ] as const)('at "%s" (%s) ends with 130, and the same push succeeds afterwards', async (text, signal, megabytes) => {
    await ballast(megabytes);
    const ended = await interruptAt('interrupted', text, signal);
    expect(ended.output).toContain(text);
    expect(ended.code, ended.output).toBe(130);
    reportTime('a push ends after a signal', ended.milliseconds);
    const again = await kf.json<Pushed>(...push('interrupted'));
    // The bytes that were uploaded before the signal are not uploaded again.
    if (text === 'Staging' || text.startsWith('Waiting')) expect(again.apps[0]?.layerBytesSent).toBe(0);
    if (text.startsWith('Waiting')) expect(again.apps[0]?.built).toBe(false);
    expect((await get('interrupted.apps.localhost')).status).toBe(200);
  });
});

interface Listed {
  items: { metadata: { labels?: Record<string, string> }; spec: { displayName?: string; host?: string } }[];
}

/** Objects of the ring's space. */
const listed = async (kind: string): Promise<Listed['items']> =>
  (await kubectlJson<Listed>('get', kind, '-n', ringEnv('KF_TEST_SPACE_GUID'))).items;

describe('a first push that gets SIGKILL', () => {
  // Each has an app of its own: the name of a deleted one is free only a moment later.
  test.each([
    ['Packing', 'killed-1', 6],
    ['Uploading', 'killed-2', 40],
    ['Staging', 'killed-3', 1],
    ['Waiting: ', 'killed-4', 1],
  ] as const)(
    'at "%s" is finished by the same push, with one app, package and build, and an upload that had ended is not repeated',
    async (text, app, megabytes) => {
      await ballast(megabytes);
      const ended = await interruptAt(app, text, 'SIGKILL');
      expect(ended.output).toContain(text);
      expect(ended.signal, ended.output).toBe('SIGKILL');
      const [again] = (await kf.json<Pushed>(...push(app))).apps;
      expect((await get(`${app}.apps.localhost`)).status).toBe(200);
      if (text === 'Staging' || text === 'Waiting: ') expect(again?.layerBytesSent).toBe(0);
      if (text === 'Waiting: ') expect(again?.built).toBe(false);
      const [apps, routes] = await Promise.all([listed('cfapps'), listed('cfroutes')]);
      expect(apps.filter(({ spec }) => spec.displayName === app)).toHaveLength(1);
      expect(routes.filter(({ spec }) => spec.host === app)).toHaveLength(1);
      for (const kind of ['cfpackages', 'cfbuilds']) {
        const own = (await listed(kind)).filter(({ metadata }) => metadata.labels?.['korifi.cloudfoundry.org/app-guid'] === again?.guid);
        expect(own, kind).toHaveLength(1);
      }
      expect((await kf.json<Pushed>(...push(app))).apps).toMatchObject([{ unchanged: true, built: false, layerBytesSent: 0 }]);
      await kf.ok('delete', app, '-r', '-f');
    },
  );
});

test('an upload waits for a registry that is away, and does not send again what the registry has', async () => {
  // More than one chunk: the first has arrived when the registry goes away, and the second finds no registry.
  const megabytes = 40;
  await ballast(megabytes);
  const authority = new CertificateAuthority('interrupter');
  const chunks: number[] = [];
  let uploads = 0;
  let gone: Promise<string> | undefined;
  const before = async (method: string, urlPath: string, bytes: number): Promise<void> => {
    if (method === 'POST' && urlPath.includes('/blobs/uploads/')) uploads += 1;
    if (method !== 'PATCH' || !urlPath.includes('/blobs/uploads/')) return;
    chunks.push(bytes);
    if (chunks.length < 2) return;
    gone ??= kubectl('delete', 'pod', '-n', 'kf-system', '-l', 'app=kf-registry', '--grace-period=1');
    await gone;
  };
  const proxy = await ConnectProxy.start({ inspectWith: authority, before });
  const config = parse(await readFile(ringEnv('KF_TEST_DEVELOPER'), 'utf8')) as { clusters: { cluster: Record<string, unknown> }[] };
  Object.assign(config.clusters[0]?.cluster ?? {}, {
    'proxy-url': proxy.url,
    'certificate-authority-data': Buffer.from(authority.cert).toString('base64'),
    'tls-server-name': 'localhost',
  });
  const kubeconfig = path.join(folder, 'kubeconfig');
  await writeFile(kubeconfig, stringify(config), { mode: 0o600 });
  const ran = await kf.run([...push('interrupted'), '--json'], { env: { KUBECONFIG: kubeconfig } });
  await proxy.stop();
  expect(await gone).toContain('deleted');
  expect(ran.code, ran.stderr + ran.stdout).toBe(0);
  const size = megabytes * 1024 * 1024;
  const [first = 0, ...rest] = chunks;
  expect(first).toBeGreaterThan(size / 2);
  // Every later chunk starts after the first: together they are smaller than the whole, however often the last one was tried.
  expect(rest.filter((bytes) => bytes >= size / 2)).toEqual([]);
  const { result } = JSON.parse(ran.stdout) as { result: Pushed };
  const accepted = result.apps[0]?.layerBytesSent ?? 0;
  expect(accepted).toBeGreaterThanOrEqual(size);
  expect(accepted).toBeLessThan(size * 1.1);
  // One session for the layer, at most one for the small configuration.
  expect(uploads).toBeLessThanOrEqual(2);
  expect((await get('interrupted.apps.localhost')).status).toBe(200);
});

describe('an installation whose builder image does not exist', () => {
  let admin: Kf;

  beforeAll(async () => {
    admin = await Kf.create('admin');
    const settings = parse(await readFile(ringEnv('KF_TEST_SETUP_FILE'), 'utf8')) as { images: Record<string, string> };
    settings.images['builder'] = `${ringEnv('KF_CLUSTER_NODE_REGISTRY')}/kf/builder:none`;
    const file = path.join(folder, 'setup.yaml');
    await writeFile(file, stringify(settings));
    await admin.ok('setup', '-f', file);
  });
  afterAll(async () => {
    await admin.ok('setup', '-f', ringEnv('KF_TEST_SETUP_FILE'));
    await admin.remove();
  });

  test('fails a push of source with the name of the image, and still runs ready images', async () => {
    const ran = await kf.run(['push', 'no-builder', '-p', fixture, '--json']);
    expect(ran.code).toBe(1);
    const { error } = JSON.parse(ran.stdout) as { error: { code: string; message: string; details: { reason: string } } };
    expect(error.code).toBe('build');
    expect(error.details.reason).toBe('BuilderNotFound');
    expect(error.message).toContain('/kf/builder:none');
    reportTime('a builder that does not exist is named', ran.milliseconds);
    expect((await get('interrupted.apps.localhost')).status).toBe(200);
  });

  test('builds again as soon as the image is corrected', async () => {
    await admin.ok('setup', '-f', ringEnv('KF_TEST_SETUP_FILE'));
    await kf.ok('push', 'no-builder', '-p', fixture, '-m', '128M');
    expect((await get('no-builder.apps.localhost')).status).toBe(200);
  });
});

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { readKubeconfig, selectContext } from '../../../src/lib/kube/kubeconfig.ts';
import { resolveEndpoint } from '../../../src/lib/kube/endpoint.ts';

const folders: string[] = [];

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'kf-kubeconfig-'));
  folders.push(path);
  return path;
}

afterEach(() => {
  for (const path of folders.splice(0)) rmSync(path, { recursive: true });
});

function write(path: string, content: object | string): string {
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
  return path;
}

const cluster = (name: string, server: string, more: object = {}): object => ({ name, cluster: { server, ...more } });
const context = (name: string, clusterName: string, user: string): object => ({ name, context: { cluster: clusterName, user } });

describe('kubeconfig files', () => {
  test('the first file of KUBECONFIG that defines an entry has priority, missing files count as empty', async () => {
    const dir = folder();
    const one = write(join(dir, 'one'), {
      clusters: [cluster('a', 'https://one')],
      contexts: [context('c1', 'a', 'u')],
      users: [{ name: 'u', user: { token: 'x' } }],
    });
    const two = write(join(dir, 'two'), {
      'current-context': 'c2',
      clusters: [cluster('a', 'https://two'), cluster('b', 'https://b')],
      contexts: [context('c2', 'b', 'u')],
    });
    const config = await readKubeconfig({ env: { KUBECONFIG: [one, join(dir, 'missing'), two].join(delimiter) } });
    expect(config.currentContext).toBe('c2');
    expect(config.clusters.get('a')?.server).toBe('https://one');
    expect(config.files).toEqual([one, two]);
    expect(selectContext(config)).toMatchObject({ context: 'c2', cluster: { server: 'https://b' }, user: { token: 'x' } });
    expect(selectContext(config, { context: 'c1' }).cluster.server).toBe('https://one');
  });

  test('paths are relative to the file that contains them, except commands without a slash', async () => {
    const dir = folder();
    mkdirSync(join(dir, 'sub'));
    const path = write(join(dir, 'sub', 'config'), {
      clusters: [cluster('a', 'https://a', { 'certificate-authority': '../ca.crt' })],
      users: [
        { name: 'u', user: { tokenFile: 'token', 'client-certificate': '/abs/cert', exec: { apiVersion: 'v1', command: './plugin' } } },
        { name: 'v', user: { exec: { apiVersion: 'v1', command: 'plugin' } } },
      ],
    });
    const config = await readKubeconfig({ kubeconfig: path, env: {} });
    expect(config.clusters.get('a')?.['certificate-authority']).toBe(join(dir, 'ca.crt'));
    expect(config.users.get('u')).toMatchObject({
      tokenFile: join(dir, 'sub', 'token'),
      'client-certificate': '/abs/cert',
      exec: { command: join(dir, 'sub', 'plugin') },
    });
    expect(config.users.get('v')?.exec?.command).toBe('plugin');
  });

  test('HOME determines where the default file is', async () => {
    const dir = folder();
    mkdirSync(join(dir, '.kube'));
    write(join(dir, '.kube', 'config'), 'current-context: home\ncontexts:\n- name: home\n  context: {cluster: c, user: u}\n');
    expect((await readKubeconfig({ env: { HOME: dir } })).contexts.get('home')).toEqual({ cluster: 'c', user: 'u' });
  });

  test('a broken file is named with its error', async () => {
    const path = write(join(folder(), 'config'), 'a: [b\n');
    await expect(readKubeconfig({ kubeconfig: path, env: {} })).rejects.toMatchObject({
      code: 'usage',
      message: expect.stringContaining(path) as string,
    });
  });

  test('a file given by name must exist', async () => {
    await expect(readKubeconfig({ kubeconfig: join(folder(), 'none'), env: {} })).rejects.toMatchObject({ code: 'usage' });
  });

  test('an unknown context is reported with the existing ones', async () => {
    const path = write(join(folder(), 'config'), {
      clusters: [cluster('a', 'https://a')],
      contexts: [context('blue', 'a', ''), context('green', 'a', '')],
    });
    const config = await readKubeconfig({ kubeconfig: path, env: {} });
    expect(() => selectContext(config, { context: 'red' })).toThrow('The kubeconfig has no context "red". Contexts: "blue", "green".');
    expect(() => selectContext(config)).toThrow('names no current context');
  });

  test.each([
    ['one', ['/nowhere/config'], 'the kubeconfig /nowhere/config is not there.'],
    ['several', ['/nowhere/a', '/nowhere/b'], 'the kubeconfig /nowhere/a and /nowhere/b are not there.'],
    ['none', [''], 'KUBECONFIG names no file.'],
  ])('files that do not exist are named: %s', async (_, paths, why) => {
    const env = { KUBECONFIG: `${paths.join(delimiter)}${delimiter}` };
    await expect(resolveEndpoint({ env })).rejects.toThrow(`No Kubernetes cluster is configured: ${why}`);
    const named = why.charAt(0).toUpperCase() + why.slice(1);
    await expect(resolveEndpoint({ env, context: 'c' })).rejects.toThrow(`The kubeconfig has no context "c". ${named}`);
  });

  test('a file without a context is named together with one that does not exist', async () => {
    const path = write(join(folder(), 'config'), '{}');
    const env = { KUBECONFIG: [path, '/nowhere/config'].join(delimiter) };
    await expect(resolveEndpoint({ env })).rejects.toThrow(`the kubeconfig /nowhere/config is not there, ${path} has no context.`);
  });

  test('a context with a missing part is reported with that part', async () => {
    const path = write(join(folder(), 'config'), {
      clusters: [cluster('a', 'https://a')],
      contexts: [context('x', 'gone', 'u'), context('y', 'a', 'nobody')],
    });
    const config = await readKubeconfig({ kubeconfig: path, env: {} });
    expect(() => selectContext(config, { context: 'x' })).toThrow('the cluster "gone"');
    expect(() => selectContext(config, { context: 'y' })).toThrow('the user "nobody"');
  });
});

describe('the endpoint', () => {
  test("is the pod's own service account if there is no kubeconfig", async () => {
    const dir = folder();
    for (const [name, text] of Object.entries({ token: 'abc\n', 'ca.crt': 'PEM', namespace: 'kf-system' })) write(join(dir, name), text);
    const env = { HOME: dir, KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '443' };
    const endpoint = await resolveEndpoint({ env, serviceAccountDir: dir });
    expect(endpoint.url.href).toBe('https://[fd00::1]/');
    expect(endpoint).toMatchObject({ ca: 'PEM', namespace: 'kf-system', identity: { context: 'in-cluster' } });
    expect(await endpoint.credentials.get()).toEqual({ authorization: 'Bearer abc' });
    write(join(dir, 'token'), 'def');
    expect(await endpoint.credentials.renew({ authorization: 'Bearer abc' })).toBe(true);
    expect(await endpoint.credentials.get()).toEqual({ authorization: 'Bearer def' });
    expect(await endpoint.credentials.renew({ authorization: 'Bearer def' })).toBe(false);
  });

  test('is a usage error without kubeconfig and outside of a pod', async () => {
    await expect(resolveEndpoint({ env: { HOME: folder() } })).rejects.toMatchObject({
      code: 'usage',
      message: expect.stringContaining('No Kubernetes cluster') as string,
    });
  });

  test('has impersonation as headers', async () => {
    const path = write(join(folder(), 'config'), {
      'current-context': 'x',
      clusters: [cluster('a', 'https://a:6443')],
      contexts: [context('x', 'a', 'u')],
      users: [{ name: 'u', user: { as: 'jane', 'as-groups': ['dev', 'ops'], 'as-user-extra': { 'x/y': ['1'] } } }],
    });
    const endpoint = await resolveEndpoint({ kubeconfig: path, env: {} });
    expect(endpoint.headers).toEqual({ 'Impersonate-User': 'jane', 'Impersonate-Group': ['dev', 'ops'], 'Impersonate-Extra-x%2Fy': ['1'] });
  });
});

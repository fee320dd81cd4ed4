import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { credentialSourceOf, tokenFileCredential } from '../../../src/lib/kube/credentials.ts';
import { execCredential } from '../../../src/lib/kube/exec-credential.ts';
import type { ExecEntry, SelectedContext } from '../../../src/lib/kube/kubeconfig.ts';

let dir: string;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'kf-credentials-'));
});

afterEach(() => {
  rmSync(dir, { recursive: true });
});

function selected(user: SelectedContext['user'] = {}, cluster: Partial<SelectedContext['cluster']> = {}): SelectedContext {
  return { context: 'c', clusterName: 'a', cluster: { server: 'https://a:6443', ...cluster }, userName: 'u', user, namespace: undefined };
}

/** A plugin that counts its runs in a file, stores its input, and prints `answer`. */
function plugin(answer: string): ExecEntry {
  const script = join(dir, 'plugin');
  writeFileSync(script, `#!/bin/sh\necho run >> ${dir}/runs\nprintf '%s' "$KUBERNETES_EXEC_INFO" > ${dir}/info\ncat ${dir}/answer\n`);
  chmodSync(script, 0o755);
  writeFileSync(join(dir, 'answer'), answer);
  return { apiVersion: 'client.authentication.k8s.io/v1', command: script, interactiveMode: 'Never' };
}

const runs = (): number => (existsSync(join(dir, 'runs')) ? readFileSync(join(dir, 'runs'), 'utf8').trim().split('\n').length : 0);

function answer(status: object, apiVersion = 'client.authentication.k8s.io/v1'): string {
  return JSON.stringify({ kind: 'ExecCredential', apiVersion, status });
}

describe('credentials of a kubeconfig user', () => {
  test('a password becomes basic authentication', async () => {
    const source = await credentialSourceOf(selected({ username: 'jane', password: 'säge' }), {});
    expect(await source.get()).toEqual({ authorization: `Basic ${Buffer.from('jane:säge').toString('base64')}` });
  });

  test('a token file has priority over a token, and is read again after a while', async () => {
    const path = join(dir, 'token');
    writeFileSync(path, 'one\n');
    const source = await credentialSourceOf(selected({ token: 'fixed', tokenFile: path }), {});
    expect(await source.get()).toEqual({ authorization: 'Bearer one' });

    let now = 0;
    const timed = tokenFileCredential(path, {}, () => now);
    expect(await timed.get()).toEqual({ authorization: 'Bearer one' });
    writeFileSync(path, 'two');
    expect(await timed.get()).toEqual({ authorization: 'Bearer one' });
    now = 11_000;
    expect(await timed.get()).toEqual({ authorization: 'Bearer two' });
  });

  test('inline certificates have priority over files', async () => {
    const data = Buffer.from('CERT').toString('base64');
    writeFileSync(join(dir, 'key'), 'KEY');
    const source = await credentialSourceOf(
      selected({ 'client-certificate-data': data, 'client-certificate': '/nowhere', 'client-key': join(dir, 'key') }),
      {},
    );
    expect(await source.get()).toEqual({ cert: 'CERT', key: 'KEY' });
  });

  test('a missing file is named', async () => {
    await expect(credentialSourceOf(selected({ 'client-certificate': join(dir, 'gone') }), {})).rejects.toThrow('gone');
  });
});

describe('an exec plugin', () => {
  test('is run once until its credential is about to expire', async () => {
    let now = Date.parse('2026-01-01T00:00:00Z');
    const source = execCredential(
      plugin(answer({ token: 'one', expirationTimestamp: '2026-01-01T00:10:00Z' })),
      selected(),
      process.env,
      () => now,
    );
    const [first, second] = await Promise.all([source.get(), source.get()]);
    expect(first).toEqual({ authorization: 'Bearer one' });
    expect(second).toBe(first);
    await source.get();
    expect(runs()).toBe(1);
    now = Date.parse('2026-01-01T00:09:50Z');
    writeFileSync(join(dir, 'answer'), answer({ token: 'two' }));
    expect(await source.get()).toEqual({ authorization: 'Bearer two' });
    expect(runs()).toBe(2);
  });

  test('is run again after a refusal, but not if another request has renewed the credential meanwhile', async () => {
    const source = execCredential(plugin(answer({ token: 'one' })), selected(), process.env);
    const refused = await source.get();
    writeFileSync(join(dir, 'answer'), answer({ token: 'two' }));
    expect(await source.renew(refused)).toBe(true);
    expect(await source.renew(refused)).toBe(true);
    expect(runs()).toBe(2);
    expect(await source.renew(await source.get())).toBe(false);
  });

  test('gets the cluster if it requests it, and its own settings', async () => {
    const entry = { ...plugin(answer({ clientCertificateData: 'CERT', clientKeyData: 'KEY' })), provideClusterInfo: true };
    const cluster = {
      'certificate-authority-data': Buffer.from('PEM').toString('base64'),
      extensions: [{ name: 'client.authentication.k8s.io/exec', extension: { audience: 'x' } }],
    };
    const source = execCredential(entry, selected({}, cluster), process.env);
    expect(await source.get()).toEqual({ cert: 'CERT', key: 'KEY' });
    expect(JSON.parse(readFileSync(join(dir, 'info'), 'utf8'))).toEqual({
      kind: 'ExecCredential',
      apiVersion: 'client.authentication.k8s.io/v1',
      spec: {
        interactive: false,
        cluster: {
          server: 'https://a:6443',
          'certificate-authority-data': Buffer.from('PEM').toString('base64'),
          config: { audience: 'x' },
        },
      },
    });
  });

  test('that is not installed causes its install hint to be shown', async () => {
    const entry = { apiVersion: 'client.authentication.k8s.io/v1', command: join(dir, 'nothing'), installHint: 'Install it with brew.' };
    await expect(execCredential(entry, selected(), process.env).get()).rejects.toMatchObject({
      hints: ['Install it with brew.'],
      message: expect.stringContaining('is not installed') as string,
    });
  });

  test.each([
    ['no JSON', 'hello', 'printed no ExecCredential'],
    ['another version', answer({ token: 'x' }, 'client.authentication.k8s.io/v1beta1'), 'v1beta1'],
    ['nothing useful', answer({}), 'neither a token nor a certificate'],
  ])('that answers with %s is refused', async (_what, text, message) => {
    await expect(execCredential(plugin(text), selected(), process.env).get()).rejects.toMatchObject({
      code: 'forbidden',
      message: expect.stringContaining(message) as string,
    });
  });

  test('that needs a terminal fails with a message if there is none', async () => {
    const entry: ExecEntry = { ...plugin(answer({ token: 'x' })), interactiveMode: 'Always' };
    await expect(execCredential(entry, selected(), process.env).get()).rejects.toThrow('must be used at a terminal');
    expect(runs()).toBe(0);
  });
});

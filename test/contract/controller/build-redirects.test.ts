// Attacker: a registry that a user names with `--docker-image`, and a pull secret. Neither can direct the controller to other addresses or
// programs, and no text of such an address appears in the build's message.

import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { RequestListener, Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { classifyReadError, readImage } from '../../../src/controller/builds/docker-image.ts';

const secret = 'THE-METADATA-OF-THE-NODE';
const servers: Server[] = [];
let asked: string[];

async function serve(address: string, listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, address, resolve));
  return `${address}:${(server.address() as AddressInfo).port}`;
}

/** What the CFBuild's message would be. */
async function messageOf(host: string, texts: string[] = []): Promise<string> {
  const image = `${host}/x/app:1`;
  const dockerConfigs = texts.map((text) => ({ text, from: "Secret 'known'" }));
  const options = { dockerConfigs, insecureRegistries: [], architecture: 'amd64', signal: AbortSignal.timeout(10_000) };
  try {
    await readImage(image, options);
    return 'read';
  } catch (error) {
    return classifyReadError(image, error).message;
  }
}

/** A service that only the controller should reach; each status in turn. */
const hidden = (address: string, status: number): Promise<string> =>
  serve(address, (request, response) => {
    asked.push(request.url ?? '');
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify({ errors: [{ code: secret, message: secret }] }));
  });

beforeEach(() => void (asked = []));
afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

describe('a redirect', () => {
  test.each([200, 403, 500])('to another address is not followed (there: %i)', async (status) => {
    const target = await hidden('127.0.0.2', status);
    const host = await serve('127.0.0.1', (_, response) =>
      response.writeHead(307, { location: `http://${target}/latest/meta-data` }).end(),
    );
    const message = await messageOf(host);
    expect([asked, message]).toEqual([[], expect.stringContaining("sends to '127.0.0.2', which is not asked: its address is loopback")]);
  });

  test.each([
    'http://169.254.169.254/latest',
    'http://[fe80::1]/',
    'http://[::ffff:169.254.169.254]/',
    'http://2852039166/',
    'http://localtest.localhost:1/',
  ])('to %s is not followed', async (location) => {
    const host = await serve('127.0.0.1', (_, response) => response.writeHead(302, { location }).end());
    expect(await messageOf(host)).toMatch(/which is not asked|cannot be reached/);
  });

  test('to a file or a program is not followed', async () => {
    const host = await serve('127.0.0.1', (_, response) => response.writeHead(302, { location: 'file:///etc/passwd' }).end());
    expect(await messageOf(host)).toContain("sends to a URL that is not HTTP: 'file:'");
  });

  test('within the own address is followed, but the text of an error there is not shown', async () => {
    const target = await hidden('127.0.0.1', 403);
    const host = await serve('127.0.0.1', (_, response) => response.writeHead(307, { location: `http://${target}/` }).end());
    const message = await messageOf(host);
    expect(asked.length).toBeGreaterThan(0);
    expect(message).toContain('status 403');
    expect(message).not.toContain(secret);
  });
});

test('only error messages of a registry API are quoted, not other pages', async () => {
  const page = await serve('127.0.0.1', (_, response) => response.writeHead(403).end(`<html>${secret}</html>`));
  expect(await messageOf(page)).not.toContain(secret);
  const registry = await serve('127.0.0.1', (_, response) =>
    response.writeHead(403).end(JSON.stringify({ errors: [{ code: 'DENIED', message: 'pay first' }] })),
  );
  expect(await messageOf(registry)).toContain('DENIED: pay first');
});

test('a link-local address is never requested', async () => {
  expect(await messageOf('169.254.169.254')).toContain("The registry '169.254.169.254' is not asked: its address is link-local.");
});

test('a token server at another private address gets no request', async () => {
  const target = await hidden('127.0.0.2', 200);
  const host = await serve('127.0.0.1', (_, response) =>
    response.writeHead(401, { 'www-authenticate': `Bearer realm="https://${target}/token"` }).end(),
  );
  expect(await messageOf(host)).toMatch(/token server that kf does not ask|which is not asked/);
  expect(asked).toEqual([]);
});

describe('a pull secret', () => {
  let folder: string;
  const path = process.env['PATH'];
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'kf-helper-'));
    writeFileSync(join(folder, 'docker-credential-evil'), `#!/bin/sh\ntouch ${folder}/ran\necho '{"Username":"a","Secret":"b"}'\n`);
    chmodSync(join(folder, 'docker-credential-evil'), 0o755);
    process.env['PATH'] = `${folder}${delimiter}${path ?? ''}`;
  });
  afterEach(() => {
    process.env['PATH'] = path;
    rmSync(folder, { recursive: true });
  });

  test.each(['credsStore', 'credHelpers'])('with %s makes the controller run no program, and its passwords are used', async (field) => {
    let header = '';
    const host = await serve('127.0.0.1', (request, response) => {
      header = request.headers.authorization ?? '';
      response.writeHead(header === '' ? 401 : 404, { 'www-authenticate': 'Basic realm="x"' }).end();
    });
    const auths = { [host]: { username: 'me', password: 'mine' } };
    const config = JSON.stringify({ auths, ...(field === 'credsStore' ? { credsStore: 'evil' } : { credHelpers: { [host]: 'evil' } }) });
    expect(await messageOf(host, [config])).toContain('does not exist');
    expect([existsSync(join(folder, 'ran')), header]).toEqual([false, `Basic ${Buffer.from('me:mine').toString('base64')}`]);
  });
});

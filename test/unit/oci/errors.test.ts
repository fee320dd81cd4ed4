import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { KfError } from '../../../src/lib/errors.ts';
import { isConnectionFailure, isTemporary, redact, registryError } from '../../../src/lib/oci/errors.ts';

function answer(status: number, body: string, headers: Record<string, string> = {}) {
  return registryError({ status, headers, body: Readable.from([Buffer.from(body)]) }, "pushing 'a/b'");
}

test.each([
  [
    404,
    '{"errors":[{"code":"NAME_UNKNOWN","message":"repository name not known"}]}',
    'NAME_UNKNOWN: repository name not known (status 404)',
  ],
  [400, '{"errors":[{"code":"A","message":"one"},{"code":"B","message":""}]}', 'A: one; B (status 400)'],
  [
    500,
    '{"errors":[{"code":"UNKNOWN","message":"unknown error","detail":"disk is slow"}]}',
    'UNKNOWN: unknown error (disk is slow) (status 500)',
  ],
  [403, '<html><body><h1>Forbidden</h1> by   WAF.</body></html>', 'status 403, Forbidden by WAF'],
  [503, '{"kind":"Status","message":"no endpoints"}', 'status 503, {"kind":"Status","message":"no endpoints"}'],
  [502, '', 'status 502'],
])('status %i is reported with the text of the body', async (status, body, text) => {
  const error = await answer(status, body);
  expect(error).toBeInstanceOf(KfError);
  expect(error).toMatchObject({ code: 'upload', message: `Error from registry: pushing 'a/b': ${text}.` });
});

test('a full registry of kf names the command that frees space, and another one does not', async () => {
  const body = (message: string) => JSON.stringify({ errors: [{ code: 'DENIED', message }] });
  expect((await answer(507, body('the registry has no disk space left: 1M of 1G are free'))).hints).toEqual([
    'An operator can remove the images that nothing uses: kf prune',
  ]);
  expect((await answer(507, body('insufficient storage'))).hints).toEqual([]);
});

test.each([
  ['text', '{"errors":[{"code":"UNKNOWN","message":"unknown","detail":"write /data/x: no space left on device"}]}'],
  ['an object', '{"errors":[{"code":"UNKNOWN","message":"unknown","detail":{"Err":"no space left on device"}}]}'],
])('a full volume that is reported as %s is reported as full and not tried again', async (_, body) => {
  const error = await answer(500, body);
  expect(error.message).toBe("Error from registry: pushing 'a/b': the registry has no disk space left.");
  expect(error.temporary()).toBe(false);
});

test.each([408, 429, 499, 500, 502, 503, 504, 522])('status %i is temporary', async (status) => {
  expect(isTemporary(await answer(status, ''))).toBe(true);
});

test.each([400, 401, 403, 404, 405, 413, 416])('status %i is final', async (status) => {
  expect(isTemporary(await answer(status, ''))).toBe(false);
});

test('at most 64 KiB of an answer are read', async () => {
  let read = 0;
  const endless = Readable.from(
    (function* () {
      for (;;) yield Buffer.alloc((read += 4096) && 4096, 'x');
    })(),
  );
  await registryError({ status: 500, headers: {}, body: endless }, 'x');
  expect(read).toBeLessThan(256 * 1024);
});

test('Retry-After is used if it is a number', async () => {
  expect((await answer(429, '', { 'retry-after': '7' })).answer.retryAfterSeconds).toBe(7);
  expect((await answer(429, '', { 'retry-after': 'Wed, 21 Oct 2026' })).answer.retryAfterSeconds).toBeUndefined();
});

test.each([
  ['ECONNRESET', Object.assign(new Error('x'), { code: 'ECONNRESET' }), true],
  ['a wrapped one', new Error('x', { cause: Object.assign(new Error('y'), { code: 'EPIPE' }) }), true],
  ['an unreachable cluster', new KfError('unreachable', 'x'), true],
  ['an abort', Object.assign(new Error('x'), { name: 'AbortError', code: 'ABORT_ERR' }), false],
  ['a missing file', Object.assign(new Error('x'), { code: 'ENOENT' }), false],
  ['a text', 'ECONNRESET', false],
])('%s is recognised as a failed connection or not', (_, error, expected) => {
  expect(isConnectionFailure(error)).toBe(expected);
});

test.each([
  ['https://user:secret@r.io/v2/', 'https://r.io/v2/'],
  ['GET /x?_state=abc&digest=sha256:1', 'GET /x?_state=***&digest=sha256:1'],
  ['?X-Amz-Signature=abc&X-Amz-Date=1', '?X-Amz-Signature=***&X-Amz-Date=1'],
  ['?access_token=abc', '?access_token=***'],
  ['sent Bearer eyJhbGciOiJSUzI1NiJ9.e30.sig', 'sent Bearer ***'],
  ['nothing to hide', 'nothing to hide'],
])('%j is printed as %j', (text, redacted) => {
  expect(redact(text)).toBe(redacted);
});

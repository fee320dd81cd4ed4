// Bodies of answers: decompressed, and limited when others decide their size.

import type { IncomingMessage } from 'node:http';
import { readBody } from './transport.ts';
import { defined } from '../defined.ts';

/** The rest of a longer refusal adds nothing. */
const errorBodyLimit = 64 * 1024;

/** A body has more bytes than allowed; it was not parsed. */
export class PageTooLargeError extends Error {}

/** A body without the compression of the server or of a proxy. @throws PageTooLargeError when it has more than `most` bytes then */
export async function unpacked(response: IncomingMessage, body: Buffer, most?: number): Promise<Buffer> {
  if (response.headers['content-encoding'] !== 'gzip') return body;
  const { gunzipSync } = await import('node:zlib');
  try {
    return gunzipSync(body, defined({ maxOutputLength: most }));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') throw new PageTooLargeError(undefined, { cause: error });
    throw error;
  }
}

/** The whole decompressed body. @throws PageTooLargeError when it has more than `most` bytes; the rest is not read */
export async function wholeBody(response: IncomingMessage, most = Infinity): Promise<Buffer> {
  if (most === Infinity) return unpacked(response, await readBody(response));
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > most) throw new PageTooLargeError();
    chunks.push(chunk);
  }
  return unpacked(response, Buffer.concat(chunks), most);
}

/** The body of an error answer; empty if it breaks off. */
export function errorText(response: IncomingMessage): Promise<string> {
  return readBody(response, errorBodyLimit)
    .then((body) => unpacked(response, body))
    .then(
      (buffer) => buffer.toString('utf8'),
      () => '',
    );
}

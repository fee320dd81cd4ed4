// Handles a request that stores something in the registry. It must fit into the limits, its bytes are counted, and its last bytes wait while blobs
// are removed.

import { createHash } from 'node:crypto';
import type { ClientRequest, IncomingMessage } from 'node:http';
import { Transform } from 'node:stream';
import type { TransformCallback } from 'node:stream';
import type { Commits } from './commits.ts';
import type { Lease } from './leases.ts';
import { formatBytes } from '../../lib/api/sizes.ts';
import type { RegistryPath } from './path.ts';
import type { Adds, UploadRefusal, Capacity } from './capacity.ts';

/** The registry parses a manifest as a whole, which takes ten times its size. Manifests of real images have a few kilobytes. */
const mostManifestBytes = 512 * 1024;

export interface UploadRules {
  capacity: Capacity;
  commits: Commits;
  lease: Lease;
  /** Called for each chunk of the body. */
  onPiece: () => void;
}

/** Forwards everything except the newest chunk, so that the registry cannot take the body for complete before `beforeEnd`. */
class UploadBody extends Transform {
  readonly #isTooMuch: (bytes: number) => Promise<boolean>;
  readonly #beforeEnd: (digest: string) => Promise<void>;
  readonly #hash = createHash('sha256');
  #last: Buffer | undefined;

  constructor(isTooMuch: (bytes: number) => Promise<boolean>, beforeEnd: (digest: string) => Promise<void>) {
    super();
    this.#isTooMuch = isTooMuch;
    this.#beforeEnd = beforeEnd;
  }

  override _transform(chunk: Buffer, _: BufferEncoding, done: TransformCallback): void {
    this.#isTooMuch(chunk.length).then(
      (isTooMuch) => (isTooMuch ? done(new Error('no space left')) : this.#forwardBefore(chunk, done)),
      (error: unknown) => done(error as Error),
    );
  }

  #forwardBefore(chunk: Buffer, done: TransformCallback): void {
    this.#hash.update(chunk);
    const before = this.#last;
    this.#last = chunk;
    if (before === undefined) done();
    else done(null, before);
  }

  override _flush(done: TransformCallback): void {
    this.#beforeEnd(`sha256:${this.#hash.digest('hex')}`).then(
      () => done(null, this.#last),
      (error: unknown) => done(error as Error),
    );
  }
}

/** The digest that a repository refers to after the request: the one in the query, or for a manifest the hash of its body. */
function commitOf({ endpoint, target }: RegistryPath): { digest?: string } | undefined {
  const query = new URLSearchParams(target.slice(target.indexOf('?') + 1));
  const digest = target.includes('?') ? (query.get('digest') ?? query.get('mount') ?? undefined) : undefined;
  if (digest !== undefined) return { digest };
  return endpoint === 'manifest' ? {} : undefined;
}

function adds({ endpoint }: RegistryPath, method: string | undefined): Adds {
  if (endpoint === 'upload-start') return 'upload';
  return method === 'PATCH' ? 'nothing' : 'entry';
}

const tooMany: UploadRefusal = {
  status: 429,
  code: 'TOOMANYREQUESTS',
  message: 'the space has stored too many layers and manifests in the last minutes',
};

const tooLarge: UploadRefusal = {
  status: 413,
  code: 'MANIFEST_INVALID',
  message: `a manifest has at most ${formatBytes(mostManifestBytes)}`,
};

const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;

/**
 * Call it before the registry has the last byte of a request by which a repository begins to refer to `digest`. It waits while blobs or links are
 * removed. The request has ended when the registry has answered, or will not: it has then stored or refused the content. The end of the answer's body
 * does not count: it comes when the client has read it, and one slow client would then block all uploads.
 */
async function beginCommit({ commits, lease, path, space }: Upload, digest: string): Promise<(forward: ClientRequest) => void> {
  const leave = await lease(path);
  const end = await commits.begin(digest, space);
  const ended = (isAnswered: boolean): void => {
    end();
    leave(isAnswered);
  };
  return (forward) => {
    if (forward.destroyed) ended(false);
    else forward.once('response', () => ended(true)).once('close', () => ended(false));
  };
}

type Upload = UploadRules & { path: RegistryPath; space: string };

interface Forwarding {
  /** Starts the request to the registry; the body is written to it. */
  open: () => ClientRequest;
  /** Answers in place of the registry. */
  refuse: (refusal: UploadRefusal) => void;
}

const mostBytes = ({ endpoint }: RegistryPath): number => (endpoint === 'manifest' ? mostManifestBytes : Infinity);

/** Why the registry has no room for the request; undefined when it has. */
async function refusalOf(request: IncomingMessage, { path, space, capacity }: Upload): Promise<UploadRefusal | undefined> {
  const length = Number(request.headers['content-length'] ?? 0);
  if (length > mostBytes(path)) return tooLarge;
  return capacity.admit({ space, name: path.repository?.split('/')[1] ?? '' }, length, adds(path, request.method));
}

/** Sends the request to the registry. */
export async function sendUpload(request: IncomingMessage, upload: Upload, forwarding: Forwarding): Promise<void> {
  const { path, space, commits } = upload;
  const noRoom = await refusalOf(request, upload);
  const refusal = noRoom ?? (commitOf(path) !== undefined && commits.isFull(space) ? tooMany : undefined);
  if (refusal !== undefined) forwarding.refuse(refusal);
  else if (hasBody(request)) sendBody(request, upload, forwarding);
  else await sendWithoutBody(request, upload, forwarding);
}

async function sendWithoutBody(request: IncomingMessage, upload: Upload, { open }: Forwarding): Promise<void> {
  const digest = commitOf(upload.path)?.digest;
  const endWith = digest === undefined ? undefined : await beginCommit(upload, digest);
  const forward = open();
  endWith?.(forward);
  request.resume();
  forward.end();
}

function sendBody(request: IncomingMessage, upload: Upload, { open, refuse }: Forwarding): void {
  const { path, space, capacity, commits, onPiece } = upload;
  const commit = commitOf(path);
  const forward = open();
  forward.flushHeaders();
  const beforeEnd = async (bodyDigest: string): Promise<void> => {
    if (commit === undefined) return;
    // Other uploads of the space may have used up the limit in the meantime.
    if (commits.isFull(space)) {
      refuse(tooMany);
      throw new Error(tooMany.message);
    }
    (await beginCommit(upload, commit.digest ?? bodyDigest))(forward);
  };
  let come = 0;
  const isTooMuch = async (bytes: number): Promise<boolean> => {
    onPiece();
    come += bytes;
    const refusal = come > mostBytes(path) ? tooLarge : await capacity.take(space, bytes);
    if (refusal !== undefined) refuse(refusal);
    return refusal !== undefined;
  };
  const body = new UploadBody(isTooMuch, beforeEnd);
  body.once('error', () => {
    request.unpipe(body);
    forward.destroy();
  });
  forward.once('close', () => {
    request.unpipe(body);
    body.destroy();
    // Nothing else reads the rest of the body, and unread it would block the connection for the requests that follow.
    if (!request.complete) request.resume();
  });
  // Not `pipeline`: the registry may answer before the body ends, and the answer has to reach the client.
  request.pipe(body).pipe(forward);
}

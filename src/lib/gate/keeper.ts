// Requests of the user `keeper` to the registry's gate: what is stored, and what is to be removed. The controller sends them to the gate's Service, the
// CLI through the API server.

import type { Readable } from 'node:stream';
import {
  mostCounted,
  type BlobSize,
  type Collected,
  type CollectionRequest,
  type ReferenceCounts,
  type RepositoryContent,
  type RepositoryPage,
  type Swept,
} from '../api/gate-status.ts';
import { keeperUser, registryPassword } from '../api/registry-credentials.ts';
import { cutText } from '../api/text.ts';
import { defined } from '../defined.ts';
import { KfError, messageOf } from '../errors.ts';
import { basicAuthenticator, type Via } from '../oci/auth.ts';
import { readUpTo, type HttpSend } from '../oci/http.ts';

/** How long the credential of a cleanup is valid. */
const keeperSeconds = 3_600;
/** The most bytes that are read of an answer. A page of repositories has less than a megabyte. */
const mostAnswerBytes = 16 * 1024 * 1024;

export interface GateKeeper {
  /** A page of the repositories that follow `after`, or the first page. */
  list(signal: AbortSignal, after?: string): Promise<RepositoryPage>;
  remove(repository: string, signal: AbortSignal): Promise<void>;
  /** Removes from a repository what is neither kept nor used. Undefined when there is no such repository. */
  collect(repository: string, request: CollectionRequest, signal: AbortSignal): Promise<Collected | undefined>;
  /** All blobs of a repository; none when there is no such repository. */
  blobsOf(repository: string, signal: AbortSignal): Promise<BlobSize[]>;
  /** How many references of all repositories each of the digests has. */
  referenceCounts(digests: readonly string[], signal: AbortSignal): Promise<Map<string, number>>;
  /** Removes the blobs without a reference now. */
  sweep(signal: AbortSignal): Promise<Swept>;
}

/** @throws KfError `upload` when the answer ends early, as when the gate is ended meanwhile */
async function answerOf(body: Readable, question: string, signal: AbortSignal): Promise<string> {
  try {
    return (await readUpTo(body, mostAnswerBytes)).toString();
  } catch (error) {
    if (error instanceof KfError || signal.aborted) throw error;
    // Without its cause: the connection to the API server may be as before.
    throw new KfError('upload', `The registry's gate ended its answer to ${question} early: ${messageOf(error)}.`);
  }
}

function parsed<T>(text: string, question: string): T {
  try {
    return JSON.parse(text) as T;
  } catch (error) {
    throw new KfError('upload', `The registry's gate does not answer ${question} with JSON of at most ${mostAnswerBytes} bytes.`, {
      cause: error,
    });
  }
}

const longestReason = 300;

/** What the gate says of an error, as the end of a sentence; nothing when something else answered. */
function reasonIn(text: string): string {
  try {
    const [first] = (JSON.parse(text) as { errors?: { message?: unknown }[] }).errors ?? [];
    return typeof first?.message === 'string' ? `: ${cutText(first.message.replace(/^Error: /, ''), longestReason)}` : '';
  } catch {
    return '';
  }
}

/** @param send sends a request to the gate's push port, `via` the API server or directly */
export function gateKeeper(send: HttpSend, { key, nowSeconds, via }: { key: Buffer; nowSeconds: number; via: Via }): GateKeeper {
  const username = keeperUser(nowSeconds + keeperSeconds);
  const authenticator = basicAuthenticator({ username, password: registryPassword(key, username) }, via);
  const headers = authenticator.headers({ repository: '', actions: 'pull' });
  /** The answer, or undefined when the gate does not have the repository. */
  const ask = async <T>(method: string, path: string, signal: AbortSignal, body?: object): Promise<T | undefined> => {
    const sent = defined({ body: body === undefined ? undefined : JSON.stringify(body) });
    const response = await send({ method, path, headers, signal, ...sent });
    const text = await answerOf(response.body, `${method} ${path}`, signal);
    if (response.status === 404 && text.includes('NAME_UNKNOWN')) return undefined;
    if (response.status < 300) return text === '' ? undefined : parsed<T>(text, `${method} ${path}`);
    throw new KfError('upload', `The registry's gate answers ${method} ${path} with status ${response.status}${reasonIn(text)}.`, {
      ...(response.status === 404 ? { hints: ['kf setup'] } : {}),
      details: { status: response.status },
    });
  };
  const repositoryAt = (repository: string): string => `/kf/repositories/${repository}`;
  return {
    list: async (signal, after) =>
      (await ask('GET', `/kf/repositories${after === undefined ? '' : `?after=${after}`}`, signal)) ?? {
        now: nowSeconds,
        repositories: [],
      },
    remove: async (repository, signal) => {
      await ask('DELETE', repositoryAt(repository), signal);
    },
    collect: (repository, request, signal) => ask('POST', `${repositoryAt(repository)}/collection`, signal, request),
    blobsOf: async (repository, signal) => (await ask<RepositoryContent>('GET', repositoryAt(repository), signal))?.blobs ?? [],
    referenceCounts: async (digests, signal) => {
      const counts = new Map<string, number>();
      for (let at = 0; at < digests.length; at += mostCounted) {
        const part = { digests: digests.slice(at, at + mostCounted) };
        const answer = await ask<ReferenceCounts>('POST', '/kf/references', signal, part);
        for (const [digest, count] of Object.entries(answer?.counts ?? {})) counts.set(digest, count);
      }
      return counts;
    },
    sweep: async (signal) => (await ask<Swept>('POST', '/kf/sweep', signal)) ?? { blobs: 0, bytes: 0 },
  };
}

/**
 * All pages of {@link GateKeeper.list}, one after the other: the list of all repositories need not fit into memory.
 * @param after a repository: the pages begin with the next one
 */
export async function* repositoryPages(keeper: GateKeeper, signal: AbortSignal, after?: string): AsyncGenerator<RepositoryPage> {
  let last = after;
  do {
    const page = await keeper.list(signal, last);
    yield page;
    last = page.next;
  } while (last !== undefined);
}

// The gate's operations for the keeper: report its state and its contents, and remove what nothing refers to any more.

import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  leastUnusedSeconds,
  mostCounted,
  type CollectionRequest,
  type GateStatus,
  type ReferenceRequest,
  type RepositoryPage,
} from '../../lib/api/gate-status.ts';
import { registryKeyId } from '../../lib/api/registry-credentials.ts';
import { readUpTo } from '../../lib/oci/http.ts';
import type { Capacity } from './capacity.ts';
import { blobsOf, collect } from './collection.ts';
import type { Housekeeping } from './housekeeping.ts';
import { hexDigest } from './repository.ts';
import type { RepositoryUse } from './repository-use.ts';
import type { ImageStore } from './store.ts';

export interface KeeperOptions {
  readKeys: () => readonly Buffer[];
  store: ImageStore;
  capacity: Capacity;
  use: RepositoryUse;
  housekeeping: Housekeeping;
}

interface Said {
  status: number;
  body?: object;
}

interface Question {
  /** Method, and path with query. */
  text: string;
  body: () => Promise<unknown>;
}

const part = '([a-z0-9][a-z0-9._-]*)';
/** `after` names the repository after which a page begins. */
const listPattern = new RegExp(`^GET /kf/repositories(?:\\?after=(${part}/${part}))?$`);
const repositoryPattern = new RegExp(`^(GET|DELETE) /kf/repositories/${part}/${part}$`);
const collectionPattern = new RegExp(`^POST /kf/repositories/${part}/${part}/collection$`);
/** With names of at most 320 characters a page has less than a megabyte. */
const pageSize = 1_000;
const mostBodyBytes = 1024 * 1024;
const problem = (status: number, code: string, message: string): Said => ({ status, body: { errors: [{ code, message }] } });
const unknownRepository = problem(404, 'NAME_UNKNOWN', 'there is no such repository');
const badBody = problem(400, 'UNSUPPORTED', 'not a body that the gate understands');

const nowSeconds = (): number => Math.floor(Date.now() / 1000);

async function statusOf({ readKeys, capacity }: KeeperOptions): Promise<GateStatus> {
  return { now: nowSeconds(), keys: readKeys().map(registryKeyId), room: await capacity.status() };
}

async function pageOf(store: ImageStore, after?: string): Promise<RepositoryPage> {
  const now = nowSeconds();
  const repositories: string[] = [];
  for await (const repository of store.repositories(after)) if (repositories.push(repository) > pageSize) break;
  if (repositories.length <= pageSize) return { now, repositories };
  repositories.pop();
  return { now, repositories, next: repositories.at(-1) ?? '' };
}

const isTexts = (value: unknown): value is string[] => Array.isArray(value) && value.every((one) => typeof one === 'string');

function isCollection(body: unknown): body is CollectionRequest {
  const { keep, unusedSince } = (body ?? {}) as Partial<Record<keyof CollectionRequest, unknown>>;
  return isTexts(keep) && typeof unusedSince === 'number' && unusedSince <= Date.now() / 1000 - leastUnusedSeconds;
}

async function collection({ store, use, capacity, housekeeping }: KeeperOptions, name: string, body: unknown): Promise<Said> {
  if (!isCollection(body)) return badBody;
  const used: Said = { status: 200, body: { manifests: 0, layers: 0, isUsed: true } };
  const repository = store.repository(name);
  const run = async () => {
    // The config of an image may have been uploaded long before its layer, and nothing refers to it before both are there.
    if (await repository.hasUploads()) return undefined;
    return collect(repository, body, Date.now());
  };
  const collected = body.dryRun === true && !use.isUsed(name) ? await run() : await use.alone(name, run);
  if (collected === undefined) return used;
  if (body.dryRun !== true && collected.manifests + collected.layers > 0) {
    capacity.forget();
    housekeeping.sweepSoon();
  }
  return { status: 200, body: collected };
}

async function references(store: ImageStore, body: unknown): Promise<Said> {
  const digests: unknown = (body as Partial<ReferenceRequest> | null)?.digests;
  if (!isTexts(digests) || digests.length > mostCounted || !digests.every((digest) => hexDigest.test(digest))) return badBody;
  return { status: 200, body: { counts: Object.fromEntries(await store.referenceCounts(digests)) } };
}

async function ofRepository({ store, housekeeping }: KeeperOptions, method: string, space: string, name: string): Promise<Said> {
  if (!(await store.hasRepository(space, name))) return unknownRepository;
  if (method === 'GET') return { status: 200, body: { blobs: await blobsOf(store.repository(`${space}/${name}`)) } };
  await store.removeRepository(space, name);
  housekeeping.sweepSoon();
  return { status: 204 };
}

async function answer(options: KeeperOptions, { text, body }: Question): Promise<Said> {
  if (text === 'GET /kf/status') return { status: 200, body: await statusOf(options) };
  if (text === 'POST /kf/sweep') return { status: 200, body: await options.housekeeping.sweepNow() };
  if (text === 'POST /kf/references') return references(options.store, await body());
  const page = listPattern.exec(text);
  if (page !== null) return { status: 200, body: await pageOf(options.store, page[1]) };
  const [, method, space, name] = repositoryPattern.exec(text) ?? [];
  if (method !== undefined && space !== undefined && name !== undefined) return ofRepository(options, method, space, name);
  const [, inSpace, toCollect] = collectionPattern.exec(text) ?? [];
  if (inSpace === undefined || toCollect === undefined) return problem(404, 'UNSUPPORTED', 'not a question that the gate answers');
  if (!(await options.store.hasRepository(inSpace, toCollect))) return unknownRepository;
  return collection(options, `${inSpace}/${toCollect}`, await body());
}

async function jsonOf(request: IncomingMessage): Promise<unknown> {
  const text = (await readUpTo(request, mostBodyBytes)).toString();
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Answers requests whose credential is known to be a keeper's. */
export function createKeeper(options: KeeperOptions): (request: IncomingMessage, response: ServerResponse) => void {
  return (request, response) => {
    answer(options, { text: `${request.method ?? ''} ${request.url ?? ''}`, body: () => jsonOf(request) })
      .catch((error: unknown) => problem(500, 'UNKNOWN', String(error)))
      .then(({ status, body }) => {
        request.resume();
        response.writeHead(status, { 'content-type': 'application/json' }).end(body === undefined ? undefined : JSON.stringify(body));
      })
      .catch(() => response.destroy());
  };
}

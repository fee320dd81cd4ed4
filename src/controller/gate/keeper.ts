// The gate's operations for the keeper: report its state and its contents, and remove the remains of deleted apps.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { GateStatus, RepositoryPage } from '../../lib/api/gate-status.ts';
import { registryKeyId } from '../../lib/api/registry-credentials.ts';
import type { Capacity } from './capacity.ts';
import type { ImageStore } from './store.ts';

export interface KeeperOptions {
  readKeys: () => readonly Buffer[];
  store: ImageStore;
  capacity: Capacity;
  /** Called after a repository was removed. */
  onRemoved: () => void;
}

interface Said {
  status: number;
  body?: object;
}

const repositoryPath = /^\/kf\/repositories\/([a-z0-9][a-z0-9._-]*)\/([a-z0-9][a-z0-9._-]*)$/;
/** `after` names the repository after which a page begins. */
const listPath = /^\/kf\/repositories(?:\?after=([a-z0-9][a-z0-9._-]*\/[a-z0-9][a-z0-9._-]*))?$/;
/** With names of at most 320 characters a page has less than a megabyte. */
const pageSize = 1_000;
const problem = (status: number, code: string, message: string): Said => ({ status, body: { errors: [{ code, message }] } });

async function statusOf({ readKeys, capacity }: KeeperOptions): Promise<GateStatus> {
  return { now: Math.floor(Date.now() / 1000), keys: readKeys().map(registryKeyId), room: await capacity.status() };
}

async function pageOf(store: ImageStore, after?: string): Promise<RepositoryPage> {
  const repositories: string[] = [];
  for await (const repository of store.repositories(after)) if (repositories.push(repository) > pageSize) break;
  if (repositories.length <= pageSize) return { repositories };
  repositories.pop();
  return { repositories, next: repositories.at(-1) ?? '' };
}

async function answer(options: KeeperOptions, method: string, url: string): Promise<Said> {
  if (method === 'GET' && url === '/kf/status') return { status: 200, body: await statusOf(options) };
  if (method === 'GET' && listPath.test(url)) return { status: 200, body: await pageOf(options.store, listPath.exec(url)?.[1]) };
  const [, space, name] = repositoryPath.exec(url) ?? [];
  if (method !== 'DELETE' || space === undefined || name === undefined)
    return problem(404, 'UNSUPPORTED', 'not a question that the gate answers');
  const removed = await options.store.removeRepository(space, name);
  if (removed) options.onRemoved();
  return removed ? { status: 204 } : problem(404, 'NAME_UNKNOWN', 'there is no such repository');
}

/** Answers requests whose credential is known to be a keeper's. */
export function createKeeper(options: KeeperOptions): (request: IncomingMessage, response: ServerResponse) => void {
  return (request, response) => {
    request.resume();
    answer(options, request.method ?? '', request.url ?? '')
      .catch((error: unknown) => problem(500, 'UNKNOWN', String(error)))
      .then(({ status, body }) => {
        response.writeHead(status, { 'content-type': 'application/json' }).end(body === undefined ? undefined : JSON.stringify(body));
      })
      .catch(() => response.destroy());
  };
}

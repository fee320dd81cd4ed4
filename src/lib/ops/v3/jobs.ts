// Deletions as jobs: a client that follows the Location of a 202 sees when the object is gone.

import { kinds } from '../../api/group.ts';
import { V3Error } from '../../v3/errors.ts';
import type { LinkTo } from '../../v3/resource.ts';
import type { Reader } from './reader.ts';
import { get, V3Answer, type Asked, type V3Route } from './request.ts';

type Deleted = 'app' | 'route' | 'space' | 'organization';

/** Whether the object still exists, also when it is being deleted. */
const exists: Record<Deleted, (reader: Reader, guid: string) => Promise<boolean>> = {
  app: async (reader, guid) => (await reader.findIfAny(kinds.app, guid)) !== undefined,
  route: async (reader, guid) => (await reader.findIfAny(kinds.route, guid)) !== undefined,
  space: async (reader, guid) => (await reader.spaceIfAny(guid)) !== undefined,
  organization: async ({ session: { cluster, root, signal } }, guid) => (await cluster.get(kinds.org, root, guid, signal)) !== undefined,
};

/** The answer of a deletion that was asked for. */
export function deletionOf(what: Deleted, guid: string, link: LinkTo): V3Answer {
  return new V3Answer(202, undefined, { location: link(`/v3/jobs/${what}.delete~${guid}`).href });
}

const isDeleted = (what: string): what is Deleted => Object.hasOwn(exists, what);

async function job({ reader, part, link, query }: Asked): Promise<unknown> {
  query.allow([], { isList: false });
  const [, what = '', guid = ''] = /^([a-z]+)\.delete~([-a-z0-9.]+)$/.exec(part('guid')) ?? [];
  if (!isDeleted(what)) throw new V3Error('not-found', 'Job not found');
  const self = `/v3/jobs/${part('guid')}`;
  const now = `${new Date().toISOString().slice(0, 19)}Z`;
  return {
    guid: part('guid'),
    created_at: now,
    updated_at: now,
    operation: `${what}.delete`,
    state: (await exists[what](reader, guid)) ? 'PROCESSING' : 'COMPLETE',
    errors: [],
    warnings: [],
    links: { self: link(self) },
  };
}

export const jobRoutes: readonly V3Route[] = [get('/v3/jobs/:guid', job)];

// Audit events of apps, as `kf events` shows them.

import { kinds } from '../../api/group.ts';
import { V3Error } from '../../v3/errors.ts';
import { presentEvent } from '../../v3/events.ts';
import { pageOf } from '../../v3/pages.ts';
import type { V3Resource } from '../../v3/resource.ts';
import { appEvents } from '../apps/events.ts';
import { get, type Asked, type V3Route } from './request.ts';

/** Only those of named apps: each app takes several requests. */
async function listEvents({ reader, query, link }: Asked): Promise<unknown> {
  query.allow(['target_guids', 'types', 'space_guids']);
  const targets = query.words('target_guids');
  if (targets === undefined) {
    throw new V3Error('bad-query', "The query parameter is invalid: kf curl needs 'target_guids' with the GUIDs of apps for audit events.");
  }
  const events: V3Resource[] = [];
  for (const guid of new Set(targets)) {
    const app = await reader.findIfAny(kinds.app, guid);
    if (app === undefined || !query.matches('space_guids', app.metadata.namespace)) continue;
    const session = await reader.at(app);
    events.push(...(await appEvents(session, app)).map((event) => presentEvent(app, event, session.org.guid)));
  }
  return pageOf(
    events.filter(({ type }) => query.matches('types', String(type))),
    query,
    link,
  );
}

export const eventRoutes: readonly V3Route[] = [get('/v3/audit_events', listEvents)];

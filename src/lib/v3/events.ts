// Audit events.

import { namespacedUuid } from '../api/names.ts';
import type { Stored } from '../api/object.ts';
import type { AppEvent } from '../api/results.ts';
import type { CFApp } from '../api/types.generated.ts';
import type { V3Resource } from './resource.ts';

/** Not what a user did: what instances do, and what the controller and Kubernetes report. */
const isOfPlatform = (type: string): boolean =>
  /^(kubernetes\.|app\.crash$|audit\.app\.process\.(ready|not-ready|rescheduling)$)/.test(type);

/** An event of an app. It has no object of its own, so its GUID is computed from what it says. @param org the GUID of the app's org */
export function presentEvent(app: Stored<CFApp>, { time, type, actor, description }: AppEvent, org: string): V3Resource {
  const { name, namespace } = app.metadata;
  return {
    guid: namespacedUuid(name, time, type, actor, description),
    created_at: time,
    updated_at: time,
    type,
    actor: { guid: actor, type: isOfPlatform(type) ? 'process' : 'user', name: actor },
    target: { guid: name, type: 'app', name: app.spec.displayName },
    data: { description },
    space: { guid: namespace },
    organization: { guid: org },
    links: {},
  };
}

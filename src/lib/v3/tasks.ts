// Tasks.

import type { Stored } from '../api/object.ts';
import type { TaskDetails } from '../api/results.ts';
import type { CFTask } from '../api/types.generated.ts';
import { identityOf, metadataOf, toOne, type LinkTo, type V3Resource } from './resource.ts';

/** @param details the same task as commands show it */
export function presentTask(task: Stored<CFTask>, details: TaskDetails, link: LinkTo): V3Resource {
  const app = task.spec.appRef?.name ?? '';
  const self = `/v3/tasks/${task.metadata.name}`;
  return {
    ...identityOf(task),
    sequence_id: details.id ?? null,
    name: details.name,
    command: details.command ?? '',
    state: details.state,
    memory_in_mb: details.memoryMB ?? task.spec.memoryMB ?? null,
    disk_in_mb: details.diskMB ?? task.spec.diskMB ?? null,
    log_rate_limit_in_bytes_per_second: -1,
    result: { failure_reason: details.failureReason ?? null },
    droplet_guid: task.status?.dropletRef?.name ?? null,
    relationships: { app: toOne(app) },
    metadata: metadataOf(task),
    links: { self: link(self), app: link(`/v3/apps/${app}`), cancel: link(`${self}/actions/cancel`, 'POST') },
  };
}

// Revisions of apps.

import type { Stored } from '../api/object.ts';
import type { RevisionSummary } from '../api/results.ts';
import type { RevisionSettings } from '../api/revisions.ts';
import type { CFApp, Sidecar } from '../api/types.generated.ts';
import { toOne, type LinkTo, type V3Resource } from './resource.ts';

function sidecarsIn(text: string): Sidecar[] {
  try {
    return JSON.parse(text) as Sidecar[];
  } catch {
    return [];
  }
}

/** The API has each sidecar once, with all its process types. */
function presentSidecars(sidecars: Readonly<Record<string, string>>): Record<string, unknown>[] {
  const found = new Map<string, { name: string; command: string; process_types: string[]; memory_in_mb: number | null }>();
  for (const [type, text] of Object.entries(sidecars)) {
    for (const { name, command, memoryMB } of sidecarsIn(text)) {
      const key = JSON.stringify([name, command, memoryMB]);
      const known = found.get(key);
      if (known === undefined) found.set(key, { name, command, process_types: [type], memory_in_mb: memoryMB ?? null });
      else known.process_types.push(type);
    }
  }
  return [...found.values()];
}

/** @param settings undefined when they are not kept any more, or the caller may not read them */
export function presentRevision(
  app: Stored<CFApp>,
  { guid, version, description, droplet, created, deployable }: RevisionSummary,
  settings: RevisionSettings | undefined,
  link: LinkTo,
): V3Resource {
  const self = `/v3/revisions/${guid}`;
  const commands = Object.entries(settings?.commands ?? {});
  return {
    guid,
    created_at: created,
    updated_at: created,
    version,
    droplet: { guid: droplet },
    // An empty command is the detected one, which the API leaves out.
    processes: Object.fromEntries(commands.map(([type, command]) => [type, { command: command === '' ? null : command }])),
    sidecars: presentSidecars(settings?.sidecars ?? {}),
    description,
    deployable,
    relationships: { app: toOne(app.metadata.name) },
    metadata: { labels: {}, annotations: {} },
    links: {
      self: link(self),
      app: link(`/v3/apps/${app.metadata.name}`),
      environment_variables: link(`${self}/environment_variables`),
    },
  };
}

/** The variables that the app had in a revision. */
export function presentRevisionVariables(
  app: Stored<CFApp>,
  guid: string,
  variables: Readonly<Record<string, string>>,
  link: LinkTo,
): Record<string, unknown> {
  const revision = `/v3/revisions/${guid}`;
  return {
    var: variables,
    links: { self: link(`${revision}/environment_variables`), revision: link(revision), app: link(`/v3/apps/${app.metadata.name}`) },
  };
}

// Droplets of an app: list them, find one, make one the app's own. A droplet is a build that succeeded.

import { annotations, kinds, labels } from '../../api/group.ts';
import { heldUntilRestart } from '../../api/held.ts';
import type { Stored } from '../../api/object.ts';
import { waitingMark } from '../../api/packages.ts';
import type { DropletSummary } from '../../api/results.ts';
import type { CFApp, CFBuild } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import type { SpaceSession } from '../../session/session.ts';
import { changeApp } from './changes.ts';

const currentOf = ({ spec }: CFApp): string => spec.currentDropletRef?.name ?? '';

const isDropletOf = (app: Stored<CFApp>, { spec, status, metadata }: Stored<CFBuild>): boolean =>
  status?.state === 'STAGED' && spec.appRef.name === app.metadata.name && metadata.deletionTimestamp === undefined;

/** A droplet as commands show it. */
export function dropletSummary(app: CFApp, { metadata, spec }: Stored<CFBuild>): DropletSummary {
  const guid = metadata.name;
  return {
    guid,
    state: 'staged',
    created: metadata.creationTimestamp ?? '',
    current: guid === currentOf(app),
    package: spec.packageRef.name,
  };
}

const newestFirst = (a: Stored<CFBuild>, b: Stored<CFBuild>): number =>
  (b.metadata.creationTimestamp ?? '').localeCompare(a.metadata.creationTimestamp ?? '') || b.metadata.name.localeCompare(a.metadata.name);

/** The droplets of the app, newest first. */
export async function listDroplets({ cluster, space, signal }: SpaceSession, app: Stored<CFApp>): Promise<DropletSummary[]> {
  const { items } = await cluster.list(kinds.build, { ns: space.guid, labelSelector: `${labels.appGuid}=${app.metadata.name}`, signal });
  return items
    .filter((build) => isDropletOf(app, build))
    .toSorted(newestFirst)
    .map((build) => dropletSummary(app, build));
}

/** A droplet of the app; undefined when it has none with this GUID. */
export async function findDroplet(
  { cluster, space, signal }: SpaceSession,
  app: Stored<CFApp>,
  guid: string,
): Promise<Stored<CFBuild> | undefined> {
  const build = guid === '' || guid.includes('/') ? undefined : await cluster.get(kinds.build, space.guid, guid, signal);
  return build !== undefined && isDropletOf(app, build) ? build : undefined;
}

/**
 * Makes the droplet the app's own. What runs stays as it is until the app is started again.
 *
 * @param options.keepsWaiting true: another package that waits for its first build goes on waiting. Otherwise this droplet was chosen in its place
 * @throws KfError `not-found` when the app has no such droplet
 */
export async function setDroplet(
  session: SpaceSession,
  app: Stored<CFApp>,
  guid: string,
  { keepsWaiting = false }: { keepsWaiting?: boolean } = {},
): Promise<DropletSummary> {
  const build = await findDroplet(session, app, guid);
  if (build === undefined) {
    const why = 'Unable to assign current droplet. Ensure the droplet exists and belongs to this app.';
    throw new KfError('not-found', `Unable to assign droplet: ${why}`, { hints: [`${session.bin} droplets ${app.spec.displayName}`] });
  }
  const changed = await changeApp(session, app, (current) =>
    currentOf(current) === guid
      ? undefined
      : {
          spec: { currentDropletRef: { name: guid } },
          annotations: {
            ...heldUntilRestart(current),
            [annotations.unstaged]: keepsWaiting ? waitingMark(current, { built: build.spec.packageRef.name, droplet: guid }) : null,
          },
        },
  );
  return dropletSummary(changed, build);
}

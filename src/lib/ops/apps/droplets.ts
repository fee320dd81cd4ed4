// Droplets of an app: list them, find one, make one the app's own. A droplet is a build that succeeded.

import { annotations, kinds, labels, reasons } from '../../api/group.ts';
import { heldUntilRestart } from '../../api/held.ts';
import type { Stored } from '../../api/object.ts';
import { waitingMark } from '../../api/packages.ts';
import type { DropletSummary } from '../../api/results.ts';
import type { CFApp, CFBuild } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import type { SpaceSession } from '../../session/session.ts';
import { waitForController } from '../controller-wait.ts';
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

/** What a change waits for until the app gets another droplet. */
const waitsForDroplet: ReadonlySet<string> = new Set([reasons.dropletNotAssigned, reasons.cannotResolveDroplet]);

/** Another droplet no longer becomes part of the last change of a started app: each process has the version of that change, or the change has failed. */
function isTakenUp({ spec, status, metadata }: Stored<CFApp>): boolean {
  const deployId = metadata.annotations?.[annotations.deployId];
  if (spec.desiredState !== 'STARTED' || deployId === undefined) return true;
  const { id, phase, reason = '', generations = [] } = status?.deployment ?? {};
  if (id !== deployId) return false;
  if (phase !== 'Pending' || waitsForDroplet.has(reason)) return true;
  // Until its processes have looked at the change, the app's status lists what they had before.
  const ready = new Set(generations.filter(({ state }) => state !== 'Old').map(({ process }) => process));
  return reason !== 'Reconciling' && generations.length > 0 && generations.every(({ process }) => ready.has(process));
}

function notTakenUp({ bin }: SpaceSession, { spec: { displayName } }: Stored<CFApp>): KfError {
  const message = `App '${displayName}' is being changed, and the controller has not taken this up yet: the droplet would become part of it.`;
  return new KfError('conflict', message, { hints: [`${bin} why ${displayName}`, `${bin} stop ${displayName}`] });
}

/** The app when its last change has its version; without a controller, the wait ends with {@link notTakenUp}. */
async function untilTakenUp(session: SpaceSession, app: Stored<CFApp>): Promise<Stored<CFApp>> {
  const late = (last: Stored<CFApp>): KfError => notTakenUp(session, last);
  const awaited = { type: kinds.app, object: app, what: `App '${app.spec.displayName}'`, late };
  return waitForController(session, awaited, isTakenUp, () => ({ type: 'awaiting-controller' }));
}

/**
 * Makes the droplet the app's own. What runs stays as it is until the app is started again, and what is being started is not changed.
 *
 * @param options.keepsWaiting true: another package that waits for its first build goes on waiting. Otherwise this droplet was chosen in its place
 * @param options.replacesChange true: the caller makes another change of the app at once, whatever becomes of the last one
 * @throws KfError `not-found` when the app has no such droplet, `conflict` while no controller has taken up the app's last change
 */
export async function setDroplet(
  session: SpaceSession,
  app: Stored<CFApp>,
  guid: string,
  { keepsWaiting = false, replacesChange = false }: { keepsWaiting?: boolean; replacesChange?: boolean } = {},
): Promise<DropletSummary> {
  const build = await findDroplet(session, app, guid);
  if (build === undefined) {
    const why = 'Unable to assign current droplet. Ensure the droplet exists and belongs to this app.';
    throw new KfError('not-found', `Unable to assign droplet: ${why}`, { hints: [`${session.bin} droplets ${app.spec.displayName}`] });
  }
  const mayChange = (current: Stored<CFApp>): boolean => replacesChange || isTakenUp(current);
  const ready = currentOf(app) === guid || mayChange(app) ? app : await untilTakenUp(session, app);
  const changed = await changeApp(session, ready, (current) => {
    if (currentOf(current) === guid) return undefined;
    if (!mayChange(current)) throw notTakenUp(session, current);
    return {
      spec: { currentDropletRef: { name: guid } },
      annotations: {
        ...heldUntilRestart(current),
        [annotations.unstaged]: keepsWaiting ? waitingMark(current, { built: build.spec.packageRef.name, droplet: guid }) : null,
      },
    };
  });
  return dropletSummary(changed, build);
}

// `kf rebuild`: builds the apps again whose droplets the registry has lost, from the sources that it still has: that of the droplet, or the one that a
// restage builds. What has no source any more can only be pushed again, so it is named.

import { kinds } from '../../api/group.ts';
import type { KfInfo } from '../../api/kf-info.ts';
import type { Stored } from '../../api/object.ts';
import { packagesOf, packageToBuild } from '../../api/packages.ts';
import type { CFApp, CFPackage } from '../../api/types.generated.ts';
import { KfError, messageOf } from '../../errors.ts';
import { KubeError } from '../../kube/errors.ts';
import { withParts } from '../../session/overlay.ts';
import type { Session, SpaceSession } from '../../session/session.ts';
import { findDroplet, setDroplet } from './droplets.ts';
import { waitUntilServing } from './lifecycle.ts';
import { ownPackages } from './packages.ts';
import { stageAndStart, stageOnly } from './staging.ts';
import { hasNoRegistry, withNamedRegistry } from '../registry/access.ts';
import { findLost } from '../registry/stored.ts';

/** An app whose droplet is lost. */
export interface LostApp {
  app: string;
  guid: string;
  org: string;
  space: string;
  /** The image that the registry does not have, by digest. */
  image: string;
  /** `buildable`: only with `--dry-run`; `push`: its source is lost too. */
  state: 'buildable' | 'rebuilt' | 'push' | 'failed';
  /** Why it failed. */
  message?: string;
}

/** A space whose apps could not be looked for. */
export interface LeftOutSpace {
  org: string;
  space: string;
  /** Its namespace. */
  guid: string;
  message: string;
}

export interface RebuildResult {
  dryRun: boolean;
  /** Apps whose droplet the registry has. */
  intact: number;
  lost: LostApp[];
  /** The apps of these are in neither of them. */
  leftOut: LeftOutSpace[];
}

const askAgain = 'Ask again when it answers.';

interface Place {
  session: SpaceSession;
  info: KfInfo;
}

/** A session for each space, by org and name. */
async function spacesOf(session: Session): Promise<SpaceSession[]> {
  const { cluster, root, signal } = session;
  const [orgs, spaces] = await Promise.all([cluster.list(kinds.org, { ns: root, signal }), cluster.list(kinds.space, { signal })]);
  const names = new Map(orgs.items.map(({ metadata, spec }) => [metadata.name, spec.displayName]));
  return spaces.items
    .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    .map(({ metadata, spec }) =>
      withParts(session, {
        org: { name: names.get(metadata.namespace) ?? metadata.namespace, guid: metadata.namespace },
        space: { name: spec.displayName, guid: metadata.name },
      }),
    )
    .toSorted((a, b) => a.org.name.localeCompare(b.org.name) || a.space.name.localeCompare(b.space.name));
}

interface FoundApp {
  app: Stored<CFApp>;
  image: string;
  /** Name of the package from which the droplet was built. */
  builtFrom: string;
}

/** The apps of a space that have a droplet. */
async function appsWithDroplet({ cluster, space, signal }: SpaceSession): Promise<FoundApp[]> {
  const own = { ns: space.guid, signal };
  const [apps, builds] = await Promise.all([cluster.list(kinds.app, own), cluster.list(kinds.build, own)]);
  const byName = new Map(builds.items.map((build) => [build.metadata.name, build]));
  return apps.items.flatMap((app) => {
    const build = byName.get(app.spec.currentDropletRef?.name ?? '');
    const image = build?.status?.droplet?.registry.image;
    if (build === undefined || image === undefined || app.metadata.deletionTimestamp !== undefined) return [];
    return [{ app, image, builtFrom: build.spec.packageRef.name }];
  });
}

/**
 * Those of the apps whose droplet is lost. What cannot be said of one space is its own affair: its members write its Secret for the registry and its
 * images, and must not keep the others from theirs.
 * @returns why it cannot be said, as text
 * @throws KfError when the registry does not answer, or the user may not read the space
 */
async function lostIn(session: SpaceSession, info: KfInfo, found: readonly FoundApp[]): Promise<FoundApp[] | string> {
  const images = found.map(({ image }) => image);
  const look = async (): Promise<Set<string> | string> => {
    try {
      return await findLost(session, info, images, { inside: true });
    } catch (error) {
      const isOfSpace = error instanceof KfError && !(error instanceof KubeError) && !hasNoRegistry(error);
      if (session.signal.aborted || !isOfSpace) throw error;
      return messageOf(error);
    }
  };
  const gone = await withNamedRegistry(info, look, askAgain);
  return typeof gone === 'string' ? gone : found.filter(({ image }) => gone.has(image));
}

/** The package to build: that of the lost droplet, or the one that a restage builds. Undefined when the registry has neither. */
async function sourceOf({ session, info }: Place, { app, builtFrom }: FoundApp): Promise<Stored<CFPackage> | undefined> {
  const packages = packagesOf(app, await ownPackages(session, app));
  const sources = new Set([packages.find(({ metadata }) => metadata.name === builtFrom), packageToBuild(app, packages)]);
  for (const source of sources) {
    const image = source?.spec.source?.registry.image;
    if (image === undefined) continue;
    if ((await withNamedRegistry(info, () => findLost(session, info, [image], { inside: true }), askAgain)).size === 0) return source;
  }
  return undefined;
}

/** Builds the app's droplet again. An app that runs changes to it; one that is stopped stays so. A package that waits for a start goes on waiting. */
async function rebuild(session: SpaceSession, { app, builtFrom }: FoundApp, source: string): Promise<void> {
  const isSame = source === builtFrom;
  if (app.spec.desiredState === 'STARTED') {
    const staged = await stageAndStart(session, app, { again: true, ...(isSame ? { packageGuid: source } : {}) });
    await waitUntilServing(session, staged.app, staged.deployId);
    return;
  }
  const { guid } = await stageOnly(session, app, source);
  if ((await findDroplet(session, app, guid)) !== undefined) await setDroplet(session, app, guid, { keepsWaiting: isSame });
}

async function outcomeOf(place: Place, found: FoundApp, dryRun: boolean): Promise<Pick<LostApp, 'state' | 'message'>> {
  try {
    const source = await sourceOf(place, found);
    if (source === undefined) return { state: 'push' };
    if (dryRun) return { state: 'buildable' };
    await rebuild(place.session, found, source.metadata.name);
    return { state: 'rebuilt' };
  } catch (error) {
    // The others are looked at all the same.
    if (place.session.signal.aborted || !(error instanceof KfError)) throw error;
    return { state: 'failed', message: messageOf(error) };
  }
}

/** The app as it is now: the builds before it take their time. Undefined when it is gone, or has another droplet. */
async function unlessChanged({ cluster, space, signal }: SpaceSession, app: Stored<CFApp>): Promise<Stored<CFApp> | undefined> {
  const present = await cluster.get(kinds.app, space.guid, app.metadata.name, signal);
  return present?.spec.currentDropletRef?.name === app.spec.currentDropletRef?.name ? present : undefined;
}

/**
 * Looks in all spaces for apps whose droplet the registry does not have, and then builds those whose source it has, one after the other.
 * @throws KfError when the registry does not answer, or the user may not read all spaces
 */
export async function rebuildLost(session: Session, { dryRun }: { dryRun: boolean }): Promise<RebuildResult> {
  const info = await session.info();
  const result: RebuildResult = { dryRun, intact: 0, lost: [], leftOut: [] };
  session.report({ type: 'awaiting', what: 'the registry to name what it has lost' });
  const lost: (FoundApp & { inSpace: SpaceSession })[] = [];
  for (const inSpace of await spacesOf(session)) {
    const found = await appsWithDroplet(inSpace);
    const ofSpace = await lostIn(inSpace, info, found);
    if (typeof ofSpace === 'string') {
      const { org, space } = inSpace;
      result.leftOut.push({ org: org.name, space: space.name, guid: space.guid, message: ofSpace });
      session.report({
        type: 'warning',
        message: `Space '${org.name}/${space.name}' (namespace '${space.guid}') is left out: ${ofSpace}`,
      });
      continue;
    }
    result.intact += found.length - ofSpace.length;
    lost.push(...ofSpace.map((one) => ({ ...one, inSpace })));
  }
  for (const { app, image, builtFrom, inSpace } of lost) {
    const { displayName: name } = app.spec;
    const place = { org: inSpace.org.name, space: inSpace.space.name };
    const present = await unlessChanged(inSpace, app);
    if (present === undefined) continue;
    if (!dryRun) session.report({ type: 'awaiting', what: `app '${name}' of ${place.org}/${place.space} to be built again` });
    const outcome = await outcomeOf({ session: inSpace, info }, { app: present, image, builtFrom }, dryRun);
    result.lost.push({ app: name, guid: app.metadata.name, ...place, image, ...outcome });
  }
  session.report({ type: 'done' });
  return result;
}

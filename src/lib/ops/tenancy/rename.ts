// rename-org, rename-space: the controller claims the new name. A name that turns out to be taken is given back.

import { currentCondition, isReady } from '../../api/conditions.ts';
import { annotations, kinds } from '../../api/group.ts';
import type { ResourceType, Stored } from '../../api/object.ts';
import type { CFOrg, CFSpace } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import { patchAsRead } from '../../kube/patch-as-read.ts';
import { findOrg, findSpace, readOrgs, readSpaces } from '../../session/places.ts';
import type { OrgSession, Session } from '../../session/session.ts';
import type { NameAndGuid } from '../../session/state.ts';
import { waitForController } from '../controller-wait.ts';
import { renamedAgain } from '../renamed-again.ts';
import { awaitedOf, notReady } from './orgs-and-spaces.ts';
import { changeTargetOf } from './target.ts';

type Place = CFOrg | CFSpace;

interface Renaming<T extends Place> {
  type: ResourceType<T>;
  what: 'org' | 'space';
  place: NameAndGuid;
  /** All places among which the name must be unique. */
  siblings: readonly Stored<T>[];
  to: string;
  /** A name that is taken: cf's sentence, and the command that lists the names. */
  taken: KfError;
}

const takenError = ({ bin }: Session, name: string, sentence: string, list: string): KfError =>
  new KfError('conflict', sentence, { hints: [`${bin} ${list}`], details: { name } });

/** The org and space of setup keep their names: kf-info has them, and the next setup would create them again. */
async function assertNotOfSetup(session: Session, { guid, name }: NameAndGuid, what: 'org' | 'space'): Promise<void> {
  const { defaults } = await session.info();
  if (defaults?.[what].guid !== guid) return;
  throw new KfError(
    'conflict',
    `The ${what} '${name}' is the default ${what} of this installation, and the next setup would create it again.`,
    {
      hints: [`${session.bin} create-${what} NAME`],
    },
  );
}

async function rename<T extends Place>(session: Session, { type, what, place, siblings, to, taken }: Renaming<T>): Promise<void> {
  const isOther = ({ metadata, spec }: Stored<T>): boolean =>
    metadata.name !== place.guid && metadata.deletionTimestamp === undefined && spec.displayName.toLowerCase() === to.toLowerCase();
  if (siblings.some(isOther)) throw taken;
  const object = siblings.find(({ metadata }) => metadata.name === place.guid);
  const { cluster, signal } = session;
  const changedBy = await session.changedBy();
  const marks = { [annotations.changedBy]: changedBy };
  const patch = { metadata: { uid: object?.metadata.uid, annotations: marks }, spec: { displayName: to } };
  const written = await cluster.mergePatch(type, object?.metadata.namespace, place.guid, patch, { signal });
  const isRefused = (seen: Stored<T>): boolean => currentCondition(seen, 'Claimed')?.status === 'False';
  const isJudged = (seen: Stored<T>): boolean => seen.spec.displayName !== to || isRefused(seen) || isReady(seen);
  const judged = await waitForController(session, { type, object: written, what: `'${to}'`, late: notReady }, isJudged, awaitedOf);
  const { displayName } = judged.spec;
  if (displayName !== to) throw renamedAgain(session.bin, what, what, displayName);
  if (!isRefused(judged)) return;
  // Somebody else took the name at the same moment: without this, the place would have a name by which nothing finds it.
  const gone = (): KfError => new KfError('not-found', `'${to}' was deleted meanwhile.`);
  const back = { metadata: { annotations: marks }, spec: { displayName: place.name } };
  await patchAsRead(cluster, { type, object: judged, gone }, (live) => (live.spec.displayName === to ? back : undefined), signal);
  throw taken;
}

/** @throws KfError `not-found`, or `conflict` when the name is taken or another command has set another one meanwhile */
export async function renameOrg(session: Session, from: string, to: string): Promise<NameAndGuid> {
  const place = await findOrg(session, from);
  if (from === to) return place;
  await assertNotOfSetup(session, place, 'org');
  const siblings = await readOrgs(session);
  const taken = takenError(session, to, `Organization '${to}' already exists.`, 'orgs');
  await rename(session, { type: kinds.org, what: 'org', place, siblings, to, taken });
  const renamed = { ...place, name: to };
  changeTargetOf(session, 'org', place.guid, (saved) => ({ ...saved, org: renamed }));
  return renamed;
}

/** @throws KfError `not-found`, or `conflict` when the name is taken or another command has set another one meanwhile */
export async function renameSpace(session: OrgSession, from: string, to: string): Promise<NameAndGuid> {
  const place = await findSpace(session, session.org, from);
  if (from === to) return place;
  await assertNotOfSetup(session, place, 'space');
  const siblings = await readSpaces(session, session.org);
  const taken = takenError(session, to, `Space '${to}' already exists. Name must be unique per organization.`, 'spaces');
  await rename(session, { type: kinds.space, what: 'space', place, siblings, to, taken });
  const renamed = { ...place, name: to };
  changeTargetOf(session, 'space', place.guid, (saved) => ({ ...saved, space: renamed }));
  return renamed;
}

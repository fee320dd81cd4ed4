// Changes of an app by one command: a merge patch on the object that was read, repeated after a conflict.

import { randomUUID } from 'node:crypto';
import { annotations, kinds } from '../../api/group.ts';
import type { Stored } from '../../api/object.ts';
import type { CFApp, CFAppSpec, CFProcess } from '../../api/types.generated.ts';
import type { RolloutPatch } from '../../api/rollout.ts';
import { defined } from '../../defined.ts';
import { KfError } from '../../errors.ts';
import { patchAsRead, type ObjectPatch } from '../../kube/patch-as-read.ts';
import type { SpaceSession } from '../../session/session.ts';

export interface AppChange {
  spec?: Partial<Omit<CFAppSpec, 'rollout'>> & { rollout?: RolloutPatch };
  /** null removes. */
  labels?: Record<string, string | null>;
  /** null removes. */
  annotations?: Record<string, string | null>;
}

/** The app was there when the command began. */
export function appGone({ spec: { displayName } }: Stored<CFApp>): KfError {
  return new KfError('not-found', `App '${displayName}' was deleted meanwhile.`, { hints: ['kf apps'] });
}

/** Patches the app as it was last seen. @param change computed again for each version; undefined: nothing to do */
export async function changeApp(
  session: SpaceSession,
  app: Stored<CFApp>,
  change: (app: Stored<CFApp>) => AppChange | undefined,
): Promise<Stored<CFApp>> {
  const changedBy = await session.changedBy();
  const patchFor = (live: Stored<CFApp>): ObjectPatch | undefined => {
    const wanted = change(live);
    if (wanted === undefined) return undefined;
    const { spec, labels } = wanted;
    const metadata = { ...defined({ labels }), annotations: { ...wanted.annotations, [annotations.changedBy]: changedBy } };
    return { metadata, ...defined({ spec }) };
  };
  const gone = (): KfError => appGone(app);
  return (await patchAsRead(session.cluster, { type: kinds.app, object: app, gone }, patchFor, session.signal)).object;
}

/** A new `kf/deploy-id`: the controller reports the change under it. */
export function newDeployId(): string {
  return randomUUID();
}

/** Patches a process; its uid is the precondition. @param marks annotations; null removes */
export async function changeProcess(
  session: SpaceSession,
  process: Stored<CFProcess>,
  spec: Record<string, unknown>,
  marks: Record<string, string | null> = {},
): Promise<Stored<CFProcess>> {
  const { cluster, space, signal } = session;
  const { uid, name } = process.metadata;
  const metadata = { uid, annotations: { ...marks, [annotations.changedBy]: await session.changedBy() } };
  return cluster.mergePatch(kinds.process, space.guid, name, { metadata, spec }, { signal });
}

/** Sets the number of instances. Not through the subresource `scale`, as autoscalers do: it cannot say who did it. */
export async function scaleProcess(session: SpaceSession, process: Stored<CFProcess>, instances: number): Promise<void> {
  await changeProcess(session, process, { desiredInstances: instances });
}

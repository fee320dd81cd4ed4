// Feature flags as the cluster has them (docs/decisions/0081). Policy kf-feature-flags enforces them.

import { annotations, kinds, labels } from '../../api/group.ts';
import { flagObjectName, timeLabel } from '../../api/names.ts';
import type { Stored } from '../../api/object.ts';
import type { CFFeatureFlag } from '../../api/types.generated.ts';
import {
  featureFlags,
  findFeatureFlag,
  flagWith,
  isChangeable,
  neverChanges,
  objectOfFlag,
  type FeatureFlag,
} from '../../cf/feature-flags.ts';
import { defined } from '../../defined.ts';
import { KfError } from '../../errors.ts';
import { isAlreadyExists, isMissingKind } from '../../kube/errors.ts';
import type { Session } from '../../session/session.ts';
import { buildFeatureFlag } from '../../../templates/tenancy.ts';

/** A flag, and its object if somebody has ever changed it. */
export interface KnownFlag {
  flag: FeatureFlag;
  object?: Stored<CFFeatureFlag>;
}

const known = (flag: FeatureFlag, object: Stored<CFFeatureFlag> | undefined): KnownFlag => ({
  flag: flagWith(flag, object),
  ...defined({ object }),
});

/** An installation of an earlier release has no such kind: its flags are as they always were. */
async function unlessMissing<T>(reading: Promise<T>, otherwise: T): Promise<T> {
  try {
    return await reading;
  } catch (error) {
    if (isMissingKind(error)) return otherwise;
    throw error;
  }
}

/** All flags, in the order of cf. */
export async function readFeatureFlags({ cluster, root: ns, signal }: Session): Promise<KnownFlag[]> {
  const { items } = await unlessMissing(cluster.list(kinds.featureFlag, { ns, signal }), { items: [], resourceVersion: '' });
  return featureFlags.map((flag) => known(flag, objectOfFlag(flag, items)));
}

/** @throws KfError `not-found` in cf's words */
export async function readFeatureFlag({ cluster, root, signal }: Session, name: string): Promise<KnownFlag> {
  const flag = findFeatureFlag(name);
  if (!isChangeable(flag)) return { flag };
  return known(flag, await unlessMissing(cluster.get(kinds.featureFlag, root, flagObjectName(name), signal), undefined));
}

/** What to make of a flag. */
export interface FlagChange {
  enabled: boolean;
  /** What a refusal says in place of the name of the flag; null: the name again. */
  errorMessage?: string | null;
}

const isSo = ({ flag, object }: KnownFlag, { enabled, errorMessage }: FlagChange): boolean =>
  flag.enabled === enabled && (errorMessage === undefined || (errorMessage ?? undefined) === object?.spec.errorMessage);

async function create(session: Session, name: string, { enabled, errorMessage }: FlagChange): Promise<Stored<CFFeatureFlag> | undefined> {
  const author = { changedBy: await session.changedBy(), now: new Date() };
  const wanted = buildFeatureFlag(name, session.root, { enabled, ...defined({ errorMessage: errorMessage ?? undefined }) }, author);
  try {
    return await session.cluster.create(kinds.featureFlag, wanted, { signal: session.signal });
  } catch (error) {
    if (isAlreadyExists(error)) return undefined;
    if (!isMissingKind(error)) throw error;
    throw new KfError(
      'conflict',
      'The installation in this cluster is of an earlier release of kf, in which no feature flag can be changed.',
      {
        hints: [`${session.bin} setup`],
        cause: error,
      },
    );
  }
}

/**
 * Changes a flag, unless it is so already.
 * @throws KfError `not-found` in cf's words, `usage` for a flag that nobody can change, `forbidden` for all but operators
 */
export async function setFeatureFlag(session: Session, name: string, change: FlagChange): Promise<KnownFlag> {
  const before = await readFeatureFlag(session, name);
  if (isSo(before, change)) return before;
  if (!isChangeable(before.flag)) throw neverChanges(before.flag);
  const created = before.object === undefined ? await create(session, name, change) : undefined;
  if (created !== undefined) return known(before.flag, created);
  const metadata = {
    labels: { [labels.updatedAt]: timeLabel(new Date()) },
    annotations: { [annotations.changedBy]: await session.changedBy() },
  };
  const { cluster, root, signal } = session;
  const object = await cluster.mergePatch(kinds.featureFlag, root, flagObjectName(name), { metadata, spec: change }, { signal });
  return known(before.flag, object);
}

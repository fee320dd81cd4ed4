// Checks before a task whether the space's quotas have enough left for it: one that is refused is not written.

import { webProcess } from '../../api/app.ts';
import { kinds, labels } from '../../api/group.ts';
import type { Stored } from '../../api/object.ts';
import type { CFApp } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import type { SpaceSession } from '../../session/session.ts';
import { appInstances, needsOfInstances, quotaRefusal, readQuotas, type Need } from '../apps/quota-left.ts';
import { megabyte } from '../../api/sizes.ts';

/** As the controller chooses it: 0 is no size. */
const firstSize = (...sizes: (number | undefined)[]): number => sizes.find((size) => size !== undefined && size > 0) ?? 0;

/** A task is no instance of its app: only the quotas of all pods count it. */
function needsOf(memoryMB: number, diskMB: number): Need[] {
  const needs = needsOfInstances(
    { memoryBytes: memoryMB * megabyte, diskBytes: diskMB * megabyte, instances: 1 },
    (size, kind) => `it takes ${size} of ${kind}`,
    () => 'it takes 1 more pod',
  );
  return needs.filter(({ names }) => !names.includes(appInstances));
}

export interface TaskSizes {
  memoryMB?: number | undefined;
  diskMB?: number | undefined;
  /** The type of the process whose sizes are taken where none are given. */
  process?: string | undefined;
}

/** @throws KfError `quota` when the quotas of the space have no room for a task of the app */
export async function assertTaskFits(
  session: SpaceSession,
  app: Stored<CFApp>,
  { memoryMB, diskMB, process: type = webProcess }: TaskSizes,
): Promise<void> {
  const { cluster, space, signal, bin } = session;
  const labelSelector = `${labels.appGuid}=${app.metadata.name}`;
  const [quotas, { items }] = await Promise.all([
    readQuotas(session),
    cluster.list(kinds.process, { ns: space.guid, labelSelector, signal }),
  ]);
  const process = items.find(({ spec }) => spec.processType === type)?.spec;
  const sizes = [firstSize(memoryMB, process?.memoryMB), firstSize(diskMB, process?.diskQuotaMB)] as const;
  const refused = quotaRefusal(quotas, needsOf(...sizes));
  if (refused === undefined) return;
  const { deciding, why } = refused;
  const quota = deciding === undefined ? [] : [`${bin} ${deciding.scope}-quota ${deciding.name}`];
  throw new KfError('quota', `A task of app '${app.spec.displayName}' does not fit into space '${space.name}': ${why}.`, {
    hints: [...quota, `${bin} apps`],
  });
}

// Checks before a scale whether the space's quotas have enough left for more instances: one that is refused changes nothing, as in cf.

import { instanceCountsOf } from '../../api/app.ts';
import type { Stored } from '../../api/object.ts';
import { counted, megabyte } from '../../api/sizes.ts';
import type { CFApp, CFProcess } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import type { SpaceSession } from '../../session/session.ts';
import {
  needsOfInstances,
  quotaRefusal,
  readQuotas,
  sizeOfProcess,
  sizeRefusal,
  type Need,
  type ProcessSize,
  type QuotaRefusal,
} from './quota-left.ts';

/** What more instances of a process take. */
function needsOf({ memoryMB, diskQuotaMB }: CFProcess['spec'], more: number): Need[] {
  const takes = (amount: string): string => `${counted(more, 'more instance')} ${more === 1 ? 'takes' : 'take'} ${amount}`;
  return needsOfInstances(
    { memoryBytes: more * memoryMB * megabyte, diskBytes: more * diskQuotaMB * megabyte, instances: more },
    (size, kind) => takes(`${size} of ${kind}`),
    (count, kind) => takes(counted(count, kind)),
  );
}

function cannotHave({ space, bin }: SpaceSession, { displayName }: CFApp['spec'], what: string, { deciding, why }: QuotaRefusal): KfError {
  const quota = deciding === undefined ? [] : [`${bin} ${deciding.scope}-quota ${deciding.name}`];
  return new KfError('quota', `App '${displayName}' cannot have ${what} in space '${space.name}': ${why}.`, {
    hints: [...quota, `${bin} apps`],
  });
}

/** @throws KfError `quota` when a quota of the space has less in all than so many instances of this size take, and the process becomes larger */
export async function assertSizeFits(
  session: SpaceSession,
  app: Stored<CFApp>,
  process: Stored<CFProcess>,
  after: ProcessSize,
): Promise<void> {
  if (app.spec.desiredState !== 'STARTED' || after.instances === 0) return;
  const { processType } = process.spec;
  const refused = sizeRefusal(await readQuotas(session), processType, { before: sizeOfProcess(process), after });
  if (refused === undefined) return;
  const what = refused.instances === 1 ? 'an instance' : counted(refused.instances, 'instance');
  throw cannotHave(session, app.spec, `${what} of '${processType}' of this size`, refused);
}

/** @throws KfError `quota` when the quotas of the space have no room for so many instances of a started app */
export async function assertScaleFits(
  session: SpaceSession,
  app: Stored<CFApp>,
  process: Stored<CFProcess>,
  wanted: number,
): Promise<void> {
  const { running, starting, crashed } = instanceCountsOf(process);
  const more = wanted - running - starting - crashed;
  if (app.spec.desiredState !== 'STARTED' || more <= 0) return;
  const refused = quotaRefusal(await readQuotas(session), needsOf(process.spec, more));
  if (refused === undefined) return;
  throw cannotHave(session, app.spec, `${counted(wanted, 'instance')} of '${process.spec.processType}'`, refused);
}

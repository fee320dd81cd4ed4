// Checks before a scale whether the space's quotas have enough left for more instances: one that is refused changes nothing, as in cf.

import { instanceCountsOf } from '../../api/app.ts';
import type { Stored } from '../../api/object.ts';
import { counted, formatBytes, megabyte } from '../../api/sizes.ts';
import type { CFApp, CFProcess } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import type { SpaceSession } from '../../session/session.ts';
import { needsOfInstances, quotaRefusal, readQuotas, type Need, type QuotaRefusal } from './quota-left.ts';

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

/** @throws KfError `quota` when the quotas of the space have no room for instances of these sizes, even after the present ones */
export async function assertSizesFit(
  session: SpaceSession,
  app: Stored<CFApp>,
  process: Stored<CFProcess>,
  after: { memoryMB: number; diskMB: number; instances: number },
): Promise<void> {
  const { memoryMB, diskQuotaMB, processType } = process.spec;
  const { running, starting, crashed } = instanceCountsOf(process);
  if (app.spec.desiredState !== 'STARTED' || after.instances === 0) return;
  const present = running + starting + crashed;
  const more = (now: number, before: number): number => Math.max(0, after.instances * now - present * before) * megabyte;
  const takes = (amount: string): string => `that takes ${amount}`;
  const needs = needsOfInstances(
    {
      memoryBytes: more(after.memoryMB, memoryMB),
      diskBytes: more(after.diskMB, diskQuotaMB),
      instances: Math.max(0, after.instances - present),
    },
    (size, kind) => takes(`${size} more ${kind}`),
    (count, kind) => takes(counted(count, `more ${kind}`)),
  );
  const refused = quotaRefusal(await readQuotas(session), needs);
  if (refused === undefined) return;
  const sizes = `${formatBytes(after.memoryMB * megabyte)} of memory and ${formatBytes(after.diskMB * megabyte)} of disk`;
  throw cannotHave(session, app.spec, `${counted(after.instances, 'instance')} of '${processType}' with ${sizes}`, refused);
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

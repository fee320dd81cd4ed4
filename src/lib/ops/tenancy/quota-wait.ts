// Waits until the cluster applies a quota. The controller changes the limits of a space only while nothing changes in it (decision 35).

import { resourceQuotaType, type ResourceQuota } from '../../api/core.ts';
import { annotations, instanceLimitsName, limitsName } from '../../api/group.ts';
import type { Stored } from '../../api/object.ts';
import { amountsOf, readApplied } from '../../api/quotas.ts';
import { parseQuantity } from '../../api/sizes.ts';
import type { CFQuota } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import type { Session } from '../../session/session.ts';
import { sleep } from '../../wait.ts';

/** A space that is never quiet gets its limits after 30 s. */
const patienceMs = 40_000;
const pauseMs = 500;
/** One request each at a time. */
const mostSpaces = 50;

/** A space in which the quota is not in force yet. */
export interface Unapplied {
  space: string;
  why: string;
}

interface Place {
  name: string;
  guid: string;
}

type State = 'applied' | 'waits' | 'edited';

const isEqual = (one: Record<string, string> = {}, other: Record<string, string> = {}): boolean =>
  Object.entries(one).every(([key, amount]) => parseQuantity(amount) === parseQuantity(other[key]));

/** The limits that the controller wrote; undefined when it has not written any. */
function writtenLimits({ metadata }: Stored<ResourceQuota>): Record<string, string> | undefined {
  const text = metadata.annotations?.[annotations.defaultLimits];
  return text === undefined ? undefined : (JSON.parse(text) as Record<string, string>);
}

function stateOf(live: Stored<ResourceQuota> | undefined, which: 'org' | 'space', { metadata }: Stored<CFQuota>): State {
  if (live === undefined) return 'waits';
  const written = writtenLimits(live);
  if (written === undefined || !isEqual(written, live.spec?.hard)) return 'edited';
  const applied = readApplied(live)[which];
  const isWritten = applied?.guid === metadata.name && applied.generation >= (metadata.generation ?? 0);
  return isWritten && isEqual(live.spec?.hard, live.status?.hard) ? 'applied' : 'waits';
}

/** The state of one space; it counts as applied where this user cannot see it, or where no controller has made limits. */
async function lookAt({ cluster, signal }: Session, { guid: ns }: Place, which: 'org' | 'space', quota: Stored<CFQuota>): Promise<State> {
  const { displayName: _name, ...limits } = quota.spec;
  const hasInstances = Object.keys(amountsOf(limits, instanceLimitsName)).length > 0;
  try {
    const [whole, instances] = await Promise.all([
      cluster.get(resourceQuotaType, ns, limitsName, signal),
      hasInstances ? cluster.get(resourceQuotaType, ns, instanceLimitsName, signal) : undefined,
    ]);
    if (whole === undefined) return 'applied';
    const state = stateOf(whole, which, quota);
    return state === 'applied' && hasInstances ? stateOf(instances, which, quota) : state;
  } catch (error) {
    if (error instanceof KfError && error.code === 'forbidden') return 'applied';
    throw error;
  }
}

/** Waits until a quota is in force in these spaces. Returns those where it is not. */
export async function untilApplied(
  session: Session,
  spaces: readonly Place[],
  which: 'org' | 'space',
  quota: Stored<CFQuota>,
): Promise<Unapplied[]> {
  const { report, signal } = session;
  let open = spaces.slice(0, mostSpaces);
  const unapplied: Unapplied[] = [];
  try {
    for (const deadline = performance.now() + patienceMs; ;) {
      const states = await Promise.all(open.map((space) => lookAt(session, space, which, quota)));
      for (const [index, { name }] of open.entries())
        if (states[index] === 'edited') unapplied.push({ space: name, why: 'an operator edited its limits, which stay as they are' });
      open = open.filter((_, index) => states[index] === 'waits');
      if (open.length === 0 || performance.now() >= deadline) break;
      report({ type: 'waiting', reason: `the quota takes effect in space '${open[0]?.name ?? ''}'` });
      await sleep(pauseMs, signal);
    }
  } finally {
    report({ type: 'done' });
  }
  return [...unapplied, ...open.map(({ name }) => ({ space: name, why: 'the controller has not applied it yet' }))];
}

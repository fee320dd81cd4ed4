// When one process of a version fails and its version before serves again, the app's other processes return too: an app runs in one version.

import { otherProcessFailed } from '../../lib/api/group.ts';
import { isCanceled } from '../../lib/api/rollout.ts';
import type { DeploymentStatus } from '../../lib/api/types.generated.ts';
import { liveProcesses } from '../apps/processes.ts';
import { mostOf, type View } from './assessment.ts';

/** A controller before this rule left a version that served beside such a failure: after this time it stays. */
const followMs = 10 * 60_000;

/**
 * True for a process whose version failed by itself, while the version that served before has its instances. A version that nothing replaces can still
 * recover.
 */
function hasReturned({ phase, reason, generations = [] }: DeploymentStatus): boolean {
  if (phase !== 'Failed' || reason === otherProcessFailed) return false;
  const isGone = generations.some(({ state, instances }) => state === 'Failed' && instances === 0);
  return isGone && generations.some(({ state, served, instances }) => state === 'Old' && served === true && instances > 0);
}

/**
 * The type of the process that this one has to follow to the version before; undefined when none failed, or the app's present change leaves this one as it
 * is, or replaces no version that served.
 */
export function failedSiblingOf(view: View): string | undefined {
  const { context, app, process, hash, deployId } = view;
  if (isCanceled(app) || mostOf(view) === 0) return undefined;
  const { id, generations = [] } = process.status?.rollout ?? {};
  // Before the first status of this change, what is listed may be older than the version before it.
  if (id !== deployId || !generations.some((generation) => generation.hash !== hash && generation.served === true)) return undefined;
  if (generations.some((generation) => generation.hash === hash && generation.untouched === true)) return undefined;
  const hasServed = generations.some(
    (generation) => generation.hash === hash && generation.state === 'Current' && generation.served === true,
  );
  const isRecent = ({ since = '' }: DeploymentStatus): boolean => !hasServed || context.now() - Date.parse(since) < followMs;
  const failed = liveProcesses(context, app).find(({ metadata, status }) => {
    const rollout = status?.rollout;
    return metadata.uid !== process.metadata.uid && rollout?.id === deployId && hasReturned(rollout) && isRecent(rollout);
  });
  return failed?.spec.processType;
}

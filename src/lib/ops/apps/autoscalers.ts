// Which processes Kubernetes scales by itself, beside what users set.

import { autoscalersOf, autoscalerType, type HorizontalPodAutoscaler } from '../../api/autoscaler.ts';
import type { Stored } from '../../api/object.ts';
import type { CFApp, CFProcess } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import type { SpaceSession } from '../../session/session.ts';

/** All autoscalers of the space that scale one of these processes, by the process's name. */
export async function readAutoscalers(
  { cluster, space, signal }: SpaceSession,
  processes: readonly Stored<CFProcess>[],
): Promise<Map<string, Stored<HorizontalPodAutoscaler>>> {
  const { items } = await cluster.list(autoscalerType, { ns: space.guid, signal });
  return autoscalersOf(processes, items);
}

/** The same for a command about something else: none on a cluster whose roles are older than autoscalers. */
export async function readAutoscalersIfAllowed(
  session: SpaceSession,
  processes: readonly Stored<CFProcess>[],
): Promise<Map<string, Stored<HorizontalPodAutoscaler>>> {
  try {
    return await readAutoscalers(session, processes);
  } catch (error) {
    if (error instanceof KfError && error.code === 'forbidden') return new Map();
    throw error;
  }
}

/** Tells that the autoscaler of a process will set another number than this one, which is outside of its bounds. */
export async function warnOfAutoscaler(
  session: SpaceSession,
  app: Stored<CFApp>,
  process: Stored<CFProcess>,
  instances: number,
): Promise<void> {
  const autoscaler = (await readAutoscalersIfAllowed(session, [process])).get(process.metadata.name);
  // A process without instances is left alone.
  if (autoscaler === undefined || instances === 0) return;
  const { minReplicas: least = 1, maxReplicas: most } = autoscaler.spec;
  if (instances >= least && instances <= most) return;
  const { bin, report } = session;
  const { displayName } = app.spec;
  const message = `The autoscaler of process '${process.spec.processType}' keeps ${least} to ${most} instances and will change this number; '${bin} autoscale ${displayName}' shows it.`;
  report({ type: 'warning', message });
}

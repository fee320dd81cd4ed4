// How an app's last change fares, from how it fares for each process. Pure.

import type { Stored } from '../../lib/api/object.ts';
import type { CFApp, CFProcess, DeploymentStatus } from '../../lib/api/types.generated.ts';
import { wantedInstances } from '../relations.ts';
import { timestamp } from '../runtime/clock.ts';

type Body = Omit<DeploymentStatus, 'id' | 'since' | 'generations'>;

const order = ['Failed', 'Pending', 'Starting', 'Serving', 'Stopped'] as const;

function bodyOf(rollout: DeploymentStatus): Body {
  const { id: _id, since: _since, generations: _generations, ...body } = rollout;
  return body;
}

function summary(app: Stored<CFApp>, processes: readonly Stored<CFProcess>[], deployId: string): Body {
  if ((app.spec.currentDropletRef?.name ?? '') === '' && app.spec.desiredState === 'STARTED') {
    return { phase: 'Pending', reason: 'DropletNotAssigned', message: 'The app has no droplet yet.' };
  }
  const isStopped = app.spec.desiredState !== 'STARTED';
  const relevant = isStopped ? processes : processes.filter((process) => wantedInstances(app, process) > 0);
  const rollouts = relevant.flatMap(({ status }) => (status?.rollout?.id === deployId ? [status.rollout] : []));
  // A stopped process that never had a generation has nothing to report.
  const silent = relevant.filter(({ status }) => status?.rollout?.id !== deployId && !(isStopped && status?.rollout === undefined));
  const worst = rollouts.toSorted((a, b) => order.indexOf(a.phase) - order.indexOf(b.phase))[0];
  if (worst?.phase === 'Failed') return bodyOf(worst);
  if (silent.length > 0) return { phase: 'Pending', reason: 'Reconciling', message: 'Waiting for the processes of the app.' };
  if (worst !== undefined) return bodyOf(worst);
  return isStopped ? { phase: 'Stopped' } : { phase: 'Serving', message: 'The app has no instances.' };
}

/** `status.deployment`; `since` moves with the phase only. */
export function deploymentOf(app: Stored<CFApp>, processes: readonly Stored<CFProcess>[], deployId: string, now: number): DeploymentStatus {
  const before = app.status?.deployment?.id === deployId ? app.status.deployment : undefined;
  const body = summary(app, processes, deployId);
  const since = before?.phase === body.phase && before.since !== undefined ? before.since : timestamp(now);
  const generations = processes.flatMap(({ status }) => status?.rollout?.generations ?? []);
  return { id: deployId, ...body, since, ...(generations.length === 0 ? {} : { generations }) };
}

// Computes the progress of an app's last change from the progress of each of its processes. Pure.

import { otherProcessFailed } from '../../lib/api/group.ts';
import { isHeld } from '../../lib/api/held.ts';
import type { Stored } from '../../lib/api/object.ts';
import { isCanceled, noInstances } from '../../lib/api/rollout.ts';
import type { CFApp, CFProcess, DeploymentStatus } from '../../lib/api/types.generated.ts';
import { defined } from '../../lib/defined.ts';
import { wantedInstances } from '../relations.ts';
import { timestamp } from '../runtime/clock.ts';

/** The part of a DeploymentStatus that a process and its app have in common. */
type Progress = Omit<DeploymentStatus, 'id' | 'since' | 'generations'>;

/** The phase with the lowest rank is that of the app. */
const ranks: Readonly<Record<DeploymentStatus['phase'], number>> = {
  Failed: 0,
  Pending: 1,
  Starting: 2,
  Paused: 3,
  Serving: 4,
  Stopped: 5,
};

function progressOf(rollout: DeploymentStatus): Progress {
  const { id: _id, since: _since, generations: _generations, ...progress } = rollout;
  return progress;
}

function progressOfApp(app: Stored<CFApp>, processes: readonly Stored<CFProcess>[], deployId: string): Progress {
  const isStopped = app.spec.desiredState !== 'STARTED';
  if (!isStopped && (app.spec.currentDropletRef?.name ?? '') === '')
    return { phase: 'Pending', reason: 'DropletNotAssigned', message: 'The app has no droplet yet.' };
  // A process that waits for the next start has no part in this one.
  const waits = (process: Stored<CFProcess>): boolean => isHeld(app, process) && process.status?.rollout === undefined;
  // A canary that was scaled to 0 is still to be decided.
  const isCanary = ({ status }: Stored<CFProcess>): boolean => status?.rollout?.id === deployId && status.rollout.step !== undefined;
  const isAwaited = (process: Stored<CFProcess>): boolean => (wantedInstances(app, process) > 0 || isCanary(process)) && !waits(process);
  const relevant = isStopped ? processes : processes.filter(isAwaited);
  const rollouts = relevant.flatMap(({ status }) => (status?.rollout?.id === deployId ? [status.rollout] : []));
  // A process of a stopped app that has never run reports nothing, and nothing is expected of it.
  const unreported = relevant.filter(({ status }) => status?.rollout?.id !== deployId && !(isStopped && status?.rollout === undefined));
  // A process that only follows another one to the version before says less.
  const rank = ({ phase, reason }: DeploymentStatus): number => ranks[phase] + (reason === otherProcessFailed ? 0.5 : 0);
  const worst = rollouts.toSorted((a, b) => rank(a) - rank(b))[0];
  if (worst?.phase === 'Failed') return progressOf(worst);
  if (unreported.length > 0) return { phase: 'Pending', reason: 'Reconciling', message: 'Waiting for the processes of the app.' };
  if (worst !== undefined) return progressOf(worst);
  return isStopped ? { phase: 'Stopped' } : { phase: 'Serving', message: noInstances, ...(isCanceled(app) ? { canceled: true } : {}) };
}

/** The app's `status.deployment`. `since` changes only when the phase changes. */
export function deploymentOf(app: Stored<CFApp>, processes: readonly Stored<CFProcess>[], deployId: string, now: number): DeploymentStatus {
  const before = app.status?.deployment?.id === deployId ? app.status.deployment : undefined;
  const found = progressOfApp(app, processes, deployId);
  // A change that failed does not come to serve by having no instances left.
  const hasOnlyLost = found.message === noInstances && found.canceled !== true && before?.phase === 'Failed';
  const progress = hasOnlyLost ? progressOf(before) : found;
  const since = before?.phase === progress.phase && before.since !== undefined ? before.since : timestamp(now);
  const generations = processes.flatMap(({ status }) => status?.rollout?.generations ?? []);
  return { id: deployId, ...progress, since, ...defined({ generations: generations.length === 0 ? undefined : generations }) };
}

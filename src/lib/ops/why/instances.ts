// Why an instance of an app does not run.

import { causeOfReason, readCause, type CauseCode } from '../../api/causes.ts';
import type { Stored } from '../../api/object.ts';
import type { WhyDetails } from '../../api/results.ts';
import type { CFApp, CFProcess, InstanceStatus } from '../../api/types.generated.ts';
import { defined } from '../../defined.ts';
import type { Run } from '../../kube/last-run.ts';
import type { SpaceSession } from '../../session/session.ts';
import { recordedEnd } from './endings.ts';

/** A failure, before its evidence is read. */
export type Finding = Pick<WhyDetails, 'state' | 'message'> &
  Partial<Pick<WhyDetails, 'since' | 'version' | 'process' | 'instance' | 'container' | 'exitCode' | 'log' | 'next'>> & {
    cause?: CauseCode;
    pod?: string | undefined;
    /** The run of its container that has the lines; left out: it is not about an instance as it is now. */
    run?: Run;
    /** A check of the readiness fails, with settings of its own or with those of the health check. */
    readiness?: 'own' | 'shared';
    /** The last change has failed, beside a version that serves. */
    isBesideServing?: boolean;
  };

interface Listed {
  index: number;
  status: InstanceStatus;
  process: Stored<CFProcess>;
}

const badness: Readonly<Record<InstanceStatus['state'], number>> = { CRASHED: 0, DOWN: 1, STARTING: 2, RUNNING: 3 };

/** Undefined while an instance still has time to answer: only when that has passed is it known that it was too long. */
function causeSoFar({ state, reason, cause }: InstanceStatus): CauseCode | undefined {
  const code = cause === undefined ? causeOfReason(reason) : readCause(cause);
  return state === 'STARTING' && code === 'start-timeout' ? undefined : code;
}

/** Its program runs, and the check of its readiness fails: of an instance that starts, no other check has another cause than the time. */
function failsReadiness(status: InstanceStatus): boolean {
  const code = causeSoFar(status);
  return status.state === 'STARTING' && (code === 'health-http' || code === 'health-port');
}

/** The instance in the worst state that has a cause. @param counts whether an instance is looked at; left out: each one is */
export function ofInstances(
  processes: readonly Stored<CFProcess>[],
  counts: (listed: Listed) => boolean = () => true,
): Finding | undefined {
  const all = processes.flatMap((process) =>
    Object.entries(process.status?.instancesStatus ?? {}).map(([index, status]): Listed => ({ index: Number(index), status, process })),
  );
  const [worst] = all
    .filter((listed) => listed.status.state !== 'RUNNING' && listed.status.reason !== undefined && counts(listed))
    .toSorted((a, b) => badness[a.status.state] - badness[b.status.state]);
  if (worst === undefined) return undefined;
  const { index, process, status } = worst;
  const { processType } = process.spec;
  const { reason, details, timestamp: since, exitCode, pod, container } = status;
  const cause = causeSoFar(status);
  const told = (what: string): string =>
    `Instance ${String(index)} of '${processType}' ${what}: ${details ?? reason ?? 'the cause is unknown.'}`;
  if (failsReadiness(status)) {
    // How the run before ended has nothing to do with it.
    const readiness = process.spec.readinessHealthCheck === undefined ? 'shared' : 'own';
    const place = { process: processType, instance: index, ...defined({ cause, since, pod }) };
    return { state: 'failed', message: told('is not ready'), run: 'present', readiness, ...place };
  }
  const message = told('does not run');
  return {
    state: status.state === 'STARTING' ? 'waiting' : 'failed',
    message,
    run: 'failed',
    process: processType,
    instance: index,
    ...defined({ cause, since, exitCode, pod, container }),
  };
}

/** The instance is of a version that has served and has not failed since, and it does not just start for the first time. */
function hasServed({ process, status }: Listed): boolean {
  const { state, generation, exitCode } = status;
  const own = process.status?.rollout?.generations?.find(({ hash }) => hash === generation);
  return own?.served === true && own.state !== 'Failed' && (state !== 'STARTING' || exitCode !== undefined || failsReadiness(status));
}

/** What fails now of the version that serves, whatever came of a later change; undefined when it runs. */
export async function failureNow(
  session: SpaceSession,
  app: Stored<CFApp>,
  processes: readonly Stored<CFProcess>[],
): Promise<Finding | undefined> {
  if (app.spec.desiredState !== 'STARTED') return undefined;
  const instance = ofInstances(processes, hasServed);
  if (instance !== undefined) return instance;
  const end = await recordedEnd(session, app, processes);
  return end?.state === 'failed' ? end : undefined;
}

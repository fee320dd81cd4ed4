// Health checks of an app's processes: shown, and set for the next start.

import { processesOf, processDefaults } from '../../api/app.ts';
import { heldUntilRestart } from '../../api/held.ts';
import { kinds, labels } from '../../api/group.ts';
import type { Stored } from '../../api/object.ts';
import type { ProcessHealthCheck } from '../../api/results.ts';
import type { CFApp, CFProcess } from '../../api/types.generated.ts';
import { defined } from '../../defined.ts';
import type { SpaceSession } from '../../session/session.ts';
import { changeProcess } from './changes.ts';
import { findProcess } from './scale.ts';

type Check = NonNullable<CFProcess['spec']['readinessHealthCheck']>;

/** @param usual the type of a check that names none */
function described(type: string, check: Check | undefined, usual: ProcessHealthCheck['type']): ProcessHealthCheck {
  const { httpEndpoint, invocationTimeoutSeconds, intervalSeconds } = check?.data ?? {};
  const given = check?.type ?? '';
  const isHttp = given === 'http';
  return {
    process: type,
    type: given === '' ? usual : given,
    ...defined({ endpoint: isHttp ? (httpEndpoint ?? '/') : undefined, invocationTimeoutSeconds, intervalSeconds }),
  };
}

async function readProcesses({ cluster, space, signal }: SpaceSession, app: Stored<CFApp>): Promise<Stored<CFProcess>[]> {
  const labelSelector = `${labels.appGuid}=${app.metadata.name}`;
  return processesOf(app, (await cluster.list(kinds.process, { ns: space.guid, labelSelector, signal })).items);
}

/** The health check of each process: it decides whether an instance has started, and whether it is started again. */
export async function healthChecks(session: SpaceSession, app: Stored<CFApp>): Promise<ProcessHealthCheck[]> {
  const processes = await readProcesses(session, app);
  return processes.map(({ spec }) => described(spec.processType, spec.healthCheck, processDefaults.healthCheckType(spec.processType)));
}

/** The readiness health check of each process: it decides whether an instance gets requests. */
export async function readinessHealthChecks(session: SpaceSession, app: Stored<CFApp>): Promise<ProcessHealthCheck[]> {
  const processes = await readProcesses(session, app);
  return processes.map(({ spec }) => described(spec.processType, spec.readinessHealthCheck, 'process'));
}

export interface HealthCheckChange {
  process: string;
  type: 'http' | 'port' | 'process';
  /** Of an http check. */
  endpoint: string;
  invocationTimeoutSeconds?: number | undefined;
}

/**
 * Sets the health check of a process. Instances that run keep the one with which they were started, until the app is started again.
 * @throws KfError `not-found` for an unknown process
 */
export async function setHealthCheck(session: SpaceSession, app: Stored<CFApp>, change: HealthCheckChange): Promise<void> {
  const { type, endpoint, invocationTimeoutSeconds } = change;
  const process = await findProcess(session, app, change.process);
  // A merge patch keeps what it does not name, so the endpoint of a former http check is removed by name.
  const data = { httpEndpoint: type === 'http' ? endpoint : null, ...defined({ invocationTimeoutSeconds }) };
  await changeProcess(session, process, { healthCheck: { type, data } }, heldUntilRestart(app));
}

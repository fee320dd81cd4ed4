// Autoscalers of an app's processes: Kubernetes' own, which set the number of instances.

import { processesOf, webProcess } from '../../api/app.ts';
import { autoscalerType, describeAutoscaler, metricsBeside, settingsOf, type AutoscalerSettings } from '../../api/autoscaler.ts';
import { kinds, labels } from '../../api/group.ts';
import { requireCompatible } from '../../api/kf-info.ts';
import type { Stored } from '../../api/object.ts';
import type { Autoscaler } from '../../api/results.ts';
import type { CFApp, CFProcess } from '../../api/types.generated.ts';
import { defined } from '../../defined.ts';
import { KfError } from '../../errors.ts';
import type { SpaceSession } from '../../session/session.ts';
import { kfVersion } from '../../version.ts';
import { buildAutoscaler } from '../../../templates/autoscaler.ts';
import { readAutoscalers } from './autoscalers.ts';
import { findProcess } from './scale.ts';

async function allProcesses({ cluster, space, signal }: SpaceSession, app: Stored<CFApp>): Promise<Stored<CFProcess>[]> {
  const labelSelector = `${labels.appGuid}=${app.metadata.name}`;
  return processesOf(app, (await cluster.list(kinds.process, { ns: space.guid, labelSelector, signal })).items);
}

/** The autoscalers of an app, by process. @param type of this process only @throws KfError `not-found` for an unknown process */
export async function describeAutoscalers(session: SpaceSession, app: Stored<CFApp>, type?: string): Promise<Autoscaler[]> {
  const processes = type === undefined ? await allProcesses(session, app) : [await findProcess(session, app, type)];
  const all = await readAutoscalers(session, processes);
  return processes.flatMap((process) => {
    const autoscaler = all.get(process.metadata.name);
    return autoscaler === undefined ? [] : [describeAutoscaler(process, autoscaler)];
  });
}

/** What a change names; what it leaves out stays as it is. */
export type AutoscalerChange = Partial<AutoscalerSettings>;

/** The command that makes an autoscaler: what the user gave, and examples for the rest. @param command with the app and the process */
function exampleFor(command: string, { least = 1, most = Math.max(4, least), targets = {} }: AutoscalerChange): string {
  const { memoryutil, cpu = memoryutil === undefined ? 80 : undefined } = targets;
  const given = Object.entries({ min: least, max: most, ...defined({ cpu, memory: memoryutil }) });
  return [command, ...given.map(([flag, value]) => `--${flag} ${value}`)].join(' ');
}

/** @throws KfError `usage` when a new autoscaler lacks something, or the numbers do not fit */
function completed(change: AutoscalerChange, present: AutoscalerSettings | undefined, command: string): AutoscalerSettings {
  const { least, most, targets = {}, behavior } = change;
  const [min, max] = [least ?? present?.least, most ?? present?.most];
  const all = { ...present?.targets, ...targets };
  if (min === undefined || max === undefined || (present === undefined && Object.keys(all).length === 0))
    throw new KfError('usage', 'A new autoscaler needs --min, --max and at least one of --cpu and --memory.', {
      hints: [exampleFor(command, change)],
    });
  if (min > max)
    throw new KfError('usage', `--min is ${String(min)}, and --max is ${String(max)}: --max must be at least --min.`, {
      hints: ['kf help autoscale'],
    });
  return { least: min, most: max, targets: all, ...defined({ behavior: behavior ?? present?.behavior }) };
}

/**
 * Creates or changes the autoscaler of a process.
 * @param isWhole what the change leaves out is removed
 * @throws KfError `not-found` for an unknown process, `usage`
 */
export async function setAutoscaler(
  session: SpaceSession,
  app: Stored<CFApp>,
  { process: type, change, isWhole }: { process: string; change: AutoscalerChange; isWhole: boolean },
): Promise<void> {
  const { cluster, signal } = session;
  requireCompatible(await session.info(), kfVersion());
  const process = await findProcess(session, app, type);
  const present = (await readAutoscalers(session, [process])).get(process.metadata.name);
  const command = `kf autoscale ${app.spec.displayName}${type === webProcess ? '' : ` --process ${type}`}`;
  const settings = completed(change, present === undefined || isWhole ? undefined : settingsOf(present), command);
  const wanted = buildAutoscaler(process, settings);
  if (present === undefined) return void (await cluster.create(autoscalerType, wanted, { signal }));
  // One that was made without kf keeps its name: two autoscalers of one process would disturb each other.
  const { targets = {} } = change;
  const changed = buildAutoscaler(process, { ...settings, targets }).spec.metrics ?? [];
  const metrics = isWhole ? changed : [...metricsBeside(present, targets), ...changed];
  const spec = { behavior: null, ...wanted.spec, metrics };
  await cluster.mergePatch(autoscalerType, session.space.guid, present.metadata.name, { spec }, { signal });
}

/** Removes the autoscaler of a process, which keeps its instances. @returns false when it has none */
export async function removeAutoscaler(session: SpaceSession, app: Stored<CFApp>, type: string): Promise<boolean> {
  const { cluster, space, signal } = session;
  requireCompatible(await session.info(), kfVersion());
  const process = await findProcess(session, app, type);
  const present = (await readAutoscalers(session, [process])).get(process.metadata.name);
  return present !== undefined && (await cluster.delete(autoscalerType, space.guid, present.metadata.name, { signal }));
}

const metricsApi = '/apis/metrics.k8s.io/v1beta1';

/** True when the cluster says what its pods use; without that, nothing is scaled. */
export async function hasMetrics({ cluster, signal }: SpaceSession): Promise<boolean> {
  const { status, body } = await cluster.raw({ method: 'GET', path: metricsApi, signal });
  body.resume();
  return status < 400;
}

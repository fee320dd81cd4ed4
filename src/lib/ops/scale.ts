// scale: instance counts through the scale subresource, sizes through the process itself.

import { webProcess } from '../api/app.ts';
import { annotations, fieldManagers, kinds, labels } from '../api/group.ts';
import type { CFApp, CFProcess } from '../api/types.generated.ts';
import { KfError } from '../errors.ts';
import { watchObject } from '../kube/watch-list.ts';
import type { SpaceSession } from '../target/session.ts';
import { scaleDirectly, unlessAbsent } from './break-glass.ts';
import { changeApp, changeProcess, newDeployId } from './changes.ts';
import { waitUntilServing } from './lifecycle.ts';
import { startTimeoutMs } from './verdict.ts';

export interface ScaleOptions {
  process?: string;
  instances?: number;
  memoryMB?: number;
  diskMB?: number;
}

/** @throws KfError `not-found`: cf's text for an unknown process */
export async function findProcess(session: SpaceSession, app: CFApp, type: string): Promise<CFProcess> {
  const { cluster, space, signal } = session;
  const { items } = await cluster.list(kinds.process, { ns: space.guid, labelSelector: `${labels.appGuid}=${app.metadata.name}`, signal });
  const found = items.find((process) => process.spec.processType === type);
  if (found !== undefined) return found;
  const types = items.map((process) => process.spec.processType).join(', ');
  throw new KfError('not-found', `Process ${type} not found`, {
    hints: types === '' ? [] : [`Processes of app '${app.spec.displayName}': ${types}`],
  });
}

async function scaleInstances(session: SpaceSession, process: CFProcess, replicas: number): Promise<void> {
  const { cluster, space, signal } = session;
  const patch = { spec: { replicas } };
  const options = { subresource: 'scale', fieldManager: fieldManagers.cli, signal };
  await cluster.mergePatch(kinds.process, space.guid, process.metadata.name ?? '', patch, options);
}

function describeInstances(process: CFProcess | undefined, wanted: number): string {
  const states = Object.values(process?.status?.instancesStatus ?? {}).map((instance) => instance.state.toLowerCase());
  const running = states.filter((state) => state === 'running').length;
  return running > wanted
    ? `Instances stopping... (${running - wanted} more than ${wanted})`
    : `Instances starting... (${running} of ${wanted} running)`;
}

/** Until as many instances run as were asked for; a crashed one among them fails. */
async function waitForInstances(session: SpaceSession, app: CFApp, process: CFProcess, wanted: number): Promise<void> {
  const { cluster, space, signal, env, reporter, bin } = session;
  const { name = '' } = process.metadata;
  let last: CFProcess | undefined;
  const check = (seen: CFProcess | undefined, alive: () => void): true | undefined => {
    last = seen;
    if (seen?.status?.observedGeneration === seen?.metadata.generation) alive();
    const instances = Object.entries(seen?.status?.instancesStatus ?? {});
    const running = instances.filter(([index, { state }]) => Number(index) < wanted && state === 'RUNNING').length;
    const extra = instances.filter(([index]) => Number(index) >= wanted).length;
    const crashed = instances.find(([, { state }]) => state === 'CRASHED');
    if (crashed !== undefined) {
      const [index, { details, reason }] = crashed;
      throw new KfError(
        'start',
        `Start unsuccessful: instance ${index} of '${process.spec.processType}' has crashed: ${details ?? reason ?? 'cause unknown'}`,
        {
          hints: [`${bin} logs ${app.spec.displayName} --recent`],
        },
      );
    }
    if (running === wanted && extra === 0) return true;
    reporter.step(describeInstances(seen, wanted));
    return undefined;
  };
  const how = {
    timeoutMs: startTimeoutMs(env),
    describe: () => `${wanted} instances of '${process.spec.processType}': ${describeInstances(last, wanted)}`,
  };
  const done = await unlessAbsent(signal, (until, alive) =>
    watchObject(cluster, kinds.process, { ns: space.guid, name }, (seen) => check(seen, alive), { ...how, signal: until }),
  );
  reporter.done();
  if (done === true || (await scaleDirectly(session, app, process, wanted))) return;
  throw new KfError(
    'accepted',
    `The new number of instances is accepted, but the controller has not taken it up; it waits in the cluster.`,
    {
      hints: ['kubectl get pods -n kf-system'],
    },
  );
}

/** Changes what is given and waits until it holds. Sizes go first: the new instances are made with them. */
export async function scaleApp(session: SpaceSession, app: CFApp, options: ScaleOptions): Promise<void> {
  const process = await findProcess(session, app, options.process ?? webProcess);
  const sizes: Record<string, number> = {};
  if (options.memoryMB !== undefined && options.memoryMB !== process.spec.memoryMB) sizes['memoryMB'] = options.memoryMB;
  if (options.diskMB !== undefined && options.diskMB !== process.spec.diskQuotaMB) sizes['diskQuotaMB'] = options.diskMB;
  const resized = Object.keys(sizes).length > 0;
  if (resized) await changeProcess(session, process, sizes);
  if (options.instances !== undefined) await scaleInstances(session, process, options.instances);
  if (app.spec.desiredState !== 'STARTED') return;
  if (resized) {
    const deployId = newDeployId();
    const changed = await changeApp(session, app, () => ({ annotations: { [annotations.deployId]: deployId } }));
    await waitUntilServing(session, changed, deployId);
  }
  if (options.instances !== undefined) await waitForInstances(session, app, process, options.instances);
}

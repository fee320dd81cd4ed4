// Reconciles CFTask: fixes its number, sizes and droplet when it begins, then creates one TaskWorkload and reports its end.

import type { Stored } from '../../lib/api/object.ts';
import { processesOf as sortProcesses } from '../../lib/api/app.ts';
import { findCondition } from '../../lib/api/conditions.ts';
import { namespaceType } from '../../lib/api/core.ts';
import { conditionTypes, kinds } from '../../lib/api/group.ts';
import type { CFApp, CFProcess, CFTask, Droplet, TaskWorkload } from '../../lib/api/types.generated.ts';
import { isAlreadyExists } from '../../lib/kube/errors.ts';
import { buildTaskEnv, buildTaskWorkload } from '../../templates/task-job.ts';
import { envProblem, variablesLookMs, variablesOf } from '../app-variables.ts';
import { assertBindingsListed } from '../builds/env.ts';
import { index, watch, type Context, type Reconciler } from '../runtime/reconciler.ts';
import { TerminalError, WaitingError } from '../runtime/result.ts';
import { conditionsWith, notReady, readyStatement, writeStatus, type Statement, type StatusOf } from '../runtime/status.ts';
import { keyOf, splitKey } from '../runtime/store.ts';
import { ensureOwner, isOfEarlier } from '../runtime/owner.ts';
import { appIndexes, bindingsByApp, dropletOf, foreignBuild, processesByApp } from '../relations.ts';
import { defaultMemoryMB } from '../tenancy/quotas.ts';
import { keptOfEnd } from './kept.ts';
import { readinessOf } from './refusal.ts';
import { hasStarted, isOver, openTask } from './state.ts';

const tasksByApp = index<CFTask>(kinds.task, 'app', (task) => [`${task.metadata.namespace}/${task.spec.appRef?.name ?? ''}`]);

/** A task may be written before its app. An app that is missing for this long was deleted, with the task too young to have it as its owner. */
const appPatienceMs = 10 * 60_000;
const appLookMs = 60_000;
/** The longest pause between two looks at an environment that is too large: each of them reads all of it. */
const tooLargeLookMs = 60_000;

/** One worker, so that each number is given once and in order. */
export const taskReconciler: Reconciler = {
  name: 'task',
  workers: 1,
  watches: [
    watch(kinds.task),
    watch<TaskWorkload>(kinds.taskWorkload),
    watch<CFApp>(kinds.app, (app, stores) =>
      stores
        .of(kinds.task)
        .by(tasksByApp.name, keyOf(app))
        .filter((task) => !isOver(task))
        .map(keyOf),
    ),
  ],
  reads: [kinds.build, kinds.process, kinds.serviceBinding, namespaceType],
  indexes: [...appIndexes, bindingsByApp, tasksByApp],
  reconcile: async (key, context) => {
    const { ns, name } = splitKey(key);
    const task = context.stores.of(kinds.task).get(ns, name);
    if (task === undefined || task.metadata.deletionTimestamp !== undefined) return undefined;
    if (isOver(task)) {
      await writeStatus(context, kinds.task, task, { ...task.status, conditions: conditionsWith(task, readyStatement) });
      return undefined;
    }
    try {
      const taken = await owned(context, task);
      if (await endWithoutApp(context, taken)) return undefined;
      await follow(context, await begin(context, taken));
    } catch (error) {
      const live = context.stores.of(kinds.task).get(ns, name) ?? task;
      await writeStatus(context, kinds.task, live, { ...live.status, conditions: conditionsWith(live, notReady(error)) });
      throw error;
    }
    return undefined;
  },
};

/** Makes the app the owner of the task, also while the task waits for a droplet. */
async function owned(context: Context, task: Stored<CFTask>): Promise<Stored<CFTask>> {
  const app = context.stores.of(kinds.app).get(task.metadata.namespace, task.spec.appRef?.name ?? '');
  return app === undefined ? task : ensureOwner(context, kinds.task, task, app);
}

/** Ends a task that has not begun and will never get its app; otherwise it would count in the space's quota for ever. */
async function endWithoutApp(context: Context, task: Stored<CFTask>): Promise<boolean> {
  const { namespace, creationTimestamp = '' } = task.metadata;
  const name = task.spec.appRef?.name ?? '';
  if (task.status?.dropletRef !== undefined || context.stores.of(kinds.app).get(namespace, name) !== undefined) return false;
  if (task.spec.canceled === true) {
    await cancel(context, task, undefined);
    return true;
  }
  if (context.now() - Date.parse(creationTimestamp) < appPatienceMs) return false;
  if ((await context.cluster.get(kinds.app, namespace, name, context.signal)) !== undefined) return false;
  const failed: Statement = {
    type: conditionTypes.failed,
    status: 'True',
    reason: 'AppNotFound',
    message: `The app '${name}' does not exist.`,
  };
  await write(context, task, failed, readyStatement);
  return true;
}

interface Basis {
  app: Stored<CFApp>;
  droplet: Droplet;
  dropletName: string;
  process: Stored<CFProcess> | undefined;
}

function basisOf(context: Context, task: Stored<CFTask>): Basis {
  const { namespace } = task.metadata;
  const app = context.stores.of(kinds.app).get(namespace, task.spec.appRef?.name ?? '');
  if (app === undefined) throw new WaitingError('AppNotFound', `The app '${task.spec.appRef?.name ?? ''}' does not exist.`, appLookMs);
  const dropletName = task.status?.dropletRef?.name ?? app.spec.currentDropletRef?.name ?? '';
  if (dropletName === '') throw new WaitingError('AppCurrentDropletRefNotSet', 'The app has no droplet yet.');
  const droplet = dropletOf(app, dropletName, context.stores);
  if (droplet === undefined) {
    const missing = `The build '${dropletName}' does not exist or has no droplet.`;
    throw new WaitingError('AppCurrentDropletNotFound', foreignBuild(app, dropletName, context.stores) ?? missing);
  }
  const processes = sortProcesses(app, context.stores.of(kinds.process).by(processesByApp.name, keyOf(app)));
  const process = processes.find(({ spec }) => spec.processType === (task.spec.processType ?? 'web'));
  return { app, droplet, dropletName, process };
}

function nextNumber(context: Context, task: Stored<CFTask>): number {
  const others = context.stores.of(kinds.task).by(tasksByApp.name, `${task.metadata.namespace}/${task.spec.appRef?.name ?? ''}`);
  return 1 + Math.max(0, ...others.map(({ status }) => status?.sequenceId ?? 0));
}

/** The first size above 0. For Kubernetes a limit of 0 is no limit, and no quota counts it. */
function firstSize(...sizes: (number | undefined)[]): number | undefined {
  return sizes.find((size) => size !== undefined && size > 0);
}

/** Fixes the values that the task keeps, whatever happens to its app later. */
async function begin(context: Context, task: Stored<CFTask>): Promise<Stored<CFTask>> {
  if (task.status?.sequenceId !== undefined && task.status.dropletRef !== undefined) return task;
  const { dropletName, process } = basisOf(context, task);
  const { processDefaults } = context.info();
  const initialized: Statement = { type: conditionTypes.initialized, status: 'True', reason: 'TaskInitialized', message: '' };
  return writeStatus(context, kinds.task, task, {
    ...task.status,
    sequenceId: task.status?.sequenceId ?? nextNumber(context, task),
    memoryMB: firstSize(task.spec.memoryMB, process?.spec.memoryMB) ?? defaultMemoryMB(context, task.metadata.namespace),
    diskQuotaMB: firstSize(task.spec.diskMB, process?.spec.diskQuotaMB) ?? processDefaults.diskQuotaMB,
    dropletRef: { name: dropletName },
    conditions: conditionsWith(task, initialized),
  });
}

/**
 * The run of the task. Before a task ends without one, the API server is asked: the cache may not have what the leader before made a moment ago, and
 * the command would run although its task has ended.
 */
async function runOf(context: Context, task: Stored<CFTask>): Promise<Stored<TaskWorkload> | undefined> {
  const { namespace, name } = task.metadata;
  const known = context.stores.of(kinds.taskWorkload).get(namespace, name);
  if (known !== undefined || (!hasStarted(task) && task.spec.canceled !== true)) return known;
  return context.cluster.get(kinds.taskWorkload, namespace, name, context.signal);
}

/** @throws WaitingError when an earlier task of the same name has left its run, which the garbage collector deletes */
function assertOwnRun(task: Stored<CFTask>, run: Stored<TaskWorkload> | undefined): void {
  if (run === undefined || !isOfEarlier(run, task)) return;
  throw new WaitingError(
    'TaskWorkloadLeft',
    `The TaskWorkload '${run.metadata.name}' is not of this task but of an earlier one with its GUID.`,
  );
}

async function follow(context: Context, task: Stored<CFTask>): Promise<void> {
  const workload = await runOf(context, task);
  assertOwnRun(task, workload);
  if (task.spec.canceled === true) {
    await cancel(context, task, workload);
    return;
  }
  if (workload === undefined && hasStarted(task)) {
    const gone: Statement = {
      type: conditionTypes.failed,
      status: 'True',
      reason: 'TaskWorkloadDeleted',
      message: 'What ran the task was deleted.',
    };
    await write(context, task, gone, readyStatement);
    return;
  }
  const run = workload ?? (await start(context, task));
  if (run === undefined) return;
  const kept = workload === undefined ? {} : await keptOfEnd(context, workload);
  await writeStatus(context, kinds.task, task, { ...statusWith(task, ...statementsOf(run), readinessOf(run)), ...kept });
}

const statusWith = (task: Stored<CFTask>, ...statements: Statement[]): StatusOf<CFTask> => ({
  ...task.status,
  conditions: conditionsWith(task, ...statements),
});

async function write(context: Context, task: Stored<CFTask>, ...statements: Statement[]): Promise<void> {
  await writeStatus(context, kinds.task, task, statusWith(task, ...statements));
}

/** The conditions of the run that exist. */
function statementsOf(workload: TaskWorkload): Statement[] {
  return [conditionTypes.started, conditionTypes.succeeded, conditionTypes.failed].flatMap((type) => {
    const condition = findCondition(workload, type);
    return condition === undefined ? [] : [{ type, status: condition.status, reason: condition.reason, message: condition.message }];
  });
}

/** The new run of the task; undefined when the task must not start, which only the API server knows yet. The watch will bring what it says. */
async function start(context: Context, task: Stored<CFTask>): Promise<TaskWorkload | undefined> {
  const { app, droplet, process } = basisOf(context, task);
  assertBindingsListed(context, task, app);
  const command = [task.spec.command, process?.spec.command, process?.spec.detectedCommand].find(
    (text) => text !== undefined && text !== '',
  );
  if (command === undefined)
    throw new TerminalError('NoCommand', 'The task has no command, and the process type that it names has none either.');
  const { memoryMB = 0, diskQuotaMB = 0 } = task.status ?? {};
  const variables = await variablesOf(context, app, variablesLookMs);
  const problem = envProblem(variables);
  if (problem !== undefined) throw new WaitingError('EnvironmentTooLarge', problem, variablesLookMs, tooLargeLookMs);
  const env = buildTaskEnv(app, Object.keys(variables).toSorted(), memoryMB);
  const wanted = buildTaskWorkload({ app, task, command, droplet, memoryMB, diskMB: diskQuotaMB, env });
  const live = await openTask(context, task);
  if (live === undefined || hasStarted(live)) return undefined;
  try {
    return await context.cluster.create(kinds.taskWorkload, wanted, { signal: context.signal });
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
    return wanted;
  }
}

async function cancel(context: Context, task: Stored<CFTask>, workload: Stored<TaskWorkload> | undefined): Promise<void> {
  const { namespace, name } = task.metadata;
  if (workload !== undefined && findCondition(workload, conditionTypes.succeeded)?.status === 'True') {
    const ended = statusWith(task, ...statementsOf(workload), readyStatement);
    await writeStatus(context, kinds.task, task, { ...ended, ...(await keptOfEnd(context, workload)) });
    return;
  }
  if (workload?.metadata.uid !== undefined) {
    await context.cluster.delete(kinds.taskWorkload, namespace, name, {
      uid: workload.metadata.uid,
      propagation: 'Background',
      signal: context.signal,
    });
  }
  const reason = 'TaskCanceled';
  await write(
    context,
    task,
    { type: conditionTypes.canceled, status: 'True', reason, message: '' },
    { type: conditionTypes.failed, status: 'True', reason, message: 'The task was cancelled.' },
    readyStatement,
  );
}

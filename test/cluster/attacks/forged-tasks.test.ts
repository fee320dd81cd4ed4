// Attacker: a developer who creates many tasks with forged times, owners and ends, with names of others' tasks, some with a finalizer, so that the
// controller, which deletes old tasks, deletes those of others or running ones, or cannot delete any.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findCondition } from '../../../src/lib/api/conditions.ts';
import type { CFTask } from '../../../src/lib/api/types.generated.ts';
import { readControllerReport } from '../../support/controller-report.ts';
import { kubectl, kubectlJson, ringEnv } from '../../support/kf.ts';
import { TestWorld, type Member } from '../../support/members.ts';
import type { Place } from '../../support/developer.ts';
import { until } from '../../support/until.ts';

const api = 'korifi.cloudfoundry.org';
const sample = `${ringEnv('KF_CLUSTER_NODE_REGISTRY')}/kf/sample:1`;
const far = '2099-01-01T00:00:00Z';
/** For the attacked space, so that few tasks are enough. */
const mostTasks = 12;
const heldCount = 3;
const world = new TestWorld();
let [here, elsewhere]: Place[] = [];
let [attacker, neighbour]: Member[] = [];
let [mine, bank, bankUid, foreign] = ['', '', '', ''];

const placeOf = (place: Place | undefined): string => place?.space ?? '';
const tasksOf = async (ns: string): Promise<CFTask[]> => (await kubectlJson<{ items: CFTask[] }>('get', 'cftasks', '-n', ns)).items;
const hasEnded = (task: CFTask): boolean => ['Succeeded', 'Failed'].some((type) => findCondition(task, type)?.status === 'True');
const uidsOf = (tasks: readonly CFTask[]): string[] => tasks.map(({ metadata }) => metadata.uid ?? '').toSorted();
const openOf = (tasks: readonly CFTask[], names: readonly string[]): string[] =>
  tasks.filter((task) => !hasEnded(task)).flatMap(({ metadata: { name = '' } }) => (names.includes(name) ? [name] : []));

/** An app with a droplet and no running instance. */
async function makeApp(member: Member | undefined, name: string): Promise<string> {
  await member?.kf.ok('push', name, '-o', sample, '-m', '64M', '--no-route');
  await member?.kf.ok('stop', name);
  return (await member?.kf.ok('app', name, '--guid'))?.stdout.trim() ?? '';
}

interface Made {
  app: string;
  command?: string;
  metadata?: object;
}

const taskObject = (ns: string, name: string, { app, command = 'true', metadata = {} }: Made): object => ({
  apiVersion: `${api}/v1alpha1`,
  kind: 'CFTask',
  metadata: { name, namespace: ns, ...metadata },
  spec: { appRef: { name: app }, command, memoryMB: 32, diskMB: 32 },
  // As if it had failed long after everything else.
  status: { sequenceId: 9_000, conditions: [{ type: 'Failed', status: 'True', reason: 'Forged', message: '', lastTransitionTime: far }] },
});

const forged = (more: object = {}): object => ({
  creationTimestamp: far,
  labels: { [`${api}/app-guid`]: bank, [`${api}/task-sequence-id`]: '1', [`${api}/created_at`]: '2099-01-01T00-00-00' },
  annotations: { [`${api}/created_at`]: far },
  ownerReferences: [{ apiVersion: `${api}/v1alpha1`, kind: 'CFApp', name: bank, uid: bankUid, controller: true }],
  ...more,
});

/** Creates a task; the cluster may ask to try again while it counts deletions. */
async function create(member: Member | undefined, object: object): Promise<void> {
  await until('the task to be let in', async () => {
    const said = await member?.kubectl(['create', '-f', '-'], object);
    if (said?.stderr.includes('Operation cannot be fulfilled on resourcequotas') === true) return false;
    expect(said).toMatchObject({ code: 0, stderr: '' });
    return true;
  });
}

async function untilEnded(ns: string, names: readonly string[]): Promise<void> {
  await until(`${names.join(', ')} to end`, async () => openOf(await tasksOf(ns), names).length === 0);
}

interface Quota {
  spec: { hard: Record<string, string> };
  status?: { used?: Record<string, string> };
}

/** As an operator does, once the quota counts tasks: a new installation does so after a minute. */
async function limitTasks(ns: string): Promise<void> {
  const resource = `count/cftasks.${api}`;
  await until('the quota of the space to count tasks', async () => {
    const { status } = await kubectlJson<Quota>('get', 'resourcequota', 'kf-limits', '-n', ns);
    return status?.used?.[resource] !== undefined;
  });
  const few: Partial<Quota> = { spec: { hard: { [resource]: String(mostTasks) } } };
  await kubectl('patch', 'resourcequota', 'kf-limits', '-n', ns, '--type=merge', '-p', JSON.stringify(few));
}

beforeAll(async () => {
  [here, elsewhere] = [await world.space(), await world.space()];
  [attacker, neighbour] = [await world.member('spaceDeveloper', here), await world.member('spaceDeveloper', elsewhere)];
  mine = await makeApp(attacker, 'mine');
  bank = await makeApp(attacker, 'bank');
  bankUid = await kubectl('get', 'cfapp', '-n', here.space, bank, '-o', 'jsonpath={.metadata.uid}');
  foreign = await makeApp(neighbour, 'bank');
  await limitTasks(here.space);

  await create(attacker, taskObject(here.space, 'bank-done', { app: bank }));
  await create(attacker, taskObject(here.space, 'bank-runs', { app: bank, command: 'sleep 3600' }));
  for (const name of ['one', 'two']) await create(neighbour, taskObject(elsewhere.space, name, { app: foreign }));
  await untilEnded(here.space, ['bank-done']);
  await untilEnded(elsewhere.space, ['one', 'two']);
});
afterAll(async () => {
  const open = { metadata: { finalizers: null } };
  for (const task of await tasksOf(placeOf(here)))
    await kubectl('patch', 'cftask', '-n', placeOf(here), task.metadata.name ?? '', '--type=merge', '-p', JSON.stringify(open));
  await world.remove();
});

describe('a developer who forges the data of a task', () => {
  test('can neither write the status of a task nor move it to another app', async () => {
    const ns = placeOf(here);
    const runs = async (): Promise<CFTask | undefined> => (await tasksOf(ns)).find(({ metadata }) => metadata.name === 'bank-runs');
    const conditions = [{ type: 'Failed', status: 'True', reason: 'Forged', message: '', lastTransitionTime: far }];
    const ended = { ...(await runs()), status: { conditions } };
    const statusOfTask = `/apis/${api}/v1alpha1/namespaces/${ns}/cftasks/bank-runs/status`;
    expect(await attacker?.kubectl(['replace', '--raw', statusOfTask, '-f', '-'], ended)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('cannot update resource "cftasks/status"') as string,
    });
    const given = JSON.stringify({ spec: { appRef: { name: mine } } });
    expect(await attacker?.kubectl(['patch', 'cftask', '-n', ns, 'bank-runs', '--type=merge', '-p', given])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('The app of a task cannot be changed') as string,
    });
    const still = await runs();
    expect(still === undefined || hasEnded(still)).toBe(false);
  });

  test('cannot make the controller delete other or running tasks, and cannot block its deletions', async () => {
    const before = await readControllerReport(ringEnv('KF_TEST_KUBECONFIG'));
    const ns = placeOf(here);
    const kept = { bank: uidsOf(await tasksOf(ns)), foreign: uidsOf(await tasksOf(placeOf(elsewhere))) };
    const held = Array.from({ length: heldCount }, (_, index) => `held-${index}`);
    for (const name of held) {
      const metadata = forged({ finalizers: ['example.com/held'] });
      await create(attacker, taskObject(ns, name, { app: mine, metadata }));
    }
    await untilEnded(ns, held);

    // More than the space may have, including the names of the other space's tasks.
    for (let round = 0; round < 5; round += 1) {
      const names = round === 0 ? ['one', 'two'] : [1, 2, 3].map((index) => `round-${round}-${index}`);
      for (const name of names) await create(attacker, taskObject(ns, name, { app: mine, metadata: forged() }));
      await untilEnded(ns, names);
    }

    const isHeld = ({ metadata }: CFTask): boolean => metadata.deletionTimestamp !== undefined;
    // Half of what the running one and those with finalizers leave.
    const most = Math.floor((mostTasks - 1 - heldCount) / 2);
    await until('the surplus to go', async () => {
      const tasks = await tasksOf(ns);
      return tasks.filter(isHeld).length === heldCount && tasks.filter((task) => hasEnded(task) && !isHeld(task)).length <= most;
    });
    const tasks = await tasksOf(ns);
    expect(uidsOf(tasks.filter(({ metadata }) => kept.bank.includes(metadata.uid ?? '')))).toEqual(kept.bank);
    expect(uidsOf(await tasksOf(placeOf(elsewhere)))).toEqual(kept.foreign);
    const pods = ['get', 'pods', '-n', ns, '-l', `${api}/task-guid=bank-runs`, '-o', 'jsonpath={.items[*].status.phase}'];
    expect(await kubectl(...pods)).toBe('Running');
    // The newest tasks of the attacker stay, by the end times that the controller wrote.
    expect(tasks.some(({ metadata }) => metadata.name === 'round-4-3')).toBe(true);
    expect(tasks.some((task) => findCondition(task, 'Failed')?.reason === 'Forged')).toBe(false);
    const after = await readControllerReport(ringEnv('KF_TEST_KUBECONFIG'));
    expect(after.map(({ pod, restarts }) => [pod, restarts])).toEqual(before.map(({ pod, restarts }) => [pod, restarts]));
  });
});

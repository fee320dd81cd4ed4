// Finished tasks on a cluster in memory: which of them the controller deletes, and how many requests it needs.

import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { taskRetentionReconciler } from '../../../src/controller/tasks/retention.ts';
import { createLogger } from '../../../src/controller/runtime/log.ts';
import { Manager } from '../../../src/controller/runtime/manager.ts';
import { sources } from '../../../src/controller/sources.ts';
import { configMapType, resourceQuotaType } from '../../../src/lib/api/core.ts';
import { kinds } from '../../../src/lib/api/group.ts';
import { MemoryCluster } from '../../support/memory-cluster.ts';
import { patienceMs } from '../../support/until.ts';
import { app, info } from './build-scene.ts';

const ns = 'space-1';
let cluster: MemoryCluster;
let stop: () => Promise<void>;
/** Requests of the controller that are not watches: `list resourcequotas`. */
let asked: string[];

beforeEach(async () => {
  cluster = new MemoryCluster();
  asked = [];
  const settings = JSON.stringify({ ...info, tasksKeptPerApp: 3 });
  await cluster.create(configMapType, { metadata: { name: 'kf-info', namespace: 'cf' }, data: { 'info.json': settings } });
  for (const name of ['a', 'b']) await cluster.create(kinds.app, app(name, ns));
  stop = () => Promise.resolve();
});
afterEach(() => stop());

function start(): void {
  cluster.intercept = (verb, { plural }) => void asked.push(`${verb} ${plural}`);
  const aborter = new AbortController();
  const running = new Manager({
    cluster,
    sources: sources('cf'),
    reconcilers: [taskRetentionReconciler()],
    leader: { ns: 'kf-system', name: 'kf-controller', identity: 'one', followMs: 20 },
    rootNamespace: 'cf',
    log: createLogger('error', () => undefined),
  }).run(aborter.signal);
  stop = async () => {
    aborter.abort();
    await running;
    cluster.close();
  };
}

const until = (check: () => void): Promise<void> => vi.waitFor(check, { timeout: patienceMs, interval: 5 });
const limit = (count: number) =>
  cluster.create(resourceQuotaType, {
    metadata: { name: 'kf-limits', namespace: ns },
    spec: { hard: { 'count/cftasks.korifi.cloudfoundry.org': String(count) } },
  });

/** A task that ended this many minutes ago, or runs. */
async function makeTask(name: string, of: string, minutesAgo?: number): Promise<void> {
  await cluster.create(kinds.task, { metadata: { name, namespace: ns }, spec: { appRef: { name: of }, command: 'true' } });
  const ended = new Date(Date.now() - (minutesAgo ?? 0) * 60_000).toISOString();
  const type = minutesAgo === undefined ? 'Started' : 'Succeeded';
  const status = { conditions: [{ type, status: 'True', reason: 'x', message: '', lastTransitionTime: ended }] };
  await cluster.mergePatch(kinds.task, ns, name, { status }, { subresource: 'status' });
}
const left = (): string[] => cluster.all(kinds.task).map(({ metadata }) => metadata.name ?? '');
const deletions = () => cluster.writes.filter(({ verb }) => verb === 'delete');

test('the newest tasks of each app stay, as many as setup says, and unfinished ones', async () => {
  for (const minutes of [10, 20, 30, 40, 50]) await makeTask(`a-${minutes}`, 'a', minutes);
  await makeTask('a-runs', 'a');
  await makeTask('b-900', 'b', 900);
  const uid = cluster.peek(kinds.task, ns, 'a-50')?.metadata.uid;
  start();
  await until(() => expect(left()).toEqual(['a-10', 'a-20', 'a-30', 'a-runs', 'b-900']));
  expect(deletions()[0]).toMatchObject({ name: 'a-50', body: { uid, propagation: 'Background' } });
});

test('the tasks of a deleted app are deleted, when the API server has confirmed its deletion', async () => {
  await makeTask('old', 'gone', 10);
  await makeTask('of-b', 'b', 10);
  start();
  await until(() => expect(left()).toEqual(['of-b']));
  // No object has its uid as owner: the task was created before tasks were owned by their apps.
  await cluster.delete(kinds.app, ns, 'b');
  await until(() => expect(left()).toEqual([]));
  expect(asked).toContain('get cfapps');
});

test('a task that cannot be deleted does not block the others', async () => {
  for (const minutes of [10, 20, 30, 40, 50, 60]) await makeTask(`a-${minutes}`, 'a', minutes);
  start();
  cluster.intercept = (verb, _type, name) => {
    if (verb === 'delete' && name === 'a-60') throw new Error('somebody minds');
  };
  await until(() => expect(left()).toEqual(['a-10', 'a-20', 'a-30', 'a-60']));
});

test('a space is processed once for many changes, and loses at most fifty tasks at a time until a new one fits', async () => {
  await limit(20);
  for (let index = 0; index < 110; index += 1) await makeTask(`a-${index}`, 'a', 0);
  start();
  // Half of 20: all of them have just ended.
  await until(() => expect(left()).toHaveLength(10));
  const told = asked.filter((one) => one === 'list resourcequotas' || one === 'delete cftasks').join(' ');
  const looks = told.split('list resourcequotas').slice(1);
  expect(looks.map((look) => look.split('delete').length - 1)).toEqual([50, 50]);
});

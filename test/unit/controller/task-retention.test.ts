import { describe, expect, test } from 'vitest';
import { divide } from '../../../src/controller/tenancy/division.ts';
import { mostFinished, surplusTasks, type KeptTasks } from '../../../src/controller/tasks/retention.ts';
import type { ResourceQuota } from '../../../src/lib/api/core.ts';
import type { KubeObject, Stored } from '../../../src/lib/api/object.ts';
import type { CFTask } from '../../../src/lib/api/types.generated.ts';
import { asStored } from '../../support/stored.ts';

const now = Date.parse('2026-01-01T12:00:00Z');
const at = (minutesAgo: number): string => new Date(now - minutesAgo * 60_000).toISOString();

interface Told {
  app?: string;
  /** Minutes since its end; left out: it has not ended. */
  ended?: number;
  how?: 'Succeeded' | 'Failed';
  number?: number;
  metadata?: KubeObject['metadata'];
}

const task = (name: string, { app = 'a', ended, how = 'Succeeded', number, metadata = {} }: Told): Stored<CFTask> =>
  asStored({
    metadata: { name, namespace: 's', creationTimestamp: at(ended ?? 0), ...metadata },
    spec: { appRef: { name: app }, command: 'true' },
    status: {
      ...(number === undefined ? {} : { sequenceId: number }),
      conditions: [
        { type: 'Initialized', status: 'True', reason: 'x', message: '', lastTransitionTime: at(1_000) },
        ...(ended === undefined ? [] : [{ type: how, status: 'True', reason: 'x', message: '', lastTransitionTime: at(ended) }]),
      ],
    },
  } as CFTask);

const kept: KeptTasks = { keptPerApp: 2, most: Number.POSITIVE_INFINITY, now, isGone: () => false };
const names = (tasks: readonly CFTask[]): (string | undefined)[] => tasks.map(({ metadata }) => metadata.name);
const going = (tasks: readonly Stored<CFTask>[], options: Partial<KeptTasks> = {}): (string | undefined)[] =>
  names(surplusTasks(tasks, { ...kept, ...options }).going);

describe('of the tasks of an app', () => {
  test('the newest that have ended stay, however they ended, and the oldest are deleted first', () => {
    const tasks = [task('c', { ended: 30, how: 'Failed' }), task('a', { ended: 10 }), task('d', { ended: 40 }), task('b', { ended: 20 })];
    expect(going(tasks)).toEqual(['d', 'c']);
    expect(going([...tasks, task('other', { app: 'b', ended: 90 })])).toEqual(['d', 'c']);
  });

  test('unfinished tasks stay, and do not count', () => {
    const open = [1, 2, 3].map((n) => task(`run-${n}`, {}));
    expect(going([...open, task('a', { ended: 10 }), task('b', { ended: 20 })])).toEqual([]);
    expect(going(open, { keptPerApp: 0, most: 0 })).toEqual([]);
  });

  test('one that ran long counts from its end, not from its start', () => {
    const long = task('long', { ended: 5, metadata: { creationTimestamp: at(10_000) } });
    expect(going([long, task('a', { ended: 10 }), task('b', { ended: 20 })])).toEqual(['b']);
  });

  test('the one with the last number stays, so that no number is used twice', () => {
    const tasks = [task('a', { ended: 10, number: 7 }), task('b', { ended: 20, number: 6 }), task('last', { ended: 90, number: 8 })];
    expect(going(tasks)).toEqual(['b']);
    expect(going([...tasks, task('open', { number: 9 })])).toEqual(['last']);
  });

  test('one that has just ended stays, so that waiting clients see it', () => {
    const tasks = [task('a', { ended: 0 }), task('b', { ended: 0.5 }), task('c', { ended: 1 }), task('d', { ended: 3 })];
    expect(surplusTasks(tasks, kept)).toMatchObject({ going: [{ metadata: { name: 'd' } }], waits: true });
    expect(surplusTasks(tasks.slice(0, 2), kept)).toEqual({ going: [], waits: false });
  });

  test('those that are being deleted are neither kept nor deleted again', () => {
    const held = [1, 2, 3].map((n) =>
      task(`held-${n}`, { ended: n, metadata: { deletionTimestamp: at(0), finalizers: ['example.com/x'] } }),
    );
    expect(going([...held, task('a', { ended: 10 }), task('b', { ended: 20 }), task('c', { ended: 30 })])).toEqual(['c']);
  });

  test('all that have ended are deleted if the app is gone', () => {
    const tasks = [task('a', { ended: 0 }), task('b', { ended: 20 }), task('run', {}), task('of-b', { app: 'b', ended: 20 })];
    const isGone = (app: string): boolean => app === 'a';
    expect(going(tasks, { isGone })).toEqual(['b', 'a']);
  });

  test('data that clients write has no effect: labels, annotations, owners, times of creation', () => {
    const forged = (minutes: number): KubeObject['metadata'] => ({
      creationTimestamp: at(-minutes),
      labels: { 'korifi.cloudfoundry.org/app-guid': 'b', 'korifi.cloudfoundry.org/task-sequence-id': '999', [`x${minutes}`]: '' },
      annotations: { 'korifi.cloudfoundry.org/created_at': at(-minutes) },
      ownerReferences: [{ apiVersion: 'korifi.cloudfoundry.org/v1alpha1', kind: 'CFApp', name: 'b', uid: 'b', controller: true }],
    });
    const mine = [1, 2, 3, 4].map((n) => task(`mine-${n}`, { ended: n * 10, metadata: forged(n * 100) }));
    expect(going([...mine, task('theirs', { app: 'b', ended: 500 })])).toEqual(['mine-4', 'mine-3']);
  });
});

describe('of all tasks of a space', () => {
  const busy = [10, 20, 30, 40].map((ended) => task(`busy-${ended}`, { app: 'busy', ended }));
  const nightly = task('nightly', { app: 'nightly', ended: 600 });
  const weekly = task('weekly', { app: 'weekly', ended: 6_000 });

  test('surplus tasks are those of the app with most, and an app’s last task is deleted last', () => {
    const all = [...busy, nightly, weekly];
    const wide = { keptPerApp: 10 };
    expect(going(all, { ...wide, most: 6 })).toEqual([]);
    expect(going(all, { ...wide, most: 4 })).toEqual(['busy-40', 'busy-30']);
    expect(going(all, { ...wide, most: 2 })).toEqual(['busy-40', 'busy-30', 'busy-20', 'weekly']);
    expect(going(all, { ...wide, most: 0 })).toHaveLength(6);
  });

  test('the surplus is computed after that of each app', () => {
    expect(going([...busy, nightly], { keptPerApp: 2, most: 3 })).toEqual(['busy-40', 'busy-30']);
  });

  test('those that have just ended are deleted too if the quota requires it', () => {
    const young = [0, 0.1, 0.2].map((ended) => task(`young-${ended}`, { ended }));
    expect(surplusTasks(young, { ...kept, most: 1 })).toMatchObject({
      going: [{ metadata: { name: 'young-0.2' } }, { metadata: { name: 'young-0.1' } }],
      waits: false,
    });
  });
});

describe('the limit of finished tasks of a space', () => {
  const cftasks = 'count/cftasks.korifi.cloudfoundry.org';
  const quota = (hard: Record<string, string>): ResourceQuota => ({ metadata: { name: 'q' }, spec: { hard } });

  test('is half of what the unfinished tasks leave, so that the next task always fits', () => {
    expect(mostFinished([quota({ [cftasks]: '200' })], 0)).toBe(100);
    expect(mostFinished([quota({ [cftasks]: '200' })], 150)).toBe(25);
    expect(mostFinished([quota({ [cftasks]: '200' })], 199)).toBe(0);
    expect(mostFinished([quota({ [cftasks]: '3' })], 9)).toBe(0);
  });

  test('follows the tightest of all quotas of the space, and all resources that a task needs from them', () => {
    expect(mostFinished([quota({ [cftasks]: '1k' }), quota({ [cftasks]: '10' })], 0)).toBe(5);
    expect(mostFinished([quota({ [cftasks]: '200', 'count/pods': '40' })], 0)).toBe(10);
    expect(mostFinished([quota({ [cftasks]: '200', 'count/jobs.batch': '8' })], 0)).toBe(2);
    expect(mostFinished([quota({ [cftasks]: '200', 'count/taskworkloads.korifi.cloudfoundry.org': '20' })], 2)).toBe(9);
  });

  test('does not exist if no quota counts tasks', () => {
    expect(mostFinished([], 5)).toBe(Number.POSITIVE_INFINITY);
    expect(mostFinished([quota({ pods: '3', 'requests.memory': '1Gi', [cftasks]: 'none' }), { metadata: {} }], 5)).toBe(
      Number.POSITIVE_INFINITY,
    );
  });

  test.each([1, 2, 5, 20])('leaves place in each of %i spaces that share the total of an org, and in the org', (count) => {
    const [total, most] = [400, 200];
    let spaces = Array.from({ length: count }, () => ({ used: 0, uncounted: 0, given: 0, inForce: 0 }));
    for (let round = 0; round < 500; round += 1) {
      const { shares } = divide(total, most, spaces);
      spaces = spaces.map(({ used }, at) => {
        const given = shares[at] ?? 0;
        expect(given).toBeGreaterThan(used);
        const kept = Math.min(used + 1, mostFinished([quota({ [cftasks]: String(given) })], 0));
        return { used: kept, uncounted: 0, given, inForce: given };
      });
    }
    expect(spaces.reduce((sum, { used }) => sum + used, 0)).toBeLessThanOrEqual(total / 2);
    expect(Math.min(...spaces.map(({ used }) => used))).toBeGreaterThanOrEqual(9);
  });
});

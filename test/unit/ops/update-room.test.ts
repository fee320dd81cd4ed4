import { expect, it } from 'vitest';
import type { Stored } from '../../../src/lib/api/object.ts';
import type { CFApp, CFProcess, CFRoute } from '../../../src/lib/api/types.generated.ts';
import type { ProcessPlan } from '../../../src/lib/manifest/plan.ts';
import { sizeRefusal, type ProcessSize } from '../../../src/lib/ops/apps/quota-left.ts';
import { needsOfUpdate, type Update } from '../../../src/lib/ops/apps/update-room.ts';

const app = { metadata: { name: 'app' }, spec: {} } as Stored<CFApp>;

const process = (processType: string, desiredInstances: number, counts: object = { running: desiredInstances }) =>
  ({
    metadata: { name: `${processType}-guid` },
    spec: { processType, desiredInstances, memoryMB: 100, diskQuotaMB: 10 },
    status: { instanceCounts: { running: 0, starting: 0, crashed: 0, down: 0, ...counts } },
  }) as unknown as Stored<CFProcess>;

const toWeb = {
  spec: {
    destinations: [
      { appRef: { name: 'app' }, processType: 'web' },
      { appRef: { name: 'another' }, processType: 'worker' },
    ],
  },
} as unknown as Stored<CFRoute>;

/** The memory in megabytes and the instances that the update takes beyond what runs. */
function needs(processes: Stored<CFProcess>[], parts: Partial<Update> = {}): [number, number] {
  const all = needsOfUpdate({ app, processes, routes: [toWeb], rollout: {}, ...parts });
  const of = (name: string): number => all.find(({ names }) => names.includes(name))?.amount ?? -1;
  return [of('limits.memory') / 2 ** 20, of('app instances')];
}

const planned = (plan: Partial<ProcessPlan>): Partial<Update> => ({ planned: [{ type: 'web', ...plan }] });

it.each<[string, [number, number], Stored<CFProcess>[], Partial<Update>]>([
  ['one instance beside the old ones', [100, 1], [process('web', 3)], {}],
  ['as many as are replaced at a time', [200, 2], [process('web', 3)], { rollout: { maxInFlight: 2 } }],
  ['not more than there will be', [300, 3], [process('web', 3)], { rollout: { maxInFlight: 9 } }],
  ['larger instances, when all but one are replaced', [400, 1], [process('web', 3)], planned({ memoryMB: 200 })],
  ['smaller instances: the first one', [50, 1], [process('web', 3)], planned({ memoryMB: 50 })],
  ['more instances', [300, 3], [process('web', 3)], planned({ instances: 5 })],
  ['fewer instances: none of them is missing', [0, 0], [process('web', 3)], planned({ instances: 1 })],
  [
    'more instances of a process that an autoscaler sets',
    [100, 1],
    [process('web', 3)],
    { ...planned({ instances: 5 }), autoscaled: new Set(['web-guid']) },
  ],
  ['one trial instance of a process without routes', [100, 1], [process('worker', 3)], { rollout: { maxInFlight: 2 } }],
  ['the instances of all processes', [200, 2], [process('web', 3), process('worker', 1)], {}],
  ['instances that could not be made before', [200, 2], [process('web', 3, { running: 2, down: 1 })], {}],
  ['nothing when none of the old ones serves', [0, 0], [process('web', 3, { crashed: 3 })], {}],
  ['nothing for a process without instances', [0, 0], [process('web', 0)], {}],
])('an update takes %s', (_what, expected, processes, parts) => {
  expect(needs(processes, parts)).toEqual(expected);
});

const whole = (hard: Record<string, string>) => ({ metadata: { name: 'q' }, status: { hard, used: hard } });
const none: ProcessSize = { memoryMB: 0, diskMB: 0, instances: 0 };
const sized = { memoryMB: 600, diskMB: 100 };

it('an instance is compared with all that a quota has, whatever is used of it', () => {
  const why = (hard: Record<string, string>): string | undefined =>
    sizeRefusal([whole(hard)], 'web', { before: none, after: { ...sized, instances: 1 } })?.why;
  expect(why({ 'requests.memory': '600Mi', 'requests.ephemeral-storage': '100Mi', pods: '0' })).toBeUndefined();
  expect(why({ 'requests.memory': '500Mi' })).toBe(
    "one instance of 'web' takes 600M of memory, and the quota 'q' has 500M in all (requests.memory)",
  );
  expect(why({ 'requests.ephemeral-storage': '99Mi' })).toContain("takes 100M of disk, and the quota 'q' has 99M in all");
});

it('all instances of a process are compared with all that a quota has', () => {
  const refused = (hard: Record<string, string>, instances = 3) =>
    sizeRefusal([whole(hard)], 'web', { before: none, after: { ...sized, instances } });
  expect(refused({ 'requests.memory': '1800Mi', pods: '3' })).toBeUndefined();
  expect(refused({ 'requests.memory': '1500Mi' })).toMatchObject({
    why: "3 instances of 'web' take 1.8G of memory, and the quota 'q' has 1.5G in all (requests.memory)",
    instances: 3,
  });
  expect(refused({ pods: '2' })?.why).toBe("3 instances of 'web' take 3 pods, and the quota 'q' has 2 in all (pods)");
  expect(refused({ 'requests.memory': '500Mi' })).toMatchObject({ instances: 1 });
  expect(refused({ 'requests.memory': '500Mi', pods: '0' }, 0)).toBeUndefined();
});

it('of a process that does not become larger, one instance is compared with a quota: others made it too many', () => {
  const before = { memoryMB: 600, diskMB: 100, instances: 10 };
  const hard = { 'requests.memory': '1Gi', 'requests.ephemeral-storage': '500Mi', pods: '5' };
  const why = (after: Partial<ProcessSize>) => sizeRefusal([whole(hard)], 'web', { before, after: { ...before, ...after } })?.why;
  expect([why({}), why({ memoryMB: 500 }), why({ instances: 0 }), why({ instances: 9 })]).toEqual([
    undefined,
    undefined,
    undefined,
    undefined,
  ]);
  expect(why({ instances: 11 })).toContain("11 instances of 'web' take 6.4G of memory");
  expect(why({ memoryMB: 601 })).toContain("10 instances of 'web' take 5.9G of memory");
  expect(why({ diskMB: 101 })).toContain("10 instances of 'web' take 1010M of disk");
  expect(why({ memoryMB: 1025 })).toContain("one instance of 'web' takes 1G of memory");
});

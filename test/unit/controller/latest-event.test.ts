// Of several Events about one object the one that was repeated last counts, whichever field contains its time.

import { expect, test } from 'vitest';
import { latestEvent } from '../../../src/controller/runtime/latest-event.ts';
import type { Context } from '../../../src/controller/runtime/reconciler.ts';
import type { KubeEvent } from '../../../src/lib/api/core.ts';

const at = (minute: number): string => `2030-01-01T00:0${minute}:00Z`;

function contextWith(items: Pick<KubeEvent, 'reason' | 'message' | 'series' | 'lastTimestamp' | 'eventTime'>[]) {
  const asked: unknown[] = [];
  const list = (_: unknown, { ns, fieldSelector }: { ns: string; fieldSelector: string }) => {
    asked.push([ns, fieldSelector]);
    return Promise.resolve({ items: items.map((item) => ({ ...item, metadata: { creationTimestamp: at(0) } })) });
  };
  return { asked, context: { cluster: { list } } as unknown as Context };
}

test('the time of an Event is that of the series, else the last time, the first time or the creation', async () => {
  const { context, asked } = contextWith([
    { reason: 'FailedCreate', message: 'in a series', lastTimestamp: at(1), series: { count: 2, lastObservedTime: at(5) } },
    { reason: 'FailedCreate', message: 'with a last time', lastTimestamp: at(4) },
    { reason: 'FailedCreate', message: 'with a first time', eventTime: at(3) },
    { reason: 'FailedCreate', message: 'only made' },
    { reason: 'Other', message: 'of another reason', lastTimestamp: at(9) },
  ]);
  expect((await latestEvent(context, { ns: 's', uid: 'u' }, 'FailedCreate'))?.message).toBe('in a series');
  expect(asked).toEqual([['s', 'involvedObject.uid=u']]);
});

test('if no Event has the reason, there is none', async () => {
  const { context } = contextWith([{ reason: 'Other', message: 'of another reason' }]);
  expect(await latestEvent(context, { ns: 's', uid: 'u' }, 'FailedCreate')).toBeUndefined();
});

test('an Event from before a time is preferred, and a later one is better than none', async () => {
  const { context } = contextWith([
    { reason: 'Unhealthy', message: 'connection refused', lastTimestamp: at(5) },
    { reason: 'Unhealthy', message: 'i/o timeout', lastTimestamp: at(3) },
    { reason: 'Unhealthy', message: 'statuscode: 503', lastTimestamp: at(2) },
  ]);
  const before = async (minute: number) =>
    (await latestEvent(context, { ns: 's', uid: 'u' }, 'Unhealthy', Date.parse(at(minute))))?.message;
  expect(await Promise.all([6, 5, 4, 3, 2].map(before))).toEqual([
    'connection refused',
    'i/o timeout',
    'i/o timeout',
    'statuscode: 503',
    'connection refused',
  ]);
});

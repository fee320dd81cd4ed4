// Instances that run between two ends are explained by the recorded events.

import { describe, expect, test } from 'vitest';
import type { AppEvent, WhyEvent } from '../../../src/lib/api/results.ts';
import { lastEnd } from '../../../src/lib/ops/why/endings.ts';

const now = Date.parse('2026-08-07T10:20:00Z');
const at = (minute: string, type: string, description: string): AppEvent => ({
  time: `2026-08-07T10:${minute}Z`,
  type,
  actor: '',
  description,
});
const crash = (minute: string, status: number, index = 0, note = ''): AppEvent =>
  at(
    minute,
    'app.crash',
    `index: ${index}, reason: CRASHED, instance: shop-0, exit_description: APP/PROC/WEB: Exited with status ${status}${note}, exit_status: ${status}`,
  );
const full = 'Pod ephemeral local storage usage exceeds the total limit of containers 20Mi. ';
const evicted = (minute: string): AppEvent =>
  at(minute, 'audit.app.process.rescheduling', `index: 0, reason: EVICTED, instance: shop-0, exit_description: ${full}`);
const lost = (minute: string): AppEvent =>
  at(
    minute,
    'audit.app.process.rescheduling',
    "index: 0, reason: NODE_LOST, instance: shop-0, exit_description: Node 'n' does not answer.",
  );

const sets = new Map([['shop-3b5-worker', 'worker']]);
type Lately = Parameters<typeof lastEnd>[1];
const ended = (events: readonly AppEvent[], lately: Lately) => lastEnd({ events, warnings: [], sets }, lately);
const evictedLast = (warnings: readonly WhyEvent[], lately: Lately) => lastEnd({ events: [], warnings, sets }, lately);

describe('an app whose instances run', () => {
  test('is explained by an instance that ended twice in the last ten minutes', () => {
    expect(ended([crash('12:00', 7), crash('18:00', 7)], { now })).toEqual({
      state: 'failed',
      cause: 'exit-code',
      message: 'Instance 0 runs, and ended 2 times since 2026-08-07T10:12:00Z. The last time: APP/PROC/WEB: Exited with status 7.',
      since: '2026-08-07T10:18:00Z',
      instance: 0,
      exitCode: 7,
      pod: 'shop-0',
      run: 'ended',
    });
  });

  test.each([
    ['disk', [evicted('18:00'), evicted('19:00')]],
    ['oom', [crash('18:00', 137, 0, ' (out of memory)'), crash('19:00', 137, 0, ' (out of memory)')]],
    ['signal', [crash('18:00', 139), crash('19:00', 139)]],
    ['unknown', [crash('18:00', 139), crash('19:00', 137, 0, ' (its node does not know how)')]],
    ['node-lost', [lost('18:00'), lost('19:00')]],
  ])('has the cause %s of the last end', (cause, events) => {
    expect(ended(events, { now })?.cause).toBe(cause);
  });

  test('has the pod of its end, except on a node whose kubelet does not answer', () => {
    expect(ended([crash('18:00', 137, 0, ' (out of memory)')], { now })).toMatchObject({ pod: 'shop-0', run: 'ended' });
    expect(ended([evicted('18:00')], { now })).toMatchObject({ pod: 'shop-0' });
    expect(ended([lost('18:00')], { now })).not.toHaveProperty('pod');
  });

  test.each([
    ['one end', [crash('19:00', 7, 1)]],
    ['one end of each instance', [crash('18:00', 7, 0), crash('19:00', 7, 1)]],
    ['one end lately', [crash('01:00', 7, 1), crash('19:00', 7, 1)]],
  ])('is well after %s, which is named', (_, events) => {
    expect(ended(events, { now })).toEqual({
      state: 'well',
      cause: 'exit-code',
      message: 'Instance 1 runs, and ended once, at 2026-08-07T10:19:00Z: APP/PROC/WEB: Exited with status 7.',
      since: '2026-08-07T10:19:00Z',
      instance: 1,
      exitCode: 7,
      pod: 'shop-0',
      run: 'ended',
    });
  });

  const ofProcess = (actor: string, minute: string): AppEvent => ({ ...crash(minute, 7), actor });

  test('is well after one end of each process, and the process is named', () => {
    expect(ended([ofProcess('web', '18:00'), ofProcess('worker', '19:00')], { now })).toEqual({
      state: 'well',
      cause: 'exit-code',
      message: "Instance 0 of 'worker' runs, and ended once, at 2026-08-07T10:19:00Z: APP/PROC/WEB: Exited with status 7.",
      since: '2026-08-07T10:19:00Z',
      process: 'worker',
      instance: 0,
      exitCode: 7,
      pod: 'shop-0',
      run: 'ended',
    });
  });

  test('fails when an instance of one process ended twice, whatever its pods are called', () => {
    const again = ofProcess('web', '19:00');
    const renamed = { ...again, description: again.description.replace('shop-0', 'shop-next-0') };
    expect(ended([ofProcess('web', '18:00'), renamed], { now })).toMatchObject({
      state: 'failed',
      message: expect.stringMatching(/^Instance 0 runs, and ended 2 times since /) as string,
    });
  });

  test.each([
    ['ends of an hour ago', [crash('01:00', 7), crash('02:00', 7)], undefined],
    ['ends before the last change', [crash('17:00', 7), crash('18:00', 7)], '2026-08-07T10:18:30Z'],
    ['other events', [at('18:00', 'audit.app.update', 'index: 0, exit_description: x'), at('19:00', 'app.crash', 'unreadable')], undefined],
  ])('is well, without a cause, after %s', (_, events, since) => {
    expect(ended(events, { since, now })).toBeUndefined();
  });
});

describe('an eviction that is not recorded yet', () => {
  const event = (minute: string, reason: string, object: string) => ({ time: `2026-08-07T10:${minute}Z`, object, reason, message: full });

  test('is told by its Event', () => {
    expect(evictedLast([event('19:00', 'Evicted', 'Pod shop-3b5-0123456789-2')], { now })).toEqual({
      state: 'well',
      cause: 'disk',
      message: `Instance 2 runs, and ended once, at 2026-08-07T10:19:00Z: ${full.trim()}`,
      since: '2026-08-07T10:19:00Z',
      instance: 2,
      pod: 'shop-3b5-0123456789-2',
      run: 'ended',
    });
  });

  test('of an instance of each process is one end of each', () => {
    const both = ['worker', 'web'].map((set) => event('19:00', 'Evicted', `Pod shop-3b5-${set}-0`));
    expect(evictedLast(both.toReversed(), { now })).toMatchObject({
      state: 'well',
      message: expect.stringMatching(/^Instance 0 runs, and ended once/) as string,
    });
    expect(evictedLast(both, { now })).toMatchObject({
      state: 'well',
      process: 'worker',
      message: expect.stringMatching(/^Instance 0 of 'worker' runs, and ended once/) as string,
    });
  });

  test('fails the app when it comes again and again', () => {
    const twice = ['19:00', '18:00'].map((minute) => event(minute, 'Evicted', 'Pod shop-3b5-0123456789-2'));
    expect(evictedLast(twice, { now })).toMatchObject({ state: 'failed', since: '2026-08-07T10:19:00Z' });
  });

  const warning = event('19:00', 'Evicted', 'Pod shop-0');

  test('is the last end after an older one that is recorded, and both count', () => {
    expect(lastEnd({ events: [crash('12:00', 7, 1)], warnings: [warning], sets }, { now })).toMatchObject({
      state: 'well',
      message: expect.stringMatching(/^Instance 0 runs, and ended once, at 2026-08-07T10:19:00Z: Pod ephemeral/) as string,
    });
    expect(lastEnd({ events: [crash('12:00', 7)], warnings: [warning], sets }, { now })).toMatchObject({
      state: 'failed',
      cause: 'disk',
      since: '2026-08-07T10:19:00Z',
    });
    expect(
      lastEnd({ events: [evicted('12:00')], warnings: [warning, event('11:59', 'Evicted', 'Pod shop-0')], sets }, { now }),
    ).toMatchObject({
      message: expect.stringMatching(/ended 2 times since 2026-08-07T10:12:00Z/) as string,
    });
  });

  test.each([
    ['a few seconds later, when the pod was gone', '19:20'],
    ['with the time at which the pod was made', '15:00'],
  ])('is not counted again once it is recorded, %s', (_, minute) => {
    expect(lastEnd({ events: [evicted(minute)], warnings: [warning], sets }, { now })).toMatchObject({
      state: 'well',
      message: expect.stringContaining('ended once') as string,
    });
  });

  test.each([
    ['another Warning', event('19:00', 'Unhealthy', 'Pod shop-3b5-0123456789-2')],
    ['one of another object', event('19:00', 'Evicted', 'Job shop')],
    ['one from before the last change', event('01:00', 'Evicted', 'Pod shop-3b5-0123456789-2')],
  ])('is not %s', (_what, warning) => {
    expect(evictedLast([warning], { now, since: '2026-08-07T10:17:00Z' })).toBeUndefined();
  });
});

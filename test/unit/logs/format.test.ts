import { describe, expect, test } from 'vitest';
import type { Pod } from '../../../src/lib/api/pod-kind.ts';
import type { Stored } from '../../../src/lib/api/object.ts';
import { sourceOf } from '../../../src/lib/logs/entry.ts';
import type { LogEntry } from '../../../src/lib/logs/entry.ts';
import { formatLogLines, stagingLines, formatTime } from '../../../src/lib/logs/format.ts';
import { defined } from '../../../src/lib/defined.ts';
import { asStored } from '../../support/stored.ts';

const entry = (text: string, more: Partial<LogEntry> = {}): LogEntry => ({
  time: '2026-08-07T10:16:20.459123456Z',
  source: { type: 'APP', process: 'web', index: 0, pod: 'p', container: 'application' },
  stream: 'OUT',
  text,
  ...more,
});

describe("a log line in cf's format", () => {
  test('has time, source, stream and text after three blanks', () => {
    expect(formatLogLines(entry('listening on 8080'), { offsetMinutes: 0 })).toEqual([
      '   2026-08-07T10:16:20.45+0000 [APP/PROC/WEB/0] OUT listening on 8080',
    ]);
  });

  test('is one line for a gap, with the clock of the lines', () => {
    const gap = (from: string | undefined, to: string | undefined): string[] => {
      const reason = 'log rotated';
      return formatLogLines(entry(reason, { gap: { reason, ...defined({ from, to }) } }), { offsetMinutes: 120 });
    };
    const [from, to] = ['2026-08-07T10:02:03.120999999Z', '2026-08-07T10:02:07.004000000Z'];
    expect(gap(from, to)).toEqual(['-- APP/PROC/WEB/0: gap 12:02:03.120 to 12:02:07.004, log rotated --']);
    expect(gap(from, undefined)).toEqual(['-- APP/PROC/WEB/0: gap after 12:02:03.120, log rotated --']);
    expect(gap(undefined, to)).toEqual(['-- APP/PROC/WEB/0: gap before 12:02:07.004, log rotated --']);
    expect(gap(undefined, undefined)).toEqual(['-- APP/PROC/WEB/0: gap, log rotated --']);
  });

  test('repeats the header if its text has several lines', () => {
    expect(formatLogLines(entry('one\r\ntwo', { stream: 'ERR' }), { offsetMinutes: 0 })).toEqual([
      '   2026-08-07T10:16:20.45+0000 [APP/PROC/WEB/0] ERR one',
      '   2026-08-07T10:16:20.45+0000 [APP/PROC/WEB/0] ERR two',
    ]);
  });

  test.each([
    [330, '2026-08-07T15:46:20.45+0530'],
    [-210, '2026-08-07T06:46:20.45-0330'],
  ])('has the time zone as an offset (%i min)', (offset, expected) => {
    expect(formatTime('2026-08-07T10:16:20.459123456Z', offset)).toBe(expected);
  });

  test('has two digits for the fraction of a time without one', () => {
    expect(formatTime('2026-08-07T10:16:20Z', 0)).toBe('2026-08-07T10:16:20.00+0000');
  });

  test('has only the text if it is of staging, and the printer indents it', () => {
    expect(stagingLines(entry('a\nb'))).toEqual(['a', 'b']);
  });
});

describe('the source of a container', () => {
  const pod = (labels: Record<string, string>, containers = ['application']): Stored<Pod> =>
    asStored<Pod>({
      metadata: { name: 'p', labels },
      spec: { containers: containers.map((name) => ({ name })) },
    });
  const k = 'korifi.cloudfoundry.org/';

  test('names the sidecar of a process', () => {
    const source = sourceOf(pod({ [`${k}process-type`]: 'web', 'apps.kubernetes.io/pod-index': '1' }), 'sidecar-0-config-server-s');
    expect(source).toMatchObject({ type: 'APP', process: 'web/SIDECAR/config-server', index: 1 });
  });

  test('has type, index and generation for app processes', () => {
    const labels = { [`${k}process-type`]: 'worker', 'apps.kubernetes.io/pod-index': '2', 'kf.cloudfoundry.org/generation': 'abc' };
    expect(sourceOf(pod(labels), 'application')).toEqual({
      type: 'APP',
      process: 'worker',
      index: 2,
      pod: 'p',
      container: 'application',
      generation: 'abc',
    });
  });

  test('is staging for every container of a build pod', () => {
    expect(sourceOf(pod({ [`${k}build-workload-name`]: 'b', [`${k}process-type`]: 'web' }, ['source', 'build']), 'build')).toMatchObject({
      type: 'STG',
      container: 'build',
    });
  });

  test('names a task', () => {
    expect(sourceOf(pod({ [`${k}task-guid`]: 't1' }), 'application')).toMatchObject({ type: 'TASK', process: 't1' });
  });

  test('is missing for injected sidecars and other pods', () => {
    expect(sourceOf(pod({ [`${k}process-type`]: 'web' }, ['istio-proxy', 'application']), 'istio-proxy')).toBeUndefined();
    expect(sourceOf(pod({}), 'application')).toBeUndefined();
  });
});

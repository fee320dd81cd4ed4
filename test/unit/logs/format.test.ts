import { describe, expect, test } from 'vitest';
import type { Pod } from '../../../src/lib/api/pod-kind.ts';
import type { Stored } from '../../../src/lib/api/object.ts';
import { sourceOf } from '../../../src/lib/logs/entry.ts';
import type { LogEntry } from '../../../src/lib/logs/entry.ts';
import { formatLogLines, stagingLines, formatTime } from '../../../src/lib/logs/format.ts';
import { asStored } from '../../support/stored.ts';

const entry = (text: string, more: Partial<LogEntry> = {}): LogEntry => ({
  time: '2026-08-07T10:16:20.459123456Z',
  source: { type: 'APP', process: 'web', index: 0, pod: 'p', container: 'application' },
  stream: 'OUT',
  text,
  ...more,
});

describe('a log line as cf prints it', () => {
  test('time, source, stream and text behind three blanks', () => {
    expect(formatLogLines(entry('listening on 8080'), { offsetMinutes: 0 })).toEqual([
      '   2026-08-07T10:16:20.45+0000 [APP/PROC/WEB/0] OUT listening on 8080',
    ]);
  });

  test('a text of several lines repeats the header', () => {
    expect(formatLogLines(entry('one\r\ntwo', { stream: 'ERR' }), { offsetMinutes: 0 })).toEqual([
      '   2026-08-07T10:16:20.45+0000 [APP/PROC/WEB/0] ERR one',
      '   2026-08-07T10:16:20.45+0000 [APP/PROC/WEB/0] ERR two',
    ]);
  });

  test.each([
    [330, '2026-08-07T15:46:20.45+0530'],
    [-210, '2026-08-07T06:46:20.45-0330'],
  ])('the time zone is written as an offset (%i min)', (offset, expected) => {
    expect(formatTime('2026-08-07T10:16:20.459123456Z', offset)).toBe(expected);
  });

  test('a time without a fraction gets two digits', () => {
    expect(formatTime('2026-08-07T10:16:20Z', 0)).toBe('2026-08-07T10:16:20.00+0000');
  });

  test('staging lines have only the text, and the printer indents them', () => {
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

  test('app processes carry type, index and generation', () => {
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

  test('every container of a build pod is staging', () => {
    expect(sourceOf(pod({ [`${k}build-workload-name`]: 'b', [`${k}process-type`]: 'web' }, ['source', 'build']), 'build')).toMatchObject({
      type: 'STG',
      container: 'build',
    });
  });

  test('tasks are named', () => {
    expect(sourceOf(pod({ [`${k}task-guid`]: 't1' }), 'application')).toMatchObject({ type: 'TASK', process: 't1' });
  });

  test('injected sidecars and foreign pods are left out', () => {
    expect(sourceOf(pod({ [`${k}process-type`]: 'web' }, ['istio-proxy', 'application']), 'istio-proxy')).toBeUndefined();
    expect(sourceOf(pod({}), 'application')).toBeUndefined();
  });
});

import { expect, test } from 'vitest';
import type { CFApp, DeploymentStatus } from '../../../src/lib/api/types.generated.ts';
import type { LogEntry } from '../../../src/lib/logs/entry.ts';
import { failedVersionEntries } from '../../../src/lib/logs/failed.ts';

const app = (deployment: Partial<DeploymentStatus>): CFApp => ({
  metadata: { name: 'a' },
  spec: { displayName: 'a', desiredState: 'STARTED', lifecycle: { type: 'docker', data: { stack: '' } } },
  status: { deployment: { id: 'x', phase: 'Failed', reason: 'Crashed', pod: 'set-2', since: '2026-01-01T00:00:05Z', ...deployment } },
});

test('the first and last lines of a version that failed are shown between notes, with the number of missing lines', () => {
  const entries = failedVersionEntries(app({ logHead: ['ROOT CAUSE'], logOmitted: 60, logTail: ['at main'] }), []);
  expect(entries.map(({ source, text }) => [source.type, source.index, text])).toEqual([
    ['KF', undefined, 'The version that failed (Crashed) is gone; it said:'],
    ['APP', 2, 'ROOT CAUSE'],
    ['KF', undefined, '... 60 lines left out ...'],
    ['APP', 2, 'at main'],
    ['KF', undefined, 'End of the version that failed.'],
  ]);
  expect(new Set(entries.map(({ time }) => time))).toEqual(new Set(['2026-01-01T00:00:05.000000000Z']));
});

test('the lines stay while the app is stopped', () => {
  const { deployment } = app({ logTail: ['at main'] }).status ?? {};
  const stopped = app({ ...deployment, phase: 'Stopped' });
  delete stopped.status?.deployment?.reason;
  expect(failedVersionEntries(stopped, [])[0]?.text).toBe('The version that failed is gone; it said:');
});

test('the lines of an existing pod are not repeated, and nothing is shown of an app that serves', () => {
  const seen: LogEntry = { time: '', source: { type: 'APP', pod: 'set-2', container: 'application' }, stream: 'OUT', text: 'at main' };
  expect(failedVersionEntries(app({ logTail: ['at main'] }), [seen])).toEqual([]);
  // A gap says that its lines cannot be read any more.
  expect(failedVersionEntries(app({ logTail: ['at main'] }), [{ ...seen, gap: { reason: 'gone' } }])).toHaveLength(3);
  expect(failedVersionEntries(app({ phase: 'Serving', logTail: ['at main'] }), [])).toEqual([]);
});

test('the lines are not shown while those of another instance of the version can be read', () => {
  const generations = [{ hash: '0123456789', process: 'web', state: 'Failed' as const, instances: 1, ready: 0 }];
  const other: LogEntry = {
    time: '',
    source: { type: 'APP', pod: 'set-1', container: 'application', generation: '0123456789' },
    stream: 'OUT',
    text: 'at main',
  };
  const failed = app({ logTail: ['at main'], generations });
  expect(failedVersionEntries(failed, [other])).toEqual([]);
  expect(failedVersionEntries(failed, [{ ...other, source: { ...other.source, generation: 'abcdef0123' } }])).toHaveLength(3);
});

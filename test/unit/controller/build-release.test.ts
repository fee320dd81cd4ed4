import { describe, expect, test } from 'vitest';
import type { Pod } from '../../../src/lib/api/pod-kind.ts';
import type { ContainerState } from '../../../src/lib/api/pod.ts';
import { releaseOf } from '../../../src/controller/builds/release.ts';

const pod = (states: Record<string, ContainerState>): Pod =>
  ({
    metadata: { name: 'b', annotations: { 'kf.cloudfoundry.org/build-ended': 'built' } },
    status: { phase: 'Running', containerStatuses: Object.entries(states).map(([name, state]) => ({ name, image: 'i', state })) },
  }) as unknown as Pod;
const ended = (exitCode: number): ContainerState => ({ terminated: { exitCode } });

describe('the export of a build', () => {
  test('is released only by the end of the build container, whatever else ends or is written to the pod', () => {
    expect(releaseOf(pod({ build: { running: {} }, source: ended(0) }))).toBeUndefined();
    expect(releaseOf(pod({ source: ended(0), registry: ended(0) }))).toBeUndefined();
    expect(releaseOf(pod({ build: { waiting: { reason: 'CrashLoopBackOff' } } }))).toBeUndefined();
    expect(releaseOf({ metadata: { name: 'b' } })).toBeUndefined();
    expect(releaseOf(pod({ build: ended(0), source: ended(0), registry: { running: {} } }))).toBe('built');
  });

  test.each([1, 20, 99, 137, 143])('is cancelled by exit code %i', (code) => {
    expect(releaseOf(pod({ build: ended(code) }))).toBe('failed');
  });
});

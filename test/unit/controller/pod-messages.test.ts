// What the message about an instance names besides the cluster's words: the Secrets of a refused pull, the limit of a sidecar.

import { expect, test } from 'vitest';
import { problemOf } from '../../../src/controller/instances/pod-state.ts';
import { sources } from '../../../src/controller/sources.ts';
import { podType } from '../../../src/lib/api/pod-kind.ts';
import { expectationsOf } from '../../../src/controller/rollout/assessment.ts';
import type { PodSpec, PodStatus } from '../../../src/lib/api/pod.ts';
import { workload } from './assessment-scene.ts';
import { asStored } from '../../support/stored.ts';

const now = Date.parse('2030-01-01T00:00:00Z');
const status = { name: 'application', image: 'registry.example/app:1', imageID: '', ready: false, restartCount: 0 };

/** The app has the limit of 128 MiB. */
const sidecars = Object.entries({ cache: '32Mi', proxy: '16Mi' }).map(([name, memory]) => ({
  name,
  command: [name],
  resources: { limits: { memory } },
}));

function messageOf(spec: Partial<PodSpec>, of: PodStatus): string | undefined {
  const pod = asStored({
    metadata: { name: 'a-0', creationTimestamp: '2030-01-01T00:00:00Z' },
    spec: { containers: [], ...spec },
    status: of,
  });
  const kept = sources('cf')
    .find(({ type }) => type === podType)
    ?.trim?.(pod) as typeof pod | undefined;
  const seen = { firstSeen: () => now, wasSeen: () => false };
  const expectations = expectationsOf({ ...workload, spec: { ...workload.spec, sidecars } });
  return kept && problemOf(kept, { now, expectations, ...seen })?.message;
}

test('a refused pull is told with the Secrets that the pod names for a password, and no other failed pull is', () => {
  const pull = (message: string, ...secrets: string[]): string | undefined =>
    messageOf(
      { imagePullSecrets: secrets.map((name) => ({ name })) },
      { containerStatuses: [{ ...status, state: { waiting: { reason: 'ErrImagePull', message } } }] },
    );
  expect(pull('401 Unauthorized', 'own')).toMatch(/cannot be pulled: 401 Unauthorized\. The pod names Secret 'own' for its pulls\.$/);
  expect(pull('401 Unauthorized', 'a', 'b')).toContain(" The pod names the Secrets 'a', 'b' for its pulls.");
  // Of more, the cache keeps the first ones.
  expect(pull('401 Unauthorized', 'a', 'b', 'c', 'd')).toContain(" The pod names the Secrets 'a', 'b', 'c' for its pulls.");
  expect(pull('401 Unauthorized')).toContain(' The pod names no Secret with a credential.');
  expect(pull('manifest unknown', 'own')).not.toContain('Secret');
});

test('a sidecar that was ended for lack of memory is told with its own limit, and not with that of the app', () => {
  const name = 'sidecar-1-proxy-s';
  const state = { terminated: { reason: 'OOMKilled', exitCode: 137, finishedAt: '2030-01-01T00:00:00Z' } };
  const of = {
    containerStatuses: [{ ...status, started: true, state: { running: { startedAt: '2030-01-01T00:00:00Z' } } }],
    initContainerStatuses: [{ ...status, name, state }],
  };
  // Of the pod itself, the cache does not keep the limits.
  expect(messageOf({}, of)).toBe(
    "The sidecar 'proxy' used more memory than its limit of 16M and was ended; 'memory' in its entry of the manifest gives it more.",
  );
});

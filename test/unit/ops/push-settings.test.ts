// What a plan changes of an app that is there.

import { expect, test } from 'vitest';
import type { CFApp, CFProcess } from '../../../src/lib/api/types.generated.ts';
import type { AppPlan } from '../../../src/lib/manifest/plan.ts';
import { metadataChanges, processChanges } from '../../../src/lib/ops/push/settings.ts';

const process = (more: object = {}): CFProcess =>
  ({
    metadata: { name: 'p' },
    spec: {
      processType: 'web',
      memoryMB: 64,
      diskQuotaMB: 512,
      healthCheck: { type: 'port', data: { timeoutSeconds: 60, invocationTimeoutSeconds: 1 } },
      ...more,
    },
  }) as CFProcess;

test('a readiness check is written with what is named, and once', () => {
  const readinessHealthCheck = { type: 'http' as const, endpoint: '/ready', intervalSeconds: 3 };
  const written = { type: 'http', data: { httpEndpoint: '/ready', intervalSeconds: 3 } };
  expect(processChanges({ type: 'web', readinessHealthCheck }, process())).toEqual({ readinessHealthCheck: written });
  expect(processChanges({ type: 'web', readinessHealthCheck }, process({ readinessHealthCheck: written }))).toEqual({});
  const slower = { intervalSeconds: 9 };
  expect(processChanges({ type: 'web', readinessHealthCheck: slower }, process({ readinessHealthCheck: written }))).toEqual({
    readinessHealthCheck: { type: 'http', data: { httpEndpoint: '/ready', intervalSeconds: 9 } },
  });
});

test('labels and annotations that differ are changes, those that are gone already are not', () => {
  const plan = { labels: { team: 'pay', old: null }, annotations: { note: 'new', gone: null } } as unknown as AppPlan;
  const app = { metadata: { labels: { team: 'pay', old: 'x', 'korifi.cloudfoundry.org/app-guid': 'g' }, annotations: { note: 'was' } } };
  expect(metadataChanges(plan, app as unknown as CFApp)).toEqual({ labels: { old: null }, annotations: { note: 'new' } });
});

// The writes of a push to an app and its processes: only differences from the server's state.

import { describe, expect, test } from 'vitest';
import type { CFApp, CFProcess } from '../../../src/lib/api/types.generated.ts';
import type { AppPlan } from '../../../src/lib/manifest/plan.ts';
import { metadataChanges, processChanges } from '../../../src/lib/ops/push/settings.ts';

/** In the form of an API server: keys sorted. */
const process: CFProcess = {
  apiVersion: 'korifi.cloudfoundry.org/v1alpha1',
  kind: 'CFProcess',
  metadata: { name: 'p', namespace: 'ns' },
  spec: {
    appRef: { name: 'a' },
    diskQuotaMB: 1024,
    healthCheck: { data: { httpEndpoint: '/health', invocationTimeoutSeconds: 1, timeoutSeconds: 45 }, type: 'http' },
    memoryMB: 64,
    processType: 'web',
  },
};

describe('the changes of a process', () => {
  test('are none if the plan matches the process', () => {
    const plan = { type: 'web', memoryMB: 64, timeoutSeconds: 45, healthCheck: { type: 'http', endpoint: '/health' } } as const;
    expect(processChanges(plan, process)).toEqual({});
  });

  test('remove the endpoint with the http check, and keep the rest', () => {
    expect(processChanges({ type: 'web', healthCheck: { type: 'process' } }, process)).toEqual({
      healthCheck: { type: 'process', data: { httpEndpoint: null, invocationTimeoutSeconds: 1, timeoutSeconds: 45 } },
    });
  });

  test('can be a single value of the check', () => {
    expect(processChanges({ type: 'web', timeoutSeconds: 90 }, process)).toEqual({
      healthCheck: { type: 'http', data: { httpEndpoint: '/health', invocationTimeoutSeconds: 1, timeoutSeconds: 90 } },
    });
  });

  test('include a readiness check with the given values, once', () => {
    const readinessHealthCheck = { type: 'http' as const, endpoint: '/ready', intervalSeconds: 3 };
    const written = { data: { httpEndpoint: '/ready', intervalSeconds: 3 }, type: 'http' as const };
    const present = { ...process, spec: { ...process.spec, readinessHealthCheck: written } };
    expect(processChanges({ type: 'web', readinessHealthCheck }, process)).toEqual({ readinessHealthCheck: written });
    expect(processChanges({ type: 'web', readinessHealthCheck }, present)).toEqual({});
    expect(processChanges({ type: 'web', readinessHealthCheck: { intervalSeconds: 9 } }, present)).toEqual({
      readinessHealthCheck: { type: 'http', data: { httpEndpoint: '/ready', intervalSeconds: 9 } },
    });
    expect(processChanges({ type: 'web', readinessHealthCheck: { type: 'process' } }, present)).toEqual({
      readinessHealthCheck: { type: 'process', data: { httpEndpoint: null, intervalSeconds: 3 } },
    });
  });
});

test('labels and annotations that differ are changed, and those that are already gone are not', () => {
  const plan = { labels: { team: 'pay', old: null }, annotations: { note: 'new', gone: null } } as unknown as AppPlan;
  const app = { metadata: { labels: { team: 'pay', old: 'x', 'korifi.cloudfoundry.org/app-guid': 'g' }, annotations: { note: 'was' } } };
  expect(metadataChanges(plan, app as unknown as CFApp)).toEqual({ labels: { old: null }, annotations: { note: 'new' } });
});

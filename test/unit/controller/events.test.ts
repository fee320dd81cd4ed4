// Names of Events: made from the object's name, and valid for the API server whatever that name is.

import { expect, test } from 'vitest';
import { EventRecorder } from '../../../src/controller/runtime/events.ts';
import { createLogger } from '../../../src/controller/runtime/log.ts';
import { configMapType, eventType } from '../../../src/lib/api/core.ts';
import { MemoryCluster } from '../../support/memory-cluster.ts';
import { asStored } from '../../support/stored.ts';

/** RFC 1123, as the API server checks it. */
const subdomain = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

test.each(['-', '.', '-a', '.a'])('a long name that is cut before, at or after %s gives a valid name', async (mark) => {
  const cluster = new MemoryCluster();
  const recorder = new EventRecorder(
    cluster,
    'one',
    createLogger('error', () => undefined),
  );
  for (const length of [198, 199, 200]) {
    const name = `${'a'.repeat(length)}${mark}${'b'.repeat(40)}`;
    recorder.record(configMapType, asStored({ metadata: { name, namespace: 'ns', uid: name } }), {
      type: 'Normal',
      reason: 'Test',
      message: '',
    });
  }
  await new Promise(setImmediate);
  const names = cluster.all(eventType).map(({ metadata }) => metadata.name ?? '');
  expect(names).toHaveLength(3);
  for (const name of names) expect(name).toMatch(subdomain);
});

import { expect, it } from 'vitest';
import { annotations } from '../../../src/lib/api/group.ts';
import { lastOperationOf } from '../../../src/lib/api/service-operation.ts';
import type { CFServiceInstance } from '../../../src/lib/api/types.generated.ts';

const instance = (more: { annotations?: Record<string, string>; status?: CFServiceInstance['status'] }): CFServiceInstance => ({
  metadata: { name: 'db', annotations: more.annotations ?? {} },
  spec: { displayName: 'db', type: 'user-provided', secretName: 'db', planGuid: '' },
  ...(more.status === undefined ? {} : { status: more.status }),
});

it.each([
  ['that the controller has not seen yet is there', {}, 'create succeeded'],
  ['that waits for a Secret of somebody else is in progress', { annotations: { [annotations.fromSecret]: 'true' } }, 'create in progress'],
  [
    'has the operation of its status',
    { status: { lastOperation: { type: 'update' as const, state: 'failed' as const } } },
    'update failed',
  ],
])('a user-provided service instance %s', (_, more, expected) => {
  const { type, state } = lastOperationOf(instance(more));
  expect(`${type} ${state}`).toBe(expected);
});

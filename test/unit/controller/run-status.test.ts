import { expect, test } from 'vitest';
import { withAbsent } from '../../../src/controller/reconcilers/process-status.ts';

const running = { state: 'RUNNING' as const, ready: true };
const quota = { reason: 'QuotaExceeded' as const, message: 'The quota of the space is used up.', final: true };

test('instances that should be there and are not say why', () => {
  expect(withAbsent({ '1': running }, 3, quota)).toEqual({
    '0': { state: 'DOWN', ready: false, reason: 'QuotaExceeded', details: 'The quota of the space is used up.' },
    '1': running,
    '2': { state: 'DOWN', ready: false, reason: 'QuotaExceeded', details: 'The quota of the space is used up.' },
  });
});

test('without a known cause nothing is said of them', () => {
  expect(withAbsent({ '0': running }, 3, undefined)).toEqual({ '0': running });
});

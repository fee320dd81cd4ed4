// What fails the bench of `kf why`: a cause that is not named, named wrong, or named late after the sign that is measured beside it.

import { expect, test } from 'vitest';
import { faultsOfCauses } from '../../bench/causes.ts';

const seen = { cause: 'oom', ms: 10_000, wrong: [] };

test('a cause that was named within 10 s of its first sign has no fault', () => {
  expect(faultsOfCauses([seen, { ...seen, cause: 'quota', ms: 0 }])).toEqual([]);
});

test.each([
  ['that was not named', { ms: undefined }, ['oom was not named']],
  ['that was named late', { ms: 10_100 }, ['oom was named 10.1 s after its first sign']],
  ['that was named wrong before', { wrong: ['signal'] }, ['oom was called signal']],
  [
    'that was only named wrong',
    { ms: undefined, wrong: ['signal', 'disk'] },
    ['oom was not named', 'oom was called signal', 'oom was called disk'],
  ],
])('a cause %s is a fault', (_what, more, faults) => {
  expect(faultsOfCauses([seen, { ...seen, ...more }])).toEqual(faults);
});

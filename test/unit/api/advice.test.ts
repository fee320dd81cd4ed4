import { expect, test } from 'vitest';
import { adviceOn } from '../../../src/lib/api/advice.ts';

test.each([
  ['health-http', 'kf set-health-check shop http --endpoint PATH', 'kf set-health-check shop http --endpoint PATH --process worker'],
  ['start-timeout', 'kf push shop -t SECONDS', "Set timeout of process 'worker' under processes: of the manifest, then: kf push shop"],
  ['command-not-found', 'kf push shop -c COMMAND', "Set command of process 'worker' under processes: of the manifest, then: kf push shop"],
  ['disk', 'kf scale shop -k DISK', 'kf scale shop --process worker -k DISK'],
] as const)('what is advised against %s changes the process that fails', (cause, ofWeb, ofWorker) => {
  const about = { bin: 'kf', app: 'shop', ns: 's' };
  expect(adviceOn(cause, about)[0]).toBe(ofWeb);
  expect(adviceOn(cause, { ...about, process: 'web' })[0]).toBe(ofWeb);
  expect(adviceOn(cause, { ...about, process: 'worker' })[0]).toBe(ofWorker);
});

test.each(['no-room', 'quota'] as const)(
  'against %s a change beside a version that serves is made again with its instances stopped first',
  (cause) => {
    const about = { bin: 'kf', app: 'shop', ns: 's' };
    expect(adviceOn(cause, { ...about, isBesideServing: true })[0]).toBe('kf restart shop --strategy recreate');
    expect(adviceOn(cause, about).join('\n')).not.toContain('recreate');
  },
);

test('against a readiness check with settings of its own, those are shown: the health check is another one', () => {
  const about = { bin: 'kf', app: 'shop', ns: 's', hasOwnReadiness: true };
  expect(adviceOn('health-http', about)).toEqual(['kf get-readiness-health-check shop', 'kf logs shop --recent']);
});

import { expect, test } from 'vitest';
import { adviceOn } from '../../../src/lib/api/advice.ts';
import { exceedsWhole } from '../../../src/lib/kube/refusals.ts';

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

test('against a quota that is smaller than one instance, the instance is made smaller', () => {
  const about = { bin: 'kf', app: 'shop', ns: 's', isBesideServing: true };
  const asked = (what: string, asks: string, used: string, limited: string) =>
    exceedsWhole(`exceeded quota: q, requested: ${what}=${asks}, used: ${what}=${used}, limited: ${what}=${limited}`);
  const memory = asked('requests.memory', '20Gi', '556Mi', '16Gi');
  expect(adviceOn('quota', { ...about, exceedsQuota: memory })).toEqual(['kf scale shop -m MEMORY', 'kf events shop']);
  const disk = asked('requests.ephemeral-storage', '2Ti', '0', '64Gi');
  expect(adviceOn('quota', { ...about, process: 'worker', exceedsQuota: disk })[0]).toBe('kf scale shop --process worker -k DISK');
  expect([asked('requests.memory', '2Gi', '15Gi', '16Gi'), asked('pods', '1', '64', '64')]).toEqual([undefined, undefined]);
});

test('against a readiness check with settings of its own, those are shown: the health check is another one', () => {
  const about = { bin: 'kf', app: 'shop', ns: 's', hasOwnReadiness: true };
  expect(adviceOn('health-http', about)).toEqual(['kf get-readiness-health-check shop', 'kf logs shop --recent']);
});

test.each([
  ['command-not-found', 'command'],
  ['oom', 'memory'],
] as const)('against %s of a sidecar, the %s of the sidecar is to be set, not that of the app', (cause, attribute) => {
  const about = { bin: 'kf', app: 'shop', ns: 's', memoryMB: 64 };
  const [first] = adviceOn(cause, { ...about, container: 'sidecar-0-proxy-s' });
  expect(first).toBe(`Set ${attribute} of sidecar 'proxy' under sidecars: of the manifest, then: kf push shop`);
  expect(adviceOn(cause, { ...about, container: 'application' })).toEqual(adviceOn(cause, about));
});

// What a kubelet says of checks explains an instance that it stopped, or that is not ready.

import { expect, test } from 'vitest';
import type { WhyEvent } from '../../../src/lib/api/results.ts';
import { withChecks } from '../../../src/lib/ops/why/checks.ts';
import type { Finding } from '../../../src/lib/ops/why/instances.ts';

const unhealthy = (time: string, message: string, pod = 'shop-0'): WhyEvent => ({
  time: `2026-08-07T10:${time}Z`,
  object: `Pod ${pod}`,
  reason: 'Unhealthy',
  message,
});
const answered = 'Liveness probe failed: HTTP probe failed with statuscode: 503';
const stopped: Finding = {
  ...{ state: 'failed', cause: 'signal', message: 'It ended.', since: '2026-08-07T10:18:14Z', instance: 0, exitCode: 137 },
  ...{ pod: 'shop-0', run: 'ended' },
};

test.each([
  ['health-http', 'HTTP probe failed with statuscode: 503'],
  ['health-http', 'Get "http://10.0.0.7:8080/": context deadline exceeded'],
  ['health-port', 'dial tcp 10.0.0.7:8080: i/o timeout'],
  ['not-listening', 'dial tcp 10.0.0.7:8080: connect: connection refused'],
])('an instance that was stopped because of its health check has the cause %s: %s', (cause, said) => {
  expect(withChecks(stopped, [unhealthy('18:00', `Liveness probe failed: ${said}`)])).toEqual({
    ...stopped,
    cause,
    message: `It ended. It was stopped because its health check failed. The last check said: ${said}`,
  });
});

test.each([
  ['with another exit code', { exitCode: 1, cause: 'exit-code' }, [unhealthy('18:00', answered)]],
  ['for its memory', { cause: 'oom' }, [unhealthy('18:00', answered)]],
  ['of another pod', {}, [unhealthy('18:00', answered, 'shop-1')]],
  ['long after that check', {}, [unhealthy('15:00', answered)]],
  ['before that check', {}, [unhealthy('19:00', answered)]],
  ['after another check', {}, [unhealthy('18:00', 'Readiness probe failed: HTTP probe failed with statuscode: 503')]],
  ['in a change that failed', { run: undefined }, [unhealthy('18:00', answered)]],
])('an instance that ended %s keeps its cause', (_, more, warnings) => {
  const found = { ...stopped, ...more } as Finding;
  expect(withChecks(found, warnings)).toEqual(found);
});

test('an instance that is not ready has the words of the last check of that', () => {
  const found: Finding = { ...stopped, cause: 'health-http', message: 'It is not ready.', run: 'present', readiness: 'shared' };
  const said = ['Readiness probe failed: the last', 'Readiness probe failed: one before'].map((text) => unhealthy('19:00', text));
  expect(withChecks(found, [unhealthy('19:01', answered), ...said]).message).toBe('It is not ready. The last check said: the last');
  expect(withChecks(found, [])).toEqual(found);
});

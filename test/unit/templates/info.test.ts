// What `kf-info` says about versions, for kfs that know less than this one.

import { expect, test } from 'vitest';
import { resolvePlan } from '../../../src/lib/ops/install/request.ts';
import { buildInfo, kfInfo } from '../../../src/templates/setup/info.ts';

test.each([
  ['0.1.0', '0.1.0'],
  ['0.2.3', '0.1.0'],
  ['0.3.0', '0.2.0'],
  ['0.11.4', '0.10.0'],
  ['1.0.0', '1.0.0'],
  ['1.4.2', '1.3.0'],
])('the oldest CLI for a controller of version %s is that of %s, also for a CLI that does not compare releases', (version, oldest) => {
  expect(kfInfo(resolvePlan({}, version, 'hostport')).oldestCli).toBe(oldest);
});

test('the description has the number that a setup of an earlier kf lacks', () => {
  const [info] = buildInfo(resolvePlan({}, '0.2.0', 'hostport'));
  expect(info?.metadata.annotations).toEqual({ 'kf.cloudfoundry.org/setup-format': expect.stringMatching(/^[1-9]\d*$/) as string });
});

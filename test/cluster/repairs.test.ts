// Ways back to a version that serves. `npm run bench -- releases` compares their times with that of a start.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { reportTime } from '../support/figures.ts';
import { Kf, ringEnv } from '../support/kf.ts';
import { repairTimes, rollbackTimes } from '../support/releases.ts';

let kf: Kf;

beforeAll(async () => {
  kf = await Kf.create();
});
afterAll(async () => {
  for (const app of ['load-repair', 'load-repair-own', 'load-back']) await kf.run(['delete', app, '-f', '-r']);
  await kf.remove();
});

const running = async (app: string): Promise<string> => (await kf.ok('app', app)).stdout;

test('a good push replaces a version that ends again and again', async () => {
  const { own, repair } = await repairTimes(kf, 'load-repair', `${ringEnv('KF_CLUSTER_NODE_REGISTRY')}/kf/crash:1`);
  reportTime('a start', own);
  reportTime('the same start over a version that ends again and again', repair);
  expect(await running('load-repair')).toMatch(/^instances: +1\/1$/m);
});

test('a rollback to a version that the cluster has built needs no registry, and no build', async () => {
  const { restart, rollback, images } = await rollbackTimes(kf, 'load-back');
  reportTime('a restart', restart);
  reportTime('a rollback', rollback);
  const [pushed, after] = images;
  expect(pushed).toMatch(/-droplets@sha256:[0-9a-f]{64}$/);
  expect(after).toBe(pushed);
  expect(await running('load-back')).toMatch(/^instances: +1\/1$/m);
});

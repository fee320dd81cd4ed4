// Users who send requests without a pause while an app of one instance is changed, and while a canary breaks. `npm run bench -- releases` does the same for
// longer, and measures it.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { reportFigure } from '../support/figures.ts';
import { Kf } from '../support/kf.ts';
import { totalOf } from '../support/load.ts';
import { canaryUnderLoad, faultsOfCanary, faultsOfRoll, rollUnderLoad } from '../support/releases.ts';

const apps = { roll: 'load-roll', canary: 'load-canary' };
let kf: Kf;
let ca: string;

beforeAll(async () => {
  kf = await Kf.create();
  ca = (await kf.ok('ca-certificate')).stdout;
});
afterAll(async () => {
  for (const app of Object.values(apps)) await kf.run(['delete', app, '-f', '-r']);
  await kf.remove();
});

test('no request fails while the only instance is replaced by a restart, a push, a restart, a restage and a rollback, and users see each version', async () => {
  const restage = async (): Promise<string> => {
    await kf.ok('set-env', apps.roll, 'VERSION', '4');
    await kf.ok('restage', apps.roll);
    return '2.4';
  };
  const rollBack = async (): Promise<string> => {
    await kf.ok('rollback', apps.roll, '-f');
    return '2.3';
  };
  const run = await rollUnderLoad(kf, apps.roll, ca, 3, [restage, rollBack]);
  reportFigure(`five changes of one instance: ${String(run.loaded.failures.length)} of ${String(totalOf(run.loaded))} requests failed`);
  expect(faultsOfRoll(run)).toEqual([]);
  expect(run.loaded.versions).toEqual(['1.0', '1.1', '2.2', '2.3', '2.4']);
});

test('a canary that breaks under load is taken back by itself: only requests of its share fail, and none after that', async () => {
  const run = await canaryUnderLoad(kf, apps.canary, ca);
  reportFigure(`a canary that breaks: ${String(run.during.failed)} of ${String(run.during.asked)} requests failed`);
  expect(faultsOfCanary(run)).toEqual([]);
});

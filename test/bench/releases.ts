// Releases under load: no failed request with one instance, a canary's share, and the times of a repair and a rollback beside those of a start.

import { ringEnv } from '../support/kf.ts';
import { totalOf } from '../support/load.ts';
import { canaryUnderLoad, faultsOfCanary, faultsOfRoll, repairTimes, rollbackTimes, rollUnderLoad } from '../support/releases.ts';
import type { Scene } from './scene.ts';
import { faultsOfTime, seconds, type Row } from './table.ts';

const rounds = 20;

export async function benchReleases({ developer: kf }: Scene): Promise<Row[]> {
  const ca = (await kf.ok('ca-certificate')).stdout;
  const { loaded, expected, times } = await rollUnderLoad(kf, 'bench-roll', ca, rounds);
  const total = totalOf(loaded);
  const seen = expected.filter((version) => loaded.versions.includes(version)).length;
  const kinds = Object.entries(loaded.asked).map(([kind, count]) => `${kind} ${String(count)}`);
  const canary = await canaryUnderLoad(kf, 'bench-canary', ca);
  const repair = await repairTimes(kf, 'bench-repair', `${ringEnv('KF_CLUSTER_NODE_REGISTRY')}/kf/crash:1`);
  const back = await rollbackTimes(kf, 'bench-back');
  for (const app of ['roll', 'canary', 'repair', 'repair-own', 'back']) await kf.ok('delete', `bench-${app}`, '-f', '-r');
  return [
    {
      what: `one instance, ${String(rounds)} pushes and restarts at 50 requests/s and a WebSocket`,
      reach: `0 failed requests, ${String(expected.length)} versions seen`,
      measured: `${String(loaded.failures.length)} of ${String(total)} failed, ${String(seen)} versions seen; each ${seconds(times)}`,
      beside: [kinds.join(', '), ...loaded.failures.slice(0, 3)].join('; '),
      faults: faultsOfRoll({ loaded, expected }),
    },
    {
      what: 'canary of 10 % that ends under load',
      reach: '≤ 10 % of the requests from its first answer until it is taken back, 0 before and after that',
      measured: `${String(canary.during.failed)} of ${String(canary.during.asked)}, then ${String(canary.after.failed)} of ${String(canary.after.asked)}`,
      faults: faultsOfCanary(canary),
    },
    {
      what: 'good push over a crash loop, until it serves',
      reach: `≤ ${seconds([repair.own + 10_000])} (own start + 10 s)`,
      measured: seconds([repair.repair]),
      beside: `own start ${seconds([repair.own])}`,
      faults: faultsOfTime('the good push', repair.repair, repair.own, 10_000),
    },
    {
      what: 'rollback of an app of source while the registry is down, until it serves',
      reach: `≤ ${seconds([back.restart + 5_000])} (restart + 5 s)`,
      measured: seconds([back.rollback]),
      beside: `its restart before ${seconds([back.restart])}`,
      faults: faultsOfTime('the rollback', back.rollback, back.restart, 5_000),
    },
  ];
}

// The controller is killed inside the steps of its reconcilers, in the whole life of an org: the next one, which knows nothing of it, brings everything
// to the same end.

import type { AddressInfo } from 'node:net';
import { createServer, type Server } from 'node:tls';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { createAuthority, issueServerCertificate } from '../../../src/controller/certificates/x509.ts';
import { chance } from '../../chaos/seed.ts';
import { patienceMs } from '../../support/until.ts';
import { allObjects, differences, orphans } from './all-objects.ts';
import { reconcilerNames, type Kill, type Moment } from './killed-controller.ts';
import { settled } from './settled.ts';
import { Life, stages, type Stage } from './whole-life.ts';

/** The lives of a test run side by side. The kills of one life are far from each other. */
const lives = 10;
const timeoutMs = 10 * 60_000;

let gateway: Server;
let https: string;
/** The objects after each stage of a life in which nothing is killed. */
const calm = new Map<Stage, string[]>();
/** How often each reconciler wrote each kind by each verb in that life, in the order of the first write. */
const steps = new Map<string, number>();
/** How often the controller was killed at each of them. */
const hits = new Map<string, number>();

beforeAll(async () => {
  const period = { notBefore: new Date(Date.now() - 3_600_000), notAfter: new Date('2035-01-02T03:04:05Z') };
  const pair = issueServerCertificate(createAuthority('an authority', period), 'gateway', ['*.apps.example'], period);
  gateway = createServer({ cert: pair.certificate, key: pair.key });
  gateway.on('tlsClientError', () => undefined);
  await new Promise<void>((resolve) => gateway.listen(0, '127.0.0.1', resolve));
  https = `https://127.0.0.1:${String((gateway.address() as AddressInfo).port)}`;
  const life = await Life.begin(https);
  for (const stage of stages) {
    await life.live(stage);
    await settled(life.cluster);
    expect(orphans(life.cluster)).toEqual([]);
    calm.set(stage, allObjects(life.cluster));
  }
  for (const step of life.controller.steps) steps.set(step, (steps.get(step) ?? 0) + 1);
  await life.end();
}, timeoutMs);
afterAll(() => {
  gateway.close();
  process.stderr.write(report());
});

const reconcilerOf = (step: string): string => step.slice(0, step.indexOf(' '));

/** A line for each reconciler with the writes at which the controller was killed. */
function report(): string {
  const byReconciler = Map.groupBy([...hits].toSorted(), ([step]) => reconcilerOf(step));
  const lines = [...byReconciler].map(([name, all]) => {
    const writes = all.map(([step, count]) => `${step.slice(name.length + 1)} (${String(count)})`);
    return `  ${name}: ${writes.join(', ')}`;
  });
  return `The controller was killed, with the number of kills, at these writes of\n${lines.join('\n')}\n`;
}

/** Waits until the objects are those of the calm life. @throws Error with what differs */
async function sameAs(life: Life, stage: Stage): Promise<void> {
  await vi.waitFor(
    () => {
      const lost = orphans(life.cluster).map((name) => `orphan ${name}`);
      const all = [...lost, ...differences(calm.get(stage) ?? [], allObjects(life.cluster))];
      if (all.length > 0) throw new Error(`after the stage '${stage}': ${all.join('; ')}`);
    },
    { timeout: patienceMs, interval: 100 },
  );
}

const told = ({ step, moment, nth }: Kill): string => `${moment} ${step}${nth === 1 ? '' : ` (${String(nth)})`}`;

/** A life with these kills. @returns those that happened. @throws Error naming them when it does not come to the same end */
async function disturbed(kills: readonly Kill[]): Promise<Kill[]> {
  const life = await Life.begin(https, kills);
  const done = (): Kill[] => kills.filter(({ step }) => !life.controller.missed.includes(step));
  try {
    for (const stage of stages) {
      await life.live(stage);
      if (stage === 'gone') await settled(life.cluster);
      await sameAs(life, stage);
    }
    // No command of a task runs twice, and no build.
    expect([...life.podsOfJobs].filter(([, pods]) => pods > 1)).toEqual([]);
  } catch (cause) {
    throw new Error(`killed ${done().map(told).join(', ')}: ${(cause as Error).message}`, { cause });
  } finally {
    await life.end();
  }
  for (const { step } of done()) hits.set(step, (hits.get(step) ?? 0) + 1);
  return done();
}

/** Deals the kills to several lives. @returns those that happened */
async function allDisturbed(kills: readonly Kill[]): Promise<Kill[]> {
  const dealt = Array.from({ length: lives }, (_, life) => kills.filter((__, at) => at % lives === life));
  const ends = await Promise.allSettled(dealt.map((own) => disturbed(own)));
  expect(ends.flatMap((end) => (end.status === 'rejected' ? [(end.reason as Error).message] : []))).toEqual([]);
  return ends.flatMap((end) => (end.status === 'fulfilled' ? end.value : []));
}

describe('a life in which the controller is killed at writes of every reconciler ends as one without a kill', () => {
  const moments: [string, Moment][] = [
    ['before it is done', 'before'],
    ['after it is done and before its answer', 'after'],
  ];
  test.each(moments)(
    'at the first write of each reconciler, verb and kind, %s',
    async (_, moment) => {
      const done = await allDisturbed([...steps.keys()].map((step) => ({ step, moment, nth: 1 })));
      const reconcilers = new Set(done.map(({ step }) => reconcilerOf(step)));
      expect(reconcilerNames().filter((name) => !reconcilers.has(name))).toEqual([]);
    },
    timeoutMs,
  );

  test(
    'at a later write of each reconciler, verb and kind',
    async () => {
      const random = chance(1);
      const several = [...steps].filter(([, count]) => count > 1);
      const drawn = several.map(([step, count]): Kill => {
        const nth = 2 + Math.floor(random() * (count - 1));
        return { step, moment: random() < 0.5 ? 'before' : 'after', nth };
      });
      const done = await allDisturbed(drawn);
      // One whose number is not reached is left out: a controller that starts anew needs fewer or more writes.
      expect(done.length).toBeGreaterThan(several.length / 2);
    },
    timeoutMs,
  );
});

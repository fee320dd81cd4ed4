// `npm run chaos -- binds` without a cluster: which commands it runs, what it takes as a failure, and what it declares.

import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, describe, expect, test } from 'vitest';
import { BindsSession, dealtKills, planOf, type BindsOptions, type BindsPlayed } from '../../chaos/binds.ts';
import { chance } from '../../chaos/seed.ts';
import type { Ran } from '../../support/kf.ts';

/** kf, and the services that it has bound, by app. */
class PlayedKf {
  readonly commands: string[][] = [];
  readonly bound = new Map<string, boolean>();
  /** The exit code of the next commands; afterwards they succeed. */
  codes: number[] = [];
  /** Commands of one app never run side by side. */
  readonly #busy = new Set<string>();

  async run(args: string[]): Promise<Ran> {
    const [verb = '', app = ''] = args;
    this.commands.push(args);
    if (this.#busy.has(app)) throw new Error(`two commands of ${app} run at the same time`);
    this.#busy.add(app);
    await sleep(1);
    this.#busy.delete(app);
    const code = this.codes.shift() ?? 0;
    if (code !== 0) return { code, stdout: '', stderr: 'It took too long.', milliseconds: 1 };
    if (verb === 'bind-service' && this.bound.get(app) === true) throw new Error(`${app} is bound already`);
    if (verb !== 'push') this.bound.set(app, verb === 'bind-service');
    return { code, stdout: '', stderr: '', milliseconds: 1 };
  }

  ok(...args: string[]): Promise<Ran> {
    return this.run(args);
  }
}

let kf: PlayedKf;
let kills: string[];
beforeEach(() => {
  kf = new PlayedKf();
  kills = [];
});

const play = (more: Partial<BindsOptions> = {}): Promise<BindsPlayed> => {
  const kill = (name: string) => (): Promise<boolean> => Promise.resolve(kills.push(name) % 2 === 1);
  const options: BindsOptions = {
    seed: 7,
    pushes: 10,
    binds: 30,
    meanMs: 0.5,
    pauseMs: 1,
    leastKills: 0,
    log: () => undefined,
    image: (version) => `sample:${String(version)}`,
    kills: { 'controller killed': kill('killed'), 'controller deleted': kill('deleted') },
    ...more,
  };
  return new BindsSession(kf, options).play();
};
const ofVerb = (...verbs: string[]): string[][] => kf.commands.filter(([verb = '']) => verbs.includes(verb));

describe('a session of pushes and binds', () => {
  test('makes as many pushes and binds as asked, of several apps, each of which begins with a push', async () => {
    const { tally, declared, findings } = await play();
    expect([ofVerb('push').length, ofVerb('bind-service', 'unbind-service').length, findings]).toEqual([10, 60, []]);
    expect([tally.made('bind-service'), tally.made('unbind-service')]).toEqual([30, 30]);
    expect(tally.made('push') + tally.made('bind-service') + tally.made('unbind-service')).toBe(70);
    expect([...declared.keys()]).toEqual(['binds-a', 'binds-b', 'binds-c', 'binds-d']);
    for (const app of declared.keys()) expect(kf.commands.find(([, name]) => name === app)?.[0]).toBe('push');
    expect([...declared].map(([name, app]) => [name, app?.bound])).toEqual([...declared.keys()].map((name) => [name, kf.bound.get(name)]));
  });

  test('has the same order for the same seed, and another one for another seed', () => {
    const ordinary = { pushes: 50, binds: 200 };
    const plan = planOf({ seed: 3, ...ordinary });
    expect(planOf({ seed: 3, ...ordinary })).toEqual(plan);
    expect(planOf({ seed: 4, ...ordinary })).not.toEqual(plan);
    expect([...plan.values()].flat().filter((step) => step === 'push')).toHaveLength(50);
    expect([...plan.values()].flat()).toHaveLength(450);
  });

  test('counts a kill only when a controller was there', async () => {
    const { kills: counted } = await play();
    expect([...counted.values()].reduce((sum, count) => sum + count, 0)).toBe(Math.ceil(kills.length / 2));
    expect(kills.length).toBeGreaterThan(1);
  });

  test('repeats a command that was cut off, and counts it', async () => {
    kf.codes = [0, 0, 0, 0, 12, 9, 11];
    const { tally, findings } = await play();
    expect([tally.failures.map((failure) => failure.class), findings]).toEqual([[12, 9, 11], []]);
    expect(tally.commands).toBe(73);
  });

  test('reports an error that no kill excuses, also when the repetition succeeds', async () => {
    kf.codes = [0, 0, 0, 0, 1];
    const { findings } = await play();
    expect(findings).toEqual([expect.stringMatching(/^kf push binds-a .* ended with class 1: It took too long\.$/)]);
  });

  test('reports a command that never succeeds', async () => {
    kf.codes = [0, ...Array.from({ length: 8 }, () => 12)];
    const { findings } = await play({ pushes: 1, binds: 2 });
    expect(findings).toEqual([expect.stringContaining('kf push binds-a -o sample:1 -m 64M still fails: It took too long.')]);
    expect(ofVerb('bind-service')).toEqual([]);
  });

  test('goes on binding until each kind of kill has happened often enough, and the process of one pod', async () => {
    const { kills: counted, findings, declared } = await play({ pushes: 1, binds: 1, meanMs: 5, leastKills: 4 });
    expect(findings).toEqual([]);
    expect(counted.get('controller killed')).toBeGreaterThanOrEqual(4);
    expect(counted.get('controller deleted')).toBeGreaterThanOrEqual(4);
    expect(kills.join(' ')).toMatch(/(killed ){4}/);
    expect(ofVerb('bind-service').length).toBeGreaterThan(1);
    expect(declared.get('binds-a')?.bound).toBe(kf.bound.get('binds-a'));
  });

  test('reports the kills that have not happened when its time is over', async () => {
    expect((await play({ meanMs: 1e9, leastKills: 3, mostMs: 20 })).findings).toEqual([
      'controller killed only 0 times, not 3',
      'controller deleted only 0 times, not 3',
      'the process of one pod was killed only 0 times, not 3',
    ]);
  });

  test('deals kills of one process in a row, and deletions around them', () => {
    const dealt = dealtKills(3, chance(5));
    expect(dealt.toSorted()).toEqual([...Array<string>(3).fill('controller deleted'), ...Array<string>(3).fill('controller killed')]);
    expect(dealt.join(' ')).toContain('controller killed controller killed controller killed');
    expect(dealtKills(3, chance(5))).toEqual(dealt);
  });
});

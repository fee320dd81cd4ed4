// Many pushes and binds, those of several apps side by side, while the controller is killed at random moments.

import { setTimeout as sleep } from 'node:timers/promises';
import type { Kf } from '../support/kf.ts';
import { Commands, sampleImage } from './commands.ts';
import { deleteControllerPod, killControllerProcess } from './faults.ts';
import { chance } from './seed.ts';
import { after, commandOf, serviceOf, shuffled, type Declared, type Draw, type StepName } from './steps.ts';
import { Tally } from './tally.ts';

/** How a controller ends. @returns false when none was there to be killed */
export type Kills = Record<'controller killed' | 'controller deleted', () => Promise<boolean>>;

const realKills: Kills = {
  'controller killed': () => Promise.resolve(killControllerProcess() > 0),
  'controller deleted': async () => (await deleteControllerPod()) > 0,
};
const killNames = ['controller killed', 'controller deleted'] as const satisfies readonly (keyof Kills)[];
const stepNames = ['push', 'bind-service', 'unbind-service'] as const satisfies readonly StepName[];
type BindsStep = (typeof stepNames)[number];

/** Commands that run side by side; each is a process of its own, and each push starts an instance. */
const mostApps = 4;
const usualLeast = 3;
const usualMostMs = 20 * 60_000;
/** Where a kubelet waits before it starts the process again, the next kill tries so many times in the mean time between two. */
const triesPerMean = 20;
/** No step of this session draws anything. */
const noDraw: Draw = { instances: 1, value: '' };

export interface BindsOptions {
  seed: number;
  pushes: number;
  /** Each is removed again: so many commands bind, and as many unbind. */
  binds: number;
  /** Mean time between two kills. */
  meanMs: number;
  /** How often each kind of kill must have happened, and the process be killed without a new pod between. Default: 3. */
  leastKills?: number;
  /** So long after its begin, a session goes on binding while kills are missing. Default: 20 minutes. */
  mostMs?: number;
  log: (line: string) => void;
  /** Default: those of the ring's cluster. */
  kills?: Kills;
  /** Default: the ready image of the ring's cluster. */
  image?: (version: number) => string;
  /** Between two tries of one command. */
  pauseMs?: number;
}

export interface BindsPlayed {
  declared: Map<string, Declared | undefined>;
  tally: Tally;
  /** How often the controller was killed, also between two commands. */
  kills: Map<string, number>;
  findings: string[];
}

/** What is done to each app, in its order. The first is a push, because there is no app before. */
export function planOf({ seed, pushes, binds }: Pick<BindsOptions, 'seed' | 'pushes' | 'binds'>): Map<string, ('push' | 'bind')[]> {
  const random = chance(seed);
  const count = Math.max(1, Math.min(mostApps, pushes));
  const share = (total: number, index: number): number => Math.floor(total / count) + (index < total % count ? 1 : 0);
  return new Map(
    Array.from({ length: count }, (_, index) => {
      const later = [
        ...Array.from({ length: share(pushes, index) - 1 }, () => 'push' as const),
        ...Array.from({ length: 2 * share(binds, index) }, () => 'bind' as const),
      ];
      return [`binds-${String.fromCharCode(97 + index)}`, ['push' as const, ...shuffled(later, random)]];
    }),
  );
}

/** The next kills: the process of one pod several times, so that its kubelet waits longer and longer, and as many deletions in any order beside them. */
export function dealtKills(least: number, random: () => number): (keyof Kills)[] {
  const rows = [
    Array.from({ length: Math.max(1, least) }, () => 'controller killed' as const),
    ...Array.from({ length: Math.max(1, least) }, () => ['controller deleted' as const]),
  ];
  return shuffled(rows, random).flat();
}

export class BindsSession {
  readonly #kf: Pick<Kf, 'run' | 'ok'>;
  readonly #options: BindsOptions;
  readonly #tally = new Tally(killNames, stepNames);
  readonly #commands: Commands;
  readonly #declared = new Map<string, Declared | undefined>();
  readonly #kills = new Map<string, number>();
  /** The steps whose commands run now, by app. */
  readonly #running = new Map<string, BindsStep>();
  #lastKill = 'none';
  /** Kills of the process since the last new pod, and the most of them. */
  #row = 0;
  #longestRow = 0;
  #ends = 0;

  constructor(kf: Pick<Kf, 'run' | 'ok'>, options: BindsOptions) {
    this.#kf = kf;
    this.#options = options;
    this.#commands = new Commands(kf, this.#tally, options.log, options.pauseMs);
  }

  async play(): Promise<BindsPlayed> {
    const plan = planOf(this.#options);
    this.#ends = Date.now() + (this.#options.mostMs ?? usualMostMs);
    for (const app of plan.keys()) await this.#kf.ok('create-user-provided-service', serviceOf(app), '-p', '{"url":"chaos"}');
    const done = new AbortController();
    const killing = this.#killUntil(done.signal);
    const ends = await Promise.allSettled([...plan].map(([app, steps]) => this.#live(app, steps)));
    done.abort();
    await killing;
    const { findings } = this.#commands;
    for (const end of ends) if (end.status === 'rejected') findings.push(String(end.reason));
    findings.push(...this.#missingKills());
    return { declared: this.#declared, tally: this.#tally, kills: this.#kills, findings };
  }

  /** What no kill has met yet. */
  #missingKills(): string[] {
    const { leastKills: least = usualLeast } = this.#options;
    const times = (count: number): string => `only ${String(count)} times, not ${String(least)}`;
    const few = killNames.map((kill) => ({ kill, count: this.#kills.get(kill) ?? 0 })).filter(({ count }) => count < least);
    return [
      ...few.map(({ kill, count }) => `${kill} ${times(count)}`),
      ...(this.#longestRow < least ? [`the process of one pod was killed ${times(this.#longestRow)}`] : []),
    ];
  }

  /** The times between kills are drawn from an exponential distribution. */
  async #killUntil(done: AbortSignal): Promise<void> {
    const { seed, meanMs, leastKills = usualLeast } = this.#options;
    // Other numbers than those of the plan, so that the times do not follow from it.
    const random = chance(seed + 1);
    for (let dealt: (keyof Kills)[] = []; ;) {
      if (dealt.length === 0) dealt = dealtKills(leastKills, random);
      const kill = dealt.shift() ?? 'controller killed';
      await sleep(-Math.log(1 - random()) * meanMs, undefined, { signal: done }).catch(() => undefined);
      while (!done.aborted && !(await this.#kill(kill)))
        await sleep(meanMs / triesPerMean, undefined, { signal: done }).catch(() => undefined);
      if (done.aborted) return;
    }
  }

  /** @returns false when no controller was there. A kill that is refused is no kill, and is not tried again. */
  async #kill(kill: keyof Kills): Promise<boolean> {
    const { kills = realKills, log } = this.#options;
    const steps = [...this.#running.values()];
    const refused = (error: unknown): void => void this.#commands.findings.push(`${kill}: ${String(error)}`);
    const wasThere = await kills[kill]().catch(refused);
    log(`${kill} during ${steps.join(', ')}${wasThere === true ? '' : ': none was there'}`);
    if (wasThere !== true) return wasThere === undefined;
    this.#lastKill = kill;
    this.#kills.set(kill, (this.#kills.get(kill) ?? 0) + 1);
    this.#row = kill === 'controller killed' ? this.#row + 1 : 0;
    this.#longestRow = Math.max(this.#longestRow, this.#row);
    for (const step of steps) this.#tally.hit(kill, step);
    return true;
  }

  async #live(name: string, steps: readonly ('push' | 'bind')[]): Promise<void> {
    this.#declared.set(name, undefined);
    for (const one of steps) await this.#next(name, one);
    while (this.#missingKills().length > 0 && Date.now() < this.#ends) await this.#next(name, 'bind');
  }

  async #next(name: string, one: 'push' | 'bind'): Promise<void> {
    const isBound = this.#declared.get(name)?.bound === true;
    await this.#make(name, one === 'push' ? one : isBound ? 'unbind-service' : 'bind-service');
  }

  async #make(name: string, step: BindsStep): Promise<void> {
    const app = this.#declared.get(name);
    const started = Date.now();
    const args = commandOf(step, name, app, noDraw, this.#options.image ?? sampleImage);
    this.#running.set(name, step);
    await this.#commands.again(args, () => this.#lastKill).finally(() => this.#running.delete(name));
    this.#tally.took(step, Date.now() - started);
    this.#declared.set(name, after(step, app, noDraw));
  }
}

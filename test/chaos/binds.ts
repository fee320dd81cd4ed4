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
  'controller deleted': async () => {
    await deleteControllerPod();
    return true;
  },
};
const killNames = ['controller killed', 'controller deleted'] as const satisfies readonly (keyof Kills)[];
const stepNames = ['push', 'bind-service', 'unbind-service'] as const satisfies readonly StepName[];
type BindsStep = (typeof stepNames)[number];

/** Commands that run side by side; each is a process of its own, and each push starts an instance. */
const mostApps = 4;
/** No step of this session draws anything. */
const noDraw: Draw = { instances: 1, value: '' };

export interface BindsOptions {
  seed: number;
  pushes: number;
  /** Commands that bind or unbind. */
  binds: number;
  /** Mean time between two kills. */
  meanMs: number;
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
        ...Array.from({ length: share(binds, index) }, () => 'bind' as const),
      ];
      return [`binds-${String.fromCharCode(97 + index)}`, ['push' as const, ...shuffled(later, random)]];
    }),
  );
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

  constructor(kf: Pick<Kf, 'run' | 'ok'>, options: BindsOptions) {
    this.#kf = kf;
    this.#options = options;
    this.#commands = new Commands(kf, this.#tally, options.log, options.pauseMs);
  }

  async play(): Promise<BindsPlayed> {
    const plan = planOf(this.#options);
    for (const app of plan.keys()) await this.#kf.ok('create-user-provided-service', serviceOf(app), '-p', '{"url":"chaos"}');
    const done = new AbortController();
    const killing = this.#killUntil(done.signal);
    const ends = await Promise.allSettled([...plan].map(([app, steps]) => this.#live(app, steps)));
    done.abort();
    await killing;
    const { findings } = this.#commands;
    for (const end of ends) if (end.status === 'rejected') findings.push(String(end.reason));
    if (this.#kills.size === 0) findings.push('the controller was never killed');
    return { declared: this.#declared, tally: this.#tally, kills: this.#kills, findings };
  }

  /** The times between kills are drawn from an exponential distribution. */
  async #killUntil(done: AbortSignal): Promise<void> {
    const { seed, meanMs, log, kills = realKills } = this.#options;
    // Other numbers than those of the plan, so that the times do not follow from it.
    const random = chance(seed + 1);
    for (;;) {
      const pauseMs = -Math.log(1 - random()) * meanMs;
      const kill = killNames[Math.floor(random() * killNames.length)] ?? 'controller killed';
      await sleep(pauseMs, undefined, { signal: done }).catch(() => undefined);
      if (done.aborted) return;
      const steps = [...this.#running.values()];
      const wasThere = await kills[kill]().catch((error: unknown) => this.#untold(kill, error));
      log(`${kill} after ${(pauseMs / 1_000).toFixed(1)} s, during ${steps.join(', ')}${wasThere ? '' : ': none was there'}`);
      if (!wasThere) continue;
      this.#lastKill = kill;
      this.#kills.set(kill, (this.#kills.get(kill) ?? 0) + 1);
      for (const step of steps) this.#tally.hit(kill, step);
    }
  }

  /** A kill that is refused is no kill. */
  #untold(kill: string, error: unknown): false {
    this.#commands.findings.push(`${kill}: ${String(error)}`);
    return false;
  }

  async #live(name: string, steps: readonly ('push' | 'bind')[]): Promise<void> {
    this.#declared.set(name, undefined);
    for (const one of steps) {
      const isBound = this.#declared.get(name)?.bound === true;
      await this.#make(name, one === 'push' ? one : isBound ? 'unbind-service' : 'bind-service');
    }
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

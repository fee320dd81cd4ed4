// A session of everyday commands while programs are killed. Each turn has one fault at a time that the seed decides, then some commands in peace.

import { setTimeout as sleep } from 'node:timers/promises';
import type { Kf } from '../support/kf.ts';
import { Commands, sampleImage } from './commands.ts';
import {
  apiServerAnswers,
  controllerReady,
  deleteControllerPod,
  deleteGatewayPod,
  deleteRegistryPod,
  killApiServer,
  killControllerProcess,
} from './faults.ts';
import { interrupted } from './interrupt.ts';
import { chance } from './seed.ts';
import {
  after,
  commandOf,
  isPossible,
  preparing,
  serviceOf,
  shuffled,
  stepNames,
  type Declared,
  type Draw,
  type StepName,
} from './steps.ts';
import { Tally } from './tally.ts';

/** The faults that do not end the command itself. @returns false when there was nothing to be ended */
const serverFaults = {
  'controller killed': () => Promise.resolve(killControllerProcess() > 0),
  'controller deleted': async () => (await deleteControllerPod()) > 0,
  'registry deleted': async () => (await deleteRegistryPod()) > 0,
  'gateway deleted': async () => (await deleteGatewayPod()) > 0,
  'API server killed': async () => {
    await killApiServer();
    return true;
  },
} satisfies Record<string, () => Promise<boolean>>;
type ServerFault = keyof typeof serverFaults;
type Fault = ServerFault | 'command killed';
export const faultNames = ['command killed', ...(Object.keys(serverFaults) as ServerFault[])] as const;

const allSteps: ReadonlySet<StepName> = new Set(stepNames);
/** Variables are a Secret until the next start. */
const ofController: ReadonlySet<StepName> = new Set(stepNames.filter((step) => step !== 'set-env'));

/** The steps that use what a fault ends. Ready images do not come from the registry: it is deleted to show that no step needs it. */
const users: Readonly<Record<Fault, ReadonlySet<StepName>>> = {
  'command killed': allSteps,
  'controller killed': ofController,
  'controller deleted': ofController,
  'registry deleted': new Set(),
  'gateway deleted': new Set(['push', 'restart', 'start', 'rollback', 'map-route', 'unmap-route']),
  'API server killed': allSteps,
};

/** Whether a step uses what the fault ends. */
export const usesPart = (step: string, fault: string): boolean => users[fault as Fault].has(step as StepName);

/** Injects a fault. @returns whether it hit: something was ended, and the command still ran then */
export async function isHit(end: () => Promise<boolean>, isRunning: () => boolean): Promise<boolean> {
  const wasRunning = isRunning();
  return (await end()) && wasRunning && isRunning();
}

/** How many commands a session of so many minutes makes at least. */
export const leastCommands = (minutes: number): number => Math.floor((200 * minutes) / 30);

const waitsForInstances: ReadonlySet<StepName> = new Set(['push', 'restart', 'start', 'rollback', 'scale', 'stop']);

export interface SessionOptions {
  seed: number;
  apps: readonly string[];
  /** Turns; without it, turns are made until the time is up, each step was hit, and there were {@link leastCommands}. */
  turns?: number;
  minutes?: number;
  /** Mean time between two faults. */
  meanMs: number;
  log: (line: string) => void;
}

export interface Played {
  declared: Map<string, Declared | undefined>;
  tally: Tally;
  /** Outcomes that no fault excuses. */
  findings: string[];
}

interface Turn {
  fault: Fault | undefined;
  /** From the start of the command. */
  delayMs: number;
  draw: Draw;
}

export class ChaosSession {
  readonly #kf: Kf;
  readonly #options: SessionOptions;
  readonly #random: () => number;
  readonly #apps: Map<string, Declared | undefined>;
  readonly #tally = new Tally(faultNames, stepNames, usesPart);
  readonly #commands: Commands;
  /** Milliseconds of each step without a fault. */
  readonly #quickest = new Map<StepName, number>();
  #steps: StepName[] = [];
  #faults: Fault[] = [];

  constructor(kf: Kf, options: SessionOptions) {
    this.#kf = kf;
    this.#options = options;
    this.#random = chance(options.seed);
    this.#commands = new Commands(kf, this.#tally, options.log);
    this.#apps = new Map(options.apps.map((name) => [name, undefined]));
  }

  async play(): Promise<Played> {
    const { turns, minutes = 0, meanMs } = this.#options;
    for (const app of this.#apps.keys()) await this.#kf.ok('create-user-provided-service', serviceOf(app), '-p', '{"url":"chaos"}');
    const ends = Date.now() + minutes * 60_000;
    for (let turn = 1; turns === undefined ? Date.now() < ends || this.#isMissing(turn) : turn <= turns; turn += 1) {
      const next = Date.now() - Math.log(1 - this.#random()) * meanMs;
      await this.#turn(turn);
      const calm = meanMs === 0 ? 0 : Math.floor(this.#random() * 3);
      for (let n = 0; n < calm; n += 1) await this.#step(this.#peaceful(), { fault: undefined, delayMs: 0, draw: this.#draw() });
      await sleep(Math.max(0, next - Date.now()));
    }
    await apiServerAnswers();
    await controllerReady();
    return { declared: this.#apps, tally: this.#tally, findings: this.#commands.findings };
  }

  /** After the time: a fault can come too late for a quick step, and a slow machine makes fewer commands. */
  #isMissing(turn: number): boolean {
    const { missedSteps, missedFaults, done } = this.#tally;
    return turn < 400 && (missedSteps.length > 0 || missedFaults.length > 0 || done < leastCommands(this.#options.minutes ?? 0));
  }

  /** Each step and each fault comes as often as the others: both are dealt from shuffled decks. */
  async #turn(turn: number): Promise<void> {
    if (this.#steps.length === 0) this.#steps = shuffled(stepNames, this.#random);
    if (this.#faults.length === 0) this.#faults = shuffled(faultNames, this.#random);
    const [step, fault] = [this.#steps.pop(), this.#faults.pop()];
    if (step === undefined || fault === undefined) return;
    const draw = this.#draw();
    // At some moment of the command; those that wait for instances last longer than the others, and none longer than it took without a fault.
    const most = Math.min(waitsForInstances.has(step) ? 2_300 : 800, this.#quickest.get(step) ?? Infinity);
    const delayMs = most * (0.2 + 0.8 * this.#random());
    this.#options.log(`turn ${turn}: ${step}, ${fault} after ${Math.round(delayMs)} ms`);
    await this.#step(step, { fault, delayMs, draw });
  }

  #draw(): Draw {
    return { instances: 1 + Math.floor(this.#random() * 2), value: `v${Math.floor(this.#random() * 1_000_000)}` };
  }

  #peaceful(): StepName {
    return shuffled(stepNames, this.#random).find((step) => step !== 'delete') ?? 'restart';
  }

  /** Makes the step with the first app that allows it; without one, makes it possible first. */
  async #step(step: StepName, turn: Turn): Promise<void> {
    const names = shuffled([...this.#apps.keys()], this.#random);
    const name = names.find((app) => isPossible(step, this.#apps.get(app))) ?? names[0] ?? '';
    while (!isPossible(step, this.#apps.get(name))) {
      const first = preparing(step, this.#apps.get(name));
      await this.#make(name, first, { fault: undefined, delayMs: 0, draw: turn.draw });
    }
    await this.#make(name, step, turn);
  }

  async #make(name: string, step: StepName, turn: Turn): Promise<void> {
    const app = this.#apps.get(name);
    const target = step === 'rollback' && app !== undefined ? await this.#earlier(name, app) : undefined;
    const args = commandOf(step, name, app, turn.draw, sampleImage, target);
    const started = Date.now();
    await this.#untilDone(step, args, turn);
    const took = Date.now() - started;
    this.#tally.took(step, took);
    if (turn.fault === undefined) this.#quickest.set(step, Math.min(took, this.#quickest.get(step) ?? Infinity));
    const next = after(step, app, turn.draw, target === undefined ? undefined : app?.history.get(target));
    this.#apps.set(name, next);
    if (next !== undefined && ['push', 'restart', 'start', 'rollback'].includes(step)) await this.#note(name, next);
  }

  /** The newest revision that does not run, and of which the session knows what it was started with. */
  async #earlier(name: string, app: Declared): Promise<number | undefined> {
    const revisions = await this.#revisions(name);
    return revisions.find(({ version, deployed, deployable }) => deployable && !deployed && app.history.has(version))?.version;
  }

  async #note(name: string, app: Declared): Promise<void> {
    const newest = (await this.#revisions(name))[0]?.version;
    if (newest !== undefined) app.history.set(newest, app.running);
  }

  async #revisions(name: string): Promise<{ version: number; deployed: boolean; deployable: boolean }[]> {
    const ran = await this.#commands.again(['revisions', name, '--json'], () => 'none');
    return (JSON.parse(ran.stdout) as { result: { version: number; deployed: boolean; deployable: boolean }[] }).result;
  }

  async #untilDone(step: StepName, args: string[], { fault, delayMs }: Turn): Promise<void> {
    if (fault === undefined) return void (await this.#commands.again(args, () => 'none'));
    this.#tally.commands += 1;
    if (fault === 'command killed') {
      const { code, milliseconds } = await interrupted(this.#kf.start(args), 'SIGKILL', delayMs);
      if (code === null) this.#tally.hit(fault, step);
      else this.#options.log(`  ${args.join(' ')} had ended before it was killed (${code}, ${Math.round(milliseconds)} ms)`);
      return void (await this.#commands.again(args, () => fault));
    }
    const running = { now: true };
    const inject = async (): Promise<void> => {
      await sleep(delayMs);
      if (await isHit(serverFaults[fault], () => running.now)) this.#tally.hit(fault, step);
      else this.#options.log(`  ${fault} hit nothing`);
      if (fault === 'API server killed') await apiServerAnswers();
    };
    const injected = inject();
    const ran = await this.#commands.run(args).finally(() => (running.now = false));
    await injected;
    if (ran.code !== 0) {
      this.#commands.failed(args, fault, ran);
      await this.#commands.again(args, () => fault);
    }
  }
}

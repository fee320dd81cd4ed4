// The commands of a session, run as a user does who tries again, and what they end with.

import { setTimeout as sleep } from 'node:timers/promises';
import { ringEnv, type Kf, type Ran } from '../support/kf.ts';
import type { Tally } from './tally.ts';

/** Classes of errors that a command may end with while a program that it needs is away (docs/exit-codes.md): timeout, unreachable, accepted. */
const honest = new Set([9, 11, 12]);
const mostTries = 8;
const defaultPauseMs = 5_000;

/** The ready image that a session pushes. */
export const sampleImage = (version: number): string => `${ringEnv('KF_CLUSTER_NODE_REGISTRY')}/kf/sample:${version}`;

export class Commands {
  /** Outcomes that no fault excuses. */
  readonly findings: string[] = [];
  readonly #kf: Pick<Kf, 'run'>;
  readonly #tally: Tally;
  readonly #log: (line: string) => void;
  readonly #pauseMs: number;

  /** @param pauseMs between two tries of one command */
  constructor(kf: Pick<Kf, 'run'>, tally: Tally, log: (line: string) => void, pauseMs = defaultPauseMs) {
    this.#kf = kf;
    this.#tally = tally;
    this.#log = log;
    this.#pauseMs = pauseMs;
  }

  run(args: string[]): Promise<Ran> {
    return this.#kf.run(args, { env: { KF_EXIT_CODES: 'class' } });
  }

  /** Runs a command until it succeeds. @param fault names what may be away @throws Error when it fails all the time */
  async again(args: string[], fault: () => string): Promise<Ran> {
    for (let left = mostTries; ; left -= 1) {
      this.#tally.commands += 1;
      const ran = await this.run(args);
      if (ran.code === 0) return ran;
      this.failed(args, fault(), ran);
      if (left === 1) throw new Error(`kf ${args.join(' ')} still fails: ${ran.stderr}`);
      await sleep(this.#pauseMs);
    }
  }

  /** Keeps an outcome that is not 0. */
  failed(args: string[], fault: string, { code, stderr, stdout }: Ran): void {
    const message = (stderr === '' ? stdout : stderr).trim().split('\n').slice(0, 3).join(' / ');
    const failure = { command: args.slice(0, 2).join(' '), fault, class: code, message };
    this.#tally.failures.push(failure);
    this.#log(`  failed: ${args.join(' ')}: class ${code}\n${stderr}`);
    if (!honest.has(code)) this.findings.push(`kf ${args.join(' ')} (${fault}) ended with class ${code}: ${message}`);
  }
}

// A writer that numbers its lines, followed over rolls, crashes, a new API server and broken connections: lines and gaps account for every number.

import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, expect, test } from 'vitest';
import { apiServerAnswers, killApiServer } from '../chaos/faults.ts';
import { ConnectProxy } from '../support/connect-proxy.ts';
import { reportFigure } from '../support/figures.ts';
import { get } from '../support/http.ts';
import { Kf } from '../support/kf.ts';
import { until } from '../support/until.ts';

/** 50,000 lines per second leave the app, its kubelet and the reader little time on two cores. */
const longMs = 300_000;
const app = 'log-writer';
const host = `${app}.apps.localhost`;
const sample = `${process.env['KF_CLUSTER_NODE_REGISTRY'] ?? ''}/kf/sample:1`;
const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});
afterAll(async () => {
  const kf = await Kf.create();
  await kf.run(['delete', app, '-f', '-r']);
  await kf.remove();
});

interface Document {
  time?: string;
  pod?: string;
  text?: string;
  gap?: { from?: string; to?: string; reason: string };
}

/** What one container wrote, as far as it was printed. */
interface Life {
  printed: number;
  last: number;
  /** When the last line was written. */
  lastTime: string;
  ended: boolean;
}

/** Lines that are missing between two printed ones. */
interface Jump {
  pod: string;
  text: string;
  missing: number;
  from: string;
  to: string;
}

/** Reads the documents of `kf logs --json` one after the other, and keeps account of each life's numbers. */
class Account {
  readonly lives = new Map<string, Life>();
  readonly #podOf = new Map<string, string>();
  readonly #jumps: Jump[] = [];
  readonly #gaps: { pod: string; from: string; to: string }[] = [];
  /** Gaps of a pod since its last line. */
  readonly #open = new Map<string, number>();
  /** The time of the rest of a line that is a pod's first one after a gap. */
  readonly #rests = new Map<string, string>();
  /** What was printed in which order: begins and ends of lives, gaps, jumps. */
  readonly story: string[] = [];
  /** What the lives whose last line was printed have written, and how long they took, by themselves. */
  readonly written = { lines: 0, seconds: 0 };
  gaps = 0;
  lines = 0;
  rests = 0;

  read({ time = '', pod = '', text = '', gap }: Document): void {
    if (gap !== undefined) {
      this.gaps++;
      if (gap.to !== undefined) this.#gaps.push({ pod, from: gap.from ?? '', to: gap.to });
      this.story.push(`gap of ${pod} ${JSON.stringify(gap)}`);
      // One without a beginning stands before the first line of a run.
      if (gap.from !== undefined) this.#open.set(pod, (this.#open.get(pod) ?? 0) + 1);
      return;
    }
    const [, name, digits, end] = /^([\da-f]{8}) (\d+)(?: end (\d+))?$/.exec(text) ?? [];
    if (name === undefined) {
      this.#rest(time, pod, text);
      return;
    }
    this.lines++;
    const number = Number(digits);
    const life = this.lives.get(name) ?? this.#begin(name, pod);
    if (number !== life.last + 1) {
      const jump = `${name}: ${String(number)} of ${time} after ${String(life.last)} of ${life.lastTime}`;
      this.story.push(jump);
      this.#jumps.push({ pod, text: jump, missing: number - life.last - 1, from: life.lastTime, to: this.#rests.get(pod) ?? time });
    }
    this.#rests.delete(pod);
    Object.assign(life, { last: number, lastTime: time, printed: life.printed + 1, ended: life.ended || end !== undefined });
    if (end !== undefined) {
      this.story.push(`${name} ended at ${String(number)}`);
      this.written.lines += number;
      this.written.seconds += Number(end) / 1000;
    }
    this.#open.set(pod, 0);
  }

  /** Lives without their last line, and without a gap in its place. */
  cut(): string[] {
    const open = [...this.lives].filter(([name, life]) => !life.ended && this.gapsAfter(name) === 0);
    return open.map(([name, { last }]) => `${name}: nothing after ${String(last)}`);
  }

  /** Lines that are missing although no gap tells of that time. A gap may be printed later: the file may become known only then. */
  unexplained(): string[] {
    const isTold = ({ pod, from, to, missing }: Jump): boolean =>
      missing > 0 && this.#gaps.some((gap) => gap.pod === pod && gap.from <= from && gap.to >= to);
    return this.#jumps.filter((jump) => !isTold(jump)).map(({ text }) => text);
  }

  /** How many lines are missing between others. */
  get missing(): number {
    return this.#jumps.reduce((sum, { missing }) => sum + missing, 0);
  }

  gapsAfter(name: string): number {
    return this.#open.get(this.#podOf.get(name) ?? '') ?? 0;
  }

  /** containerd begins a new file between two reads of 32 KiB: the first line of a file can be the rest of a line whose begin is in the file before. */
  #rest(time: string, pod: string, text: string): void {
    if ((this.#open.get(pod) ?? 0) === 0 || !/^[\da-f]{0,7} ?\d*( end \d+)?$/.test(text)) return;
    this.rests++;
    this.story.push(`rest of a line of ${pod} at ${time}: ${text}`);
    if (!this.#rests.has(pod)) this.#rests.set(pod, time);
  }

  #begin(name: string, pod: string): Life {
    const life = { printed: 0, last: -1, lastTime: '', ended: false };
    this.story.push(`${name} begins in ${pod}`);
    // A gap before the first line of a new run is that of the run before in the same pod.
    const isAfterGap = (this.#open.get(pod) ?? 0) > 0;
    for (const [other, before] of this.lives) if (isAfterGap && this.#podOf.get(other) === pod) before.ended = true;
    this.lives.set(name, life);
    this.#podOf.set(name, pod);
    return life;
  }
}

interface Followed {
  account: Account;
  child: ChildProcess;
  ended: Promise<unknown>;
  /** Reads nothing for so long: a slow terminal. */
  rest(ms: number): Promise<void>;
}

function follow(kf: Kf): Followed {
  const account = new Account();
  const child = kf.start(['logs', app, '--json', '--since', '1h', '--process', 'web']);
  if (child.stdout === null) throw new Error('kf logs has no stdout');
  const lines = createInterface({ input: child.stdout });
  lines.on('line', (line) => account.read(JSON.parse(line) as Document));
  child.stderr?.resume();
  const rest = async (ms: number): Promise<void> => {
    lines.pause();
    await sleep(ms);
    lines.resume();
  };
  return { account, child, ended: Promise.all([once(lines, 'close'), once(child, 'exit')]), rest };
}

/** The most memory that a process had, in MiB. */
function mostMemory({ pid }: ChildProcess): number {
  const [, kibibytes] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${String(pid)}/status`, 'utf8')) ?? [];
  return Math.round(Number(kibibytes) / 1024);
}

const isLife = (text: string): boolean => /^[\da-f]{8}$/.test(text);
const lifeThatServes = async (): Promise<string> => (await get(host)).body.trim();

/** More lines of this life are printed. */
async function flows(account: Account, life: string): Promise<void> {
  const before = account.lives.get(life)?.printed ?? 0;
  await until(`more lines of ${life}`, async () => (account.lives.get(life)?.printed ?? 0) > before, longMs);
}

/** Ends a life. The request is sent again while the life answers: one may be lost at the gateway, and an answer of the gateway is no sign of a crash. */
async function crash(life: string): Promise<void> {
  await until(
    `the crash of ${life}`,
    async () => {
      const serving = await lifeThatServes().catch(() => '');
      if (serving === life) await get(host, '/crash').catch(() => undefined);
      return isLife(serving) && serving !== life;
    },
    longMs,
  );
}

/** The life after `before` serves, and its lines are printed. */
async function next(account: Account, before: string): Promise<string> {
  const life = await until(
    'the next life',
    async () => {
      const serving = await lifeThatServes();
      return serving !== before && isLife(serving) && serving;
    },
    longMs,
  );
  await flows(account, life);
  // A crash must not reach an instance that is about to end: the kubelet kills a container that it has just started again.
  await until('the end of all other lives', async () => account.cut().length === 1, longMs);
  return life;
}

/**
 * The least part of a rate that makes it that rate. The writer waits while its pipe is full, and the runtime, the kubelet and kf, which read it, share two
 * cores with another lane; a tenth of 50,000 is still fifty times the slow rate.
 */
const leastShare = 0.1;

/** By the rate, the most memory in MiB: 82 and 254 were measured. Lines that wait for a slow terminal must not fill more. */
test.each([
  [100, 160],
  [50_000, 512],
])(
  'at %i lines per second, printed lines and printed gaps account for every number',
  async (rate, mostMiB) => {
    const proxy = await ConnectProxy.start();
    closers.push(() => proxy.stop());
    const [kf, reader] = [await Kf.create(), await Kf.create('developer', { HTTPS_PROXY: proxy.url })];
    closers.push(
      () => kf.remove(),
      () => reader.remove(),
    );
    await kf.run(['delete', app, '-f', '-r']);
    const program = await readFile('test/fixtures/programs/log-writer.cjs', 'utf8');
    await kf.ok('push', app, '-o', sample, '-m', '128M', '-k', '1G', '--no-start', '-c', 'exec node -e "eval(process.env.PROGRAM)"');
    await kf.ok('set-env', app, 'PROGRAM', program);
    await kf.ok('set-env', app, 'RATE', String(rate));
    await kf.ok('start', app);
    const { account, child, ended, rest } = follow(reader);
    let life = await next(account, '');
    for (const roll of [1, 2, 3]) {
      if (roll === 2) proxy.breakTunnels();
      if (roll === 3) await rest(5_000);
      await flows(account, life);
      await kf.ok('restart', app);
      life = await next(account, life);
    }
    for (let crashes = 0; crashes < 2; crashes++) {
      await crash(life);
      life = await next(account, life);
    }
    await killApiServer();
    await apiServerAnswers();
    await flows(account, life);
    await kf.ok('stop', app);
    await until('the end of the last life', async () => account.cut().length === 0, longMs).catch(() => undefined);
    const memory = mostMemory(child);
    child.kill('SIGINT');
    await ended;
    const { missing, lives, written } = account;
    const perSecond = written.lines / written.seconds;
    const counts = `${String(account.lines)} lines, ${String(account.gaps)} gaps, ${String(missing)} lines between others, ${String(account.rests)} rests`;
    reportFigure(`logs at ${String(rate)} lines/s: ${counts}, at most ${String(memory)} MiB`);
    reportFigure(`the writer: ${String(written.lines)} lines in ${written.seconds.toFixed(1)} s, ${perSecond.toFixed(0)} lines/s`);
    const failures = [...account.cut(), ...account.unexplained()];
    // The failures come first: the end of a ring shows only the first lines of a message.
    expect(failures, [...failures, '', ...account.story].join('\n')).toEqual([]);
    expect(lives.size).toBeGreaterThanOrEqual(6);
    expect(memory).toBeLessThan(mostMiB);
    expect(perSecond).toBeGreaterThan(rate * leastShare);
    // Nothing rotates at this rate: a gap can only be the end of an instance that was gone before a broken connection was made again.
    if (rate === 100) expect(missing, account.story.join('\n')).toBe(0);
  },
  900_000,
);

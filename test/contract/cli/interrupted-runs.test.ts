// `npm run chaos` and `npm run bench` take their cluster down when they are interrupted. The programs for clusters are played by one that writes
// down how it is called, and waits for a file before `up` or the demo ends.

import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it } from 'vitest';

const played = `
import { appendFileSync, existsSync } from 'node:fs';
const args = process.argv.slice(2);
appendFileSync('calls', args.join(' ') + '\\n');
process.on('SIGINT', () => process.exit(130)).on('SIGTERM', () => process.exit(143));
while (['up', '--path'].includes(args[0]) && !existsSync('go')) await new Promise((resolve) => setTimeout(resolve, 20));
`;
let folder = '';

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'kf-interrupted-'));
  for (const name of ['tools/cluster', 'test']) mkdirSync(path.join(folder, name), { recursive: true });
  writeFileSync(path.join(folder, 'package.json'), '{"type":"module"}');
  for (const name of ['tools/cluster/cli.ts', 'test/demo.ts']) writeFileSync(path.join(folder, name), played);
  writeFileSync(path.join(folder, 'tools/bundle.mjs'), '');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const calls = (): string[] => {
  const file = path.join(folder, 'calls');
  return existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n') : [];
};

/** Sends the signal to a program once it has made the awaited call. @returns the exit code */
async function interrupt(args: string[], signal: NodeJS.Signals, awaited: RegExp): Promise<number | null> {
  const { KF_KEEP_CLUSTER: _, KF_TEST_CLUSTER: __, ...env } = process.env;
  const [program = '', ...more] = args;
  const child = spawn(process.execPath, [path.resolve(program), ...more], {
    cwd: folder,
    env: { ...env, KF_CACHE: folder },
    stdio: 'ignore',
  });
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
  await expect.poll(() => calls().at(-1) ?? '').toMatch(awaited);
  child.kill(signal);
  await sleep(200);
  writeFileSync(path.join(folder, 'go'), '');
  return ended;
}

it.each([
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const)('chaos removes its cluster after %s', async (signal, code) => {
  expect(await interrupt(['test/chaos/run.ts', 'takeover'], signal, /^up /)).toBe(code);
  const down = 'down --name api-ring';
  expect(calls()).toEqual([down, 'up --name api-ring --control-plane-only', 'env --name api-ring', down]);
});

it.each([
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const)('the bench takes its demo down after %s', async (signal, code) => {
  expect(await interrupt(['test/bench/run.ts', 'demo'], signal, /^--path /)).toBe(code);
  expect(calls().slice(1)).toEqual(['--down']);
});

it('work that does not look for interruptions is left alone, and its failure ends nothing', async () => {
  const module = JSON.stringify(path.resolve('test/support/interruption.ts'));
  const program = `
    import { appendFileSync } from 'node:fs';
    import { removesClusters, unlessInterrupted } from ${module};
    const fails = () => new Promise((_, reject) => process.once('SIGINT', () => reject(new Error('the cluster is gone'))));
    await removesClusters(async () => {
      try {
        await unlessInterrupted(() => {
          setInterval(() => undefined, 1_000);
          void fails();
          appendFileSync('calls', 'up\\n');
          return new Promise(() => undefined);
        });
      } finally {
        await new Promise((resolve) => setTimeout(resolve, 50));
        appendFileSync('calls', 'down\\n');
      }
    });`;
  writeFileSync(path.join(folder, 'work.ts'), program);
  expect(await interrupt([path.join(folder, 'work.ts')], 'SIGINT', /^up/)).toBe(130);
  expect(calls()).toEqual(['up', 'down']);
});

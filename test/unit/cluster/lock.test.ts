// The lock of tools/cluster, with processes that take it at the same time, or are killed while they hold it.

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { withLock, withLockIfFree } from '../../../tools/cluster/state.ts';

const state = path.resolve('tools/cluster/state.ts');
let folder: string;
let children: ChildProcess[];

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'kf-lock-'));
  children = [];
});
afterEach(() => {
  for (const child of children) child.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

/** A process that runs `action` while it holds the lock. */
function locked(action: string): ChildProcess {
  const text = `import { appendFileSync } from 'node:fs'; import { setTimeout as sleep } from 'node:timers/promises';
    const { withLock } = await import('${state}'); await withLock('x', async () => { ${action} }, '${folder}');`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', text], { stdio: ['ignore', 'pipe', 'inherit'] });
  children.push(child);
  return child;
}

const log = (): string => path.join(folder, 'log');
const holds = "process.stdout.write('held'); setInterval(() => undefined, 1000); await new Promise(() => undefined);";

test('is free at once when its holder is killed, and then one process at a time has it', async () => {
  writeFileSync(log(), '');
  const holder = locked(holds);
  await once(holder.stdout!, 'data');
  const enter = `appendFileSync('${log()}', '('); await sleep(20); appendFileSync('${log()}', ')');`;
  const waiting = Array.from({ length: 4 }, () => locked(enter));
  holder.kill('SIGKILL');
  await Promise.all(waiting.map((child) => once(child, 'exit')));
  expect(readFileSync(log(), 'utf8')).toBe('()()()()');
});

test('of a process that runs is not taken, whatever its file says', async () => {
  const holder = locked(holds);
  await once(holder.stdout!, 'data');
  // As a process of another pid namespace sees it: no such process here.
  writeFileSync(path.join(folder, '.x.lock'), JSON.stringify({ pid: 2 ** 30, startTime: '1' }));
  let entries = 0;
  const enter = (): Promise<void> => Promise.resolve(void (entries += 1));
  await withLockIfFree('x', enter, folder);
  await withLockIfFree('x', enter, folder);
  expect(entries).toBe(0);
});

test('that nobody holds is taken although its file was left', async () => {
  writeFileSync(path.join(folder, '.x.lock'), '');
  expect(await withLock('x', () => Promise.resolve('done'), folder)).toBe('done');
});

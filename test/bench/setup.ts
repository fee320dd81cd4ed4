// The duration of `kf setup` on the new cluster of this run, as the ring's runner measured it.

import { readFile } from 'node:fs/promises';
import { ringEnv } from '../support/kf.ts';
import type { Row } from './table.ts';

interface SetupFile {
  milliseconds: number;
  result: { created: number; requests: { cpuMilli: number; memoryMiB: number } };
}

export async function benchSetup(): Promise<Row[]> {
  const { milliseconds, result } = JSON.parse(await readFile(ringEnv('KF_TEST_SETUP_RESULT'), 'utf8')) as SetupFile;
  if (result.created === 0) throw new Error('The cluster was kept and had kf already: take it down and measure again.');
  const { cpuMilli, memoryMiB } = result.requests;
  const beside = `${result.created} objects created; they request ${cpuMilli}m and ${memoryMiB} MiB`;
  return [{ what: '`kf setup` on a fresh cluster', reach: '≤ 45 s', measured: `${(milliseconds / 1000).toFixed(1)} s`, beside }];
}

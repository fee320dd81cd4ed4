// `npm run chaos [ROUNDS]`: repeats the tests of test/cluster/chaos.test.ts, each round with its own seed, on its own cluster.
// `KF_CHAOS_SEED=N npm run chaos 1` repeats one round.

import { spawn } from 'node:child_process';
import { toolsEnv } from '../../tools/environment.ts';
import { withCluster } from '../support/rings.ts';
import { chance, seedOfRun } from './seed.ts';

const defaultRounds = 10;

function round(seed: number, env: Record<string, string>): Promise<number> {
  return new Promise((resolve, reject) => {
    const args = ['run', '--project', 'cluster', 'test/cluster/chaos.test.ts'];
    const child = spawn('vitest', args, {
      stdio: ['ignore', 'inherit', 'inherit'],
      env: toolsEnv({ ...env, KF_CHAOS_SEED: String(seed) }),
    });
    child.on('error', reject);
    child.on('exit', (code) => resolve(code ?? 1));
  });
}

const rounds = Number(process.argv[2] ?? defaultRounds);
const first = seedOfRun();
const next = chance(first);
const bad: number[] = [];
await withCluster(async (env) => {
  for (let n = 0, seed = first; n < rounds; n += 1, seed = 1 + Math.floor(next() * 999_999)) {
    console.log(`\n== round ${n + 1} of ${rounds}, KF_CHAOS_SEED=${seed} ==`);
    if ((await round(seed, env)) !== 0) bad.push(seed);
  }
});
console.log(bad.length === 0 ? `${rounds} rounds passed.` : `Failed with KF_CHAOS_SEED=${bad.join(', ')}`);
process.exitCode = bad.length === 0 ? 0 : 1;

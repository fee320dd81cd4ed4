// A short session of commands while programs are killed; `npm run chaos` goes on for half an hour.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { seedOfRun } from '../chaos/seed.ts';
import { ChaosSession } from '../chaos/session.ts';
import { asDeclared, baseline, leavesNothing, noOrphans } from '../chaos/verify.ts';
import { Kf } from '../support/kf.ts';

const seed = seedOfRun();
const apps = ['session-a', 'session-b'];
const log = (line: string): void => void process.stderr.write(`${line}\n`);
let kf: Kf;

beforeAll(async () => {
  log(`KF_CHAOS_SEED=${seed}`);
  kf = await Kf.create();
});
afterAll(async () => {
  for (const app of apps) await kf.run(['delete', app, '-f', '-r']);
  await kf.remove();
});

test('each command once, and each fault twice: every app ends as declared, and nothing is left over', async () => {
  const before = await baseline();
  const { declared, tally, findings } = await new ChaosSession(kf, { seed, apps, turns: 12, meanMs: 0, log }).play();
  log(tally.render());
  // As text, which a report prints whole.
  expect(findings.join('\n')).toBe('');
  for (const [name, app] of declared) await asDeclared(kf, name, app);
  await noOrphans();
  await leavesNothing(kf, apps, before);
});

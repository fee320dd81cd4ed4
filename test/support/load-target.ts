// The app of load tests: test/fixtures/programs/load-target.cjs in the sample image, from a variable.

import { readFile } from 'node:fs/promises';
import { ringEnv, type Kf, type Ran } from './kf.ts';

/** The version that the target answers with: of its image, and its variable VERSION. */
const versionOf = (image: 1 | 2, version: number): string => `${String(image)}.${String(version)}`;

/** The sample image of that version. */
const imageOf = (version: 1 | 2): string => `${ringEnv('KF_CLUSTER_NODE_REGISTRY')}/kf/sample:${String(version)}`;

/** The push of the app, with an image that has not changed, or the other one. */
export const pushTarget = (kf: Kf, app: string, version: 1 | 2): Promise<Ran> => kf.run(['push', app, '-o', imageOf(version), '-m', '64M']);

/** Makes the app and starts its first version. @param image the sample image of another cluster than the ring's */
export async function startTarget(kf: Kf, app: string, { image = imageOf(1), instances = 1 } = {}): Promise<void> {
  await kf.run(['delete', app, '-f', '-r']);
  const program = await readFile('test/fixtures/programs/load-target.cjs', 'utf8');
  const size = ['-m', '64M', '-i', String(instances)];
  // It has the default check, by its port, as most apps: what its probes say is a part of what a change waits for.
  await kf.ok('push', app, '-o', image, ...size, '--no-start', '-c', 'exec node -e "eval(process.env.PROGRAM)"');
  await kf.ok('set-env', app, 'PROGRAM', program);
  await kf.ok('start', app);
}

/**
 * One change of the app that gives it another version: a restart with another variable, or a push of another image. @returns the version
 *
 * @param round counts from 1
 */
export async function roll(kf: Kf, app: string, round: number): Promise<string> {
  await kf.ok('set-env', app, 'VERSION', String(round));
  const [before, after] = imagesAround(round);
  if (before === after) await kf.ok('restart', app);
  else {
    const pushed = await pushTarget(kf, app, after);
    if (pushed.code !== 0) throw new Error(`the push of round ${String(round)} ended with ${String(pushed.code)}: ${pushed.stderr}`);
  }
  return versionOf(after, round);
}

/** Every second change is a push: of image 2 after 1, then of 1 after 2. */
function imagesAround(round: number): [before: 1 | 2, after: 1 | 2] {
  const at = (rounds: number): 1 | 2 => (Math.floor(rounds / 2) % 2 === 0 ? 1 : 2);
  return [at(round - 1), at(round)];
}

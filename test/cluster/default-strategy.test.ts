// The strategy of changes that ask for none: a label of the app, or of its space. Which values the CLI accepts is in contract/cli/labels.

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { get } from '../support/http.ts';
import { Kf, kubectlJson, ringEnv } from '../support/kf.ts';
import { until } from '../support/until.ts';

const label = 'kf.cloudfoundry.org/strategy';
const space = 'usual';
const host = 'usual.apps.localhost';
const sample = (version: number): string => `${ringEnv('KF_CLUSTER_NODE_REGISTRY')}/kf/sample:${version}`;
let kf: Kf;
let folder: string;
let guid = '';

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'kf-usual-'));
  kf = await Kf.create('admin', { KF_SPACE: space });
  await kf.ok('create-space', space);
  await kf.ok('push', 'usual', '-o', sample(1), '-m', '64M');
  guid = (await kf.ok('app', 'usual', '--guid')).stdout.trim();
});
afterAll(async () => {
  await kf.run(['delete-space', space, '-f']);
  await Promise.all([kf.remove(), rm(folder, { recursive: true, force: true })]);
});

/** All instances, also those that are ending. */
async function instances(): Promise<number> {
  const { items } = await kubectlJson<{ items: object[] }>('get', 'pods', '-A', '-l', `korifi.cloudfoundry.org/app-guid=${guid}`);
  return items.length;
}

/** The most instances that existed at a time during the command. */
async function mostDuring(...argv: string[]): Promise<number> {
  let [most, isOver] = [0, false];
  const watched = (async () => {
    while (!isOver) most = Math.max(most, await instances());
  })();
  try {
    await kf.ok(...argv);
  } finally {
    isOver = true;
    await watched;
  }
  // What is still ending would count for the next command.
  await until('the others to end', async () => (await instances()) === 1);
  return most;
}

test('recreate as the default of an app, in the metadata of its manifest, counts for every change', async () => {
  const manifest = path.join(folder, 'manifest.yml');
  const app = `name: usual, docker: {image: '${sample(2)}'}, metadata: {labels: {${label}: recreate}}`;
  await writeFile(manifest, `applications:\n- {${app}}\n`);
  expect(await mostDuring('push', '-f', manifest)).toBe(1);
  expect((await get(host)).body).toContain('kf sample 2');
  expect((await kf.ok('app', 'usual')).stdout).toMatch(/^strategy: +recreate \(default of the app\)$/m);
  for (const again of ['restart', 'restage']) expect([again, await mostDuring(again, 'usual')]).toEqual([again, 1]);
  expect(await mostDuring('rollback', 'usual', '--version', '1', '-f')).toBe(1);
  expect((await get(host)).body).toContain('kf sample 1');
  expect(await mostDuring('restart', 'usual', '--strategy', 'rolling')).toBe(2);
});

test('recreate as the default of a space counts for its apps that have none', async () => {
  await kf.ok('unset-label', 'app', 'usual', label);
  await kf.ok('set-label', 'space', space, `${label}=recreate`);
  expect((await kf.ok('app', 'usual')).stdout).toMatch(/^strategy: +recreate \(default of the space\)$/m);
  expect(await mostDuring('restart', 'usual')).toBe(1);
  await kf.ok('set-label', 'app', 'usual', `${label}=rolling`);
  expect(await mostDuring('restart', 'usual')).toBe(2);
});

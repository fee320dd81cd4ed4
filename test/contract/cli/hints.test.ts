// Commands that a failure or kf why advises act where the command acted that advises them.

import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, afterEach, beforeEach, expect, it } from 'vitest';
import { bundleForTests } from '../../support/cli.ts';
import { PushScene } from '../../support/push-scene.ts';

const bundle = bundleForTests();
let scene: PushScene;

beforeEach(async () => void (scene = await PushScene.start(bundle.program)));
afterEach(() => scene.stop());
afterAll(() => bundle.remove());

const given = '--org example-org --space example-space';
/** The target, which is not where the commands act. */
const elsewhere = { env: { KF_ORG: 'other', KF_SPACE: 'other' } };
const there = (...argv: string[]) => scene.cli.run([...argv, ...given.split(' ')], elsewhere);

interface Failed {
  error: { hints: string[]; details: { apps?: { error: { hints: string[] } }[] } };
}

it('a failure advises commands that act in the place that it was given', async () => {
  const { code, stderr } = await there('app', 'nope');
  expect(code).toBe(1);
  expect(stderr).toBe(`App 'nope' not found.\n\nTIP:\n   kf apps ${given}\n`);
  expect((JSON.parse((await there('app', 'nope', '--json')).stdout) as Failed).error.hints).toEqual([`kf apps ${given}`]);
});

it('a failure about that place itself does not', async () => {
  const { stderr } = await scene.cli.run(['apps', '--org', 'example-org', '--space', 'nope'], elsewhere);
  expect(stderr).toContain("Space 'nope' not found");
  expect(stderr).toContain('\n   kf spaces --org example-org\n');
  expect(stderr).not.toContain('--space nope');
});

it('what kf why advises acts in the place that it was given', async () => {
  scene.droplet = 'fails';
  await scene.cli.run(['push', 'shop', '-p', 'app']);
  const { stdout } = await there('why', 'shop');
  expect(stdout).toMatch(new RegExp(String.raw`\n\nTIP:\n   kf logs shop --recent ${given}\n$`));
});

it('so do the hints about each of several apps whose push has failed before any change', async () => {
  writeFileSync(
    path.join(scene.cli.home, 'manifest.yml'),
    'applications:\n- name: a\n  path: app\n  services: [nope]\n- name: b\n  path: app\n  services: [nope]\n',
  );
  const { error } = JSON.parse((await there('push', '--json')).stdout) as Failed;
  const hints = [...error.hints, ...(error.details.apps ?? []).flatMap(({ error: ofApp }) => ofApp.hints)];
  expect(hints).toEqual(Array.from({ length: 3 }, () => `kf services ${given}`));
});

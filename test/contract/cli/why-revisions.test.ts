// `why` of revisions: what one says that failed before it served, that serves no more, or that differs in what cannot be compared.

import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { configMapType, secretType } from '../../../src/lib/api/core.ts';
import { kinds } from '../../../src/lib/api/group.ts';
import type { WhyDetails } from '../../../src/lib/api/results.ts';
import { printRecord, printSettings, revisionsName, type RevisionRecord } from '../../../src/lib/api/revisions.ts';
import type { DeploymentStatus, GenerationStatus } from '../../../src/lib/api/types.generated.ts';
import { printVerdict } from '../../../src/lib/api/verdicts.ts';
import { bundleForTests } from '../../support/cli.ts';
import { nameOf, ns, PushScene } from '../../support/push-scene.ts';

const bundle = bundleForTests();
let scene: PushScene;

const at = '2026-08-07T10:16:20Z';
const message = 'The app ended with exit code 7.';
const asJson = async (...argv: string[]): Promise<WhyDetails> => {
  const { code, stdout, stderr } = await scene.cli.run(['why', 'shop', ...argv, '--json']);
  expect(code, stderr).toBe(0);
  return (JSON.parse(stdout) as { result: WhyDetails }).result;
};

/** Version 4 served last, and version 5 has failed. */
beforeEach(async () => {
  scene = await PushScene.start(bundle.program);
  await scene.ok('push', 'shop', '-p', 'app');
  const kept = { version: 5, change: 'then', cause: 'exit-code' as const, message, at, process: 'web', pod: 'shop-5-2', exitCode: 7 };
  const data = { '4': record(4), '5': record(5), 'verdict-5': printVerdict({ ...kept, head: [], omitted: 0, tail: ['the end'] }) };
  await scene.cluster.add(configMapType, { metadata: { name: revisionsName(nameOf(scene.app())), namespace: ns }, data });
  revision({ version: 5, deployed: 4 });
});
afterEach(() => scene.stop());
afterAll(() => bundle.remove());

const droplet = () => scene.app().spec.currentDropletRef?.name ?? '';
const record = (version: number, more: Partial<RevisionRecord> = {}) =>
  printRecord({ version, guid: `g${String(version)}`, description: 'x', droplet: droplet(), created: at, settings: version, ...more });
const revision = (versions: { version: number; deployed: number }): void =>
  scene.setStatus(kinds.app, nameOf(scene.app()), { revision: { change: 'x', droplets: [], ...versions } });
const rewritten = (data: Record<string, string>) =>
  scene.cluster.memory.mergePatch(configMapType, ns, revisionsName(nameOf(scene.app())), { data });

const generation = (state: GenerationStatus['state'], ready: number, more: Partial<GenerationStatus> = {}): GenerationStatus => ({
  ...{ process: 'web', hash: state, state, instances: 1, ready },
  ...more,
});
const deployment = (phase: DeploymentStatus['phase'], ...generations: GenerationStatus[]): void =>
  scene.setStatus(kinds.app, nameOf(scene.app()), { deployment: { phase, generations } });

describe('a revision that failed and differs in its variables only', () => {
  const nothing = '\nnothing has changed since version 4, which served last\n';
  const rest =
    '\ndroplet, source and commit are those of version 4, which served last; variables, commands and sidecars were not compared\n';

  beforeEach(async () => {
    const settings = (env: Record<string, string>) => printSettings({ env, commands: {}, sidecars: {} });
    const data = { '4': settings({}), '5': settings({ COLOR: 'cmVk' }) };
    await scene.cluster.add(secretType, { metadata: { name: revisionsName(nameOf(scene.app())), namespace: ns }, data });
  });

  it('is told with them to whoever may read them, and as equal when it is', async () => {
    expect((await scene.ok('why', 'shop')).stdout).toMatch(/\nchanged since version 4, which served last:\n {3}variable COLOR +added/);
    await rewritten({ '5': record(5, { settings: 4 }) });
    expect((await scene.ok('why', 'shop')).stdout).toContain(nothing);
  });

  it('is not said to have changed nothing to whoever may not read them', async () => {
    scene.cluster.server.on(`GET /api/v1/namespaces/${ns}/secrets/.*-revisions`, (call) => call.fail(403, 'Forbidden', 'no'));
    const { stdout } = await scene.ok('why', 'shop');
    expect([stdout.includes(rest), stdout.includes(nothing)]).toEqual([true, false]);
  });

  it('is not said to have changed nothing when its settings were never recorded', async () => {
    const { settings: _, ...bare } = JSON.parse(record(5)) as RevisionRecord;
    await rewritten({ '5': JSON.stringify(bare) });
    const { stdout } = await scene.ok('why', 'shop');
    expect([stdout.includes(rest), stdout.includes(nothing)]).toEqual([true, false]);
  });
});

describe('a revision that failed and came to serve by a later change', () => {
  const failure = { cause: 'exit-code', since: at, process: 'web', instance: 2, exitCode: 7, log: { tail: ['the end'] } };

  beforeEach(() => revision({ version: 5, deployed: 5 }));

  it('is well, and the failure before is a fact with its time, cause and lines', async () => {
    deployment('Serving', generation('Current', 1));
    const told = `Revision 5 of app 'shop' serves, and failed before, at ${at}: ${message}`;
    expect(await asJson('--version', '5')).toMatchObject({ state: 'well', version: 5, message: told, ...failure, events: [], next: [] });
    const { stdout } = await scene.ok('why', 'shop', '--version', '5');
    expect(stdout).toContain(`${told}\n\ncause:       exit-code (the app ended by itself)\nversion:     5\n`);
    expect(stdout).not.toContain('TIP:');
  });

  it('is well while a newer one fails beside it', async () => {
    await rewritten({ '6': record(6) });
    revision({ version: 6, deployed: 5 });
    deployment('Failed', generation('Old', 1, { served: true }), generation('Failed', 0));
    expect(await asJson('--version', '5')).toMatchObject({
      state: 'well',
      message: expect.stringContaining(' serves, and failed before, '),
    });
  });

  it('is well while it starts again, and when the app is stopped', async () => {
    deployment('Starting', generation('Current', 0));
    const told = `Revision 5 of app 'shop' served last, and failed before, at ${at}: ${message}`;
    expect(await asJson('--version', '5')).toMatchObject({ state: 'well', message: told });
    await scene.ok('stop', 'shop');
    expect(await asJson('--version', '5')).toMatchObject({ state: 'well', message: told });
  });

  it('is well when a later revision serves, and has failed if the last change by it had', async () => {
    await rewritten({ '5': record(5, { neverServed: false }), '6': record(6) });
    revision({ version: 6, deployed: 6 });
    deployment('Serving', generation('Current', 1));
    const told = `Revision 5 of app 'shop' served, and failed before, at ${at}: ${message}`;
    expect(await asJson('--version', '5')).toMatchObject({ state: 'well', version: 5, message: told, ...failure, events: [], next: [] });
    await rewritten({ '5': record(5, { neverServed: false, failedLast: true }) });
    expect(await asJson('--version', '5')).toMatchObject({ state: 'failed', message, ...failure });
    await rewritten({ '5': record(5, { neverServed: true }) });
    expect(await asJson('--version', '5')).toMatchObject({ state: 'failed', message, ...failure });
  });

  it('has failed when a change by it fails again', async () => {
    deployment('Failed', generation('Old', 1, { served: true }), generation('Failed', 0));
    expect(await asJson('--version', '5')).toMatchObject({ state: 'failed', message, ...failure });
  });
});

describe('the revision that served last', () => {
  it.each<[string, string, DeploymentStatus['phase'], GenerationStatus[]]>([
    ['serves', 'while its instances run', 'Serving', [generation('Current', 1)]],
    ['serves', 'when another one has failed', 'Failed', [generation('Old', 1, { served: true }), generation('Failed', 0)]],
    ['serves', 'while another one replaces it', 'Pending', [generation('Old', 1, { served: true }), generation('Current', 1)]],
    ['served last', 'when all its instances have crashed', 'Serving', [generation('Current', 0)]],
    ['served last', 'during a recreate', 'Pending', [generation('Old', 0, { served: true }), generation('Current', 1)]],
    ['served last', 'while another one starts after a stop', 'Pending', [generation('Current', 0)]],
  ])('is told with "%s" %s', async (told, _when, phase, generations) => {
    deployment(phase, ...generations);
    expect(await asJson('--version', '4')).toMatchObject({ state: 'well', message: `Revision 4 of app 'shop' ${told}.` });
  });
});

it('an earlier failure of the newest revision is not why the app runs as before once a later change of it is canceled', async () => {
  expect(await asJson()).toMatchObject({ state: 'failed', version: 5, message });
  await scene.ok('restart', 'shop', '--strategy', 'canary');
  await scene.ok('cancel-deployment', 'shop');
  expect(await asJson()).toMatchObject({ state: 'well', message: "App 'shop' runs." });
  expect(await asJson('--version', '5')).toMatchObject({ state: 'failed', message });
});

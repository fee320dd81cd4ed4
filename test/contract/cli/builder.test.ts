import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { kinds } from '../../../src/lib/api/group.ts';
import type { BuilderInfoStatus } from '../../../src/lib/api/types.generated.ts';
import { bundleForTests, Cli } from '../../support/cli.ts';
import { ServedCluster } from '../../support/served-cluster.ts';

const bundle = bundleForTests();
let cluster: ServedCluster;
let cli: Cli;

beforeEach(async () => {
  cluster = await (await ServedCluster.start()).installed();
  cli = new Cli(bundle.program, { KUBECONFIG: cluster.server.kubeconfig() });
});

afterEach(async () => {
  await cluster.stop();
  cli.remove();
});
afterAll(() => bundle.remove());

const stamps = { creationTimestamp: '2026-08-07T10:16:20Z', updatedTimestamp: '2026-08-07T10:16:20Z' };

async function addBuilder(status: Partial<BuilderInfoStatus> = {}): Promise<void> {
  const offered: BuilderInfoStatus = {
    stacks: [{ name: 'example-stack', description: 'An example', ...stamps }],
    buildpacks: [
      { name: 'kf/nodejs', version: '1.2.3', stack: 'example-stack', ...stamps },
      { name: 'kf/procfile', version: '', stack: 'example-stack', ...stamps },
    ],
    ...status,
  };
  await cluster.add(kinds.builderInfo, { metadata: { name: 'kf-builder', namespace: 'cf' }, spec: {} });
  await cluster.memory.mergePatch(kinds.builderInfo, 'cf', 'kf-builder', { status: offered }, { subresource: 'status' });
}

describe('stacks', () => {
  it('are those of the builder', async () => {
    await addBuilder();
    const run = await cli.run(['stacks']);
    expect(run).toMatchObject({ code: 0, stderr: '' });
    expect(run.stdout).toBe('Getting stacks as alice...\n\nname            description\nexample-stack   An example\n');
    expect(JSON.parse((await cli.run(['stacks', '--json'])).stdout)).toMatchObject({
      result: [{ name: 'example-stack', guid: 'example-stack', description: 'An example' }],
    });
  });

  it('are shown one by one, and --guid prints only the GUID', async () => {
    await addBuilder();
    const one = await cli.run(['stack', 'example-stack']);
    expect(one.stdout).toBe(
      'Getting info for stack example-stack as alice...\n\nname:          example-stack\ndescription:   An example\n',
    );
    expect((await cli.run(['stack', 'example-stack', '--guid'])).stdout).toBe('example-stack\n');
    const missing = await cli.run(['stack', 'other']);
    expect([missing.code, missing.stderr]).toEqual([1, "Stack 'other' not found.\n\nTIP:\n   kf stacks\n"]);
    expect((await cli.run(['stack'])).stderr).toContain('the required argument `STACK_NAME` was not provided');
  });

  it('are unknown while the image of the builder cannot be read', async () => {
    const none = await cli.run(['stacks']);
    expect([none.code, none.stdout.endsWith('FAILED\n')]).toEqual([1, true]);
    expect(none.stderr).toContain('The controller has not read the builder image yet.');
    const why = { type: 'Ready', status: 'False' as const, reason: 'BuilderNotFound', lastTransitionTime: stamps.creationTimestamp };
    await addBuilder({ stacks: [], buildpacks: [], conditions: [{ ...why, message: 'The builder image could not be read: no space' }] });
    expect((await cli.run(['buildpacks'])).stderr).toContain('The builder image could not be read: no space\n');
  });

  it.each([['stacks'], ['buildpacks']])('%s --labels is refused: a builder has no labels', async (command) => {
    const run = await cli.run([command, '--labels', 'a=b']);
    expect([run.code, cluster.server.calls.length]).toEqual([1, 0]);
    expect(run.stderr).toContain(`'--labels' of '${command}' has no effect in kf`);
  });

  it('of a user without the right name the right', async () => {
    const path = 'GET /apis/korifi.cloudfoundry.org/v1alpha1/namespaces/cf/builderinfos/kf-builder';
    const message =
      'builderinfos.korifi.cloudfoundry.org "kf-builder" is forbidden: User "alice" cannot get resource "builderinfos" in API group "korifi.cloudfoundry.org" in the namespace "cf"';
    cluster.server.on(path, (call) => call.fail(403, 'Forbidden', message));
    const run = await cli.run(['stacks']);
    expect(run.code).toBe(1);
    expect(run.stderr).toContain('the user "alice" may not get "builderinfos.korifi.cloudfoundry.org"');
  });
});

describe('buildpacks', () => {
  it('are those of the builder in its order', async () => {
    await addBuilder();
    const run = await cli.run(['buildpacks']);
    expect(run.stdout.split('\n')).toEqual([
      'Getting buildpacks as alice...',
      '',
      'position   name          stack           enabled   locked   state   filename          lifecycle',
      '1          kf/nodejs     example-stack   true      true     READY   kf/nodejs@1.2.3   cnb',
      '2          kf/procfile   example-stack   true      true     READY                     cnb',
      '',
    ]);
    expect((await cli.run(['buildpacks', '--lifecycle', 'cnb'])).stdout).toBe(run.stdout);
  });

  it('of another lifecycle do not exist', async () => {
    await addBuilder();
    expect((await cli.run(['buildpacks', '--lifecycle', 'buildpack'])).stdout).toBe(
      'Getting buildpacks as alice...\n\nNo buildpacks found\n',
    );
  });
});

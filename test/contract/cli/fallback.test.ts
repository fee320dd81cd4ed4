// `start` of an app whose newest version fails: the version that served last runs again, and start waits for it.

import { afterAll, afterEach, beforeEach, expect, it } from 'vitest';
import { annotations, kinds, labels } from '../../../src/lib/api/group.ts';
import { sha224 } from '../../../src/lib/api/names.ts';
import type { GenerationStatus } from '../../../src/lib/api/types.generated.ts';
import { bundleForTests, Cli } from '../../support/cli.ts';
import { ServedCluster } from '../../support/served-cluster.ts';

const bundle = bundleForTests();
const ns = 'space-guid';
let cluster: ServedCluster;
let cli: Cli;

beforeEach(async () => {
  cluster = await (await ServedCluster.start()).installed();
  cli = new Cli(bundle.program, { KUBECONFIG: cluster.server.kubeconfig(), KF_ORG: 'example-org', KF_SPACE: 'example-space' });
  await cluster.add(kinds.app, {
    metadata: { name: 'app', namespace: ns, labels: { [labels.displayName]: sha224('shop') } },
    spec: {
      displayName: 'shop',
      desiredState: 'STOPPED' as const,
      lifecycle: { type: 'docker' as const, data: { stack: '' } },
      currentDropletRef: { name: 'd' },
    },
  });
});
afterEach(async () => {
  await cluster.stop();
  cli.remove();
});
afterAll(() => bundle.remove());

const old = (process: string, instances: number): GenerationStatus => ({
  ...{ process, hash: `${process}-1`, state: 'Old', instances, ready: instances, served: true },
});
const failed = (process: string): GenerationStatus => ({ process, hash: `${process}-2`, state: 'Failed', instances: 0, ready: 0 });

/** The controller says this of the generations of a start that failed, one state after the other. */
function say(process: string, ...states: GenerationStatus[][]): void {
  const { memory } = cluster;
  memory.intercept = (verb, type) => {
    if (verb !== 'patch' || type.plural !== 'cfapps') return;
    memory.intercept = () => undefined;
    states.forEach((generations, index) => {
      setTimeout(
        () => {
          const id = memory.peek(kinds.app, ns, 'app')?.metadata.annotations?.[annotations.deployId] ?? '';
          const deployment = {
            id,
            phase: 'Failed' as const,
            reason: 'Crashed',
            message: 'It ended with exit code 3.',
            process,
            generations,
          };
          void memory.mergePatch(kinds.app, ns, 'app', { status: { deployment } }, { subresource: 'status' });
        },
        200 + 1_000 * index,
      );
    });
  };
}

it.each([
  ['of a worker', 'worker', [failed('worker'), old('worker', 0)], [failed('worker'), old('worker', 1)]],
  [
    'of a worker beside web',
    'worker',
    [failed('worker'), old('worker', 0), old('web', 1)],
    [failed('worker'), old('worker', 1), old('web', 1)],
  ],
  ['of web', 'web', [failed('web'), old('web', 0)], [failed('web'), old('web', 2)]],
])('the version before %s, which begins when the failed one has ended, is waited for', async (_, process, first, then) => {
  say(process, first, then);
  const run = await cli.run(['start', 'shop']);
  expect([run.code, run.stderr]).toEqual([0, expect.stringContaining("App 'shop' runs as the version that served last.")]);
});

it('without a version that served before, the start fails', async () => {
  say('web', [failed('web')]);
  const run = await cli.run(['start', 'shop']);
  expect([run.code, run.stderr]).toEqual([1, expect.stringContaining('Start unsuccessful: It ended with exit code 3.')]);
});

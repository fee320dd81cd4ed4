// Two commands that give an org, a space or a service another name at the same time. Tests act as the controller and as the other command.

import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { kinds } from '../../../src/lib/api/group.ts';
import type { Condition, KubeObject, ResourceType } from '../../../src/lib/api/object.ts';
import { bundleForTests, Cli } from '../../support/cli.ts';
import { ServedCluster } from '../../support/served-cluster.ts';

const bundle = bundleForTests();
let cluster: ServedCluster;
let cli: Cli;

beforeEach(async () => {
  cluster = await (await ServedCluster.start()).installed();
  cli = new Cli(bundle.program, { KUBECONFIG: cluster.server.kubeconfig() });
  const spec = { displayName: 'example-service', type: 'user-provided' as const, secretName: 'service-guid', planGuid: '' };
  await cluster.add(kinds.serviceInstance, { metadata: { name: 'service-guid', namespace: 'space-guid' }, spec });
  await cli.run(['target', '-o', 'example-org', '-s', 'example-space']);
});

afterEach(async () => {
  await cluster.stop();
  cli.remove();
});
afterAll(() => bundle.remove());

/** What the three kinds have in common. */
type Named = KubeObject & { spec: { displayName: string }; status?: { conditions?: Condition[] } };

describe.each([
  ['org', kinds.org, 'cf', 'org'],
  ['space', kinds.space, 'org-guid', 'space'],
  ['service', kinds.serviceInstance, 'space-guid', 'service instance'],
] as [string, ResourceType<Named>, string, string][])('rename-%s', (command, type, ns, what) => {
  const guid = `${command}-guid`;
  const nameNow = () => cluster.memory.peek(type, ns, guid)?.spec.displayName;
  const renameAgain = () => cluster.memory.mergePatch(type, ns, guid, { spec: { displayName: 'theirs' } });
  const rename = () => cli.run([`rename-${command}`, `example-${command}`, 'mine']);
  const saved = (): string => JSON.stringify(cli.state());

  /** The controller's answer to the present name. */
  async function judge(status: 'True' | 'False'): Promise<void> {
    const { generation: observedGeneration = 0 } = cluster.memory.peek(type, ns, guid)?.metadata ?? {};
    const told = { status, reason: 'Judged', message: '', observedGeneration, lastTransitionTime: '2026-08-07T10:16:20Z' };
    const conditions = ['Claimed', 'Ready'].map((one) => ({ type: one, ...told }));
    await cluster.memory.mergePatch(type, ns, guid, { status: { conditions } }, { subresource: 'status' });
  }

  /** Acts once, when the command waits for the controller (`watch`), or before it gives the former name back (`patch`). */
  function once(wanted: 'watch' | 'patch', act: () => Promise<unknown>): Promise<void> {
    return new Promise((resolve, reject) => {
      cluster.memory.intercept = async (verb, { plural }) => {
        if (verb !== wanted || plural !== type.plural || nameNow() !== 'mine') return;
        cluster.memory.intercept = () => undefined;
        await act().then(() => resolve(), reject);
      };
    });
  }

  it('fails when another rename came later, and names the name of now', async () => {
    const acted = once('watch', async () => {
      await renameAgain();
      await judge('True');
    });
    const run = await rename();
    await acted;
    const message = `The ${what} was renamed again meanwhile: its name is 'theirs'.\n\nTIP:\n   kf ${command} theirs\n`;
    expect(run).toMatchObject({ code: 1, stderr: expect.stringContaining(message) as string });
    expect([nameNow(), saved()]).toEqual(['theirs', expect.not.stringContaining('mine')]);
  });

  it('leaves the name of a later rename when its own is refused', async () => {
    let isBefore = false;
    void once('watch', () => judge('False')).then(() => {
      isBefore = true;
      return once('patch', renameAgain);
    });
    const run = await rename();
    expect([run.code, isBefore, nameNow()]).toEqual([1, true, 'theirs']);
    expect(run.stderr).toMatch(/already exists|is taken/);
  });
});

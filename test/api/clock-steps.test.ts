// Somebody sets the clock of the leader's node, forwards and back, while it works: it stays the leader, works on, and ends nothing before its time.

import { globSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { findCondition } from '../../src/lib/api/conditions.ts';
import type { Lease } from '../../src/lib/api/core.ts';
import type { CFTask } from '../../src/lib/api/types.generated.ts';
import { until } from '../support/until.ts';
import { kubectl, kubectlJson } from './kubectl.ts';
import { installScene, removeScene, startReplica, type Replica } from './replica.ts';

const run = Date.now().toString(36);
const space = `clock-${run}`;
const folder = mkdtempSync(join(tmpdir(), 'kf-clock-'));
const scene = { run, space, root: `clock-root-${run}`, folder };
const replicas: Replica[] = [];
const tasksThatWait = 20;

/** libfaketime reads the difference to the real time from a file, at each question for the time. */
class Clock {
  readonly #file: string;

  constructor(name: string, difference: string) {
    this.#file = join(folder, `${name}.clock`);
    this.set(difference);
  }

  set(difference: string): void {
    writeFileSync(`${this.#file}.new`, `${difference}\n`);
    renameSync(`${this.#file}.new`, this.#file);
  }

  get env(): Record<string, string> {
    const [library] = globSync('/usr/lib*/{,*/}faketime/libfaketime.so.1');
    if (library === undefined) throw new Error('The package libfaketime is not installed.');
    return { LD_PRELOAD: library, FAKETIME_TIMESTAMP_FILE: this.#file, FAKETIME_NO_CACHE: '1', FAKETIME_DONT_FAKE_MONOTONIC: '1' };
  }
}

const task = (name: string, app: string, canceled = false): object => ({
  apiVersion: 'korifi.cloudfoundry.org/v1alpha1',
  kind: 'CFTask',
  metadata: { name, namespace: space },
  spec: { appRef: { name: app }, command: 'true', ...(canceled ? { canceled } : {}) },
});

const tasks = async (): Promise<CFTask[]> => (await kubectlJson<{ items: CFTask[] }>(['get', 'cftasks', '-n', space])).items;
const isOver = (one: CFTask): boolean => ['Succeeded', 'Failed'].some((type) => findCondition(one, type)?.status === 'True');

async function lease(): Promise<NonNullable<Lease['spec']>> {
  return (await kubectlJson<Lease>(['get', 'lease', '-n', 'kf-system', 'kf-controller'])).spec ?? {};
}

let leading: Clock;

beforeAll(async () => {
  await installScene(scene);
  leading = new Clock('leading', '+0');
  replicas.push(await startReplica(scene, `kf-controller-leads-${run}`, 'task', leading.env));
  await until('it to lead', async () => ((await lease()).holderIdentity ?? '') !== '');
  // The other one's clock is wrong all the time.
  replicas.push(await startReplica(scene, `kf-controller-waits-${run}`, 'task', new Clock('waiting', '+7200s').env));
});

afterAll(async () => {
  await removeScene(scene, replicas);
  rmSync(folder, { recursive: true, force: true });
});

test('steps of the clock cost no leadership and no time of what waits', async () => {
  const before = await lease();
  // A task without its app waits for it for ten minutes.
  const names = Array.from({ length: tasksThatWait }, (_, index) => `waits-${String(index)}`);
  await kubectl(['create', '-f', '-'], { input: names.map((name) => task(name, 'later')) });
  const waiting = async (): Promise<CFTask[]> => (await tasks()).filter(({ metadata }) => metadata.name?.startsWith('waits-') === true);
  await until('them to wait', async () => (await waiting()).every((one) => findCondition(one, 'Ready')?.reason === 'AppNotFound'));
  for (const [index, step] of ['+3600s', '-3600s', '+86400s', '-86400s', '+0'].entries()) {
    leading.set(step);
    // Each change is a reason to look at the task, before another answer of the API server says what time it is.
    await kubectl(['label', '--overwrite', 'cftasks', '-n', space, ...names, `example.com/step=${String(index)}`]);
    const name = `next-${String(index)}`;
    await kubectl(['create', '-f', '-'], { input: [task(name, 'none', true)] });
    await until(`${name} to be over`, async () => (await tasks()).some((one) => one.metadata.name === name && isOver(one)));
    expect({ step, over: (await waiting()).filter(isOver).map(({ metadata }) => metadata.name) }).toEqual({ step, over: [] });
  }
  const { holderIdentity, leaseTransitions } = await lease();
  expect({ holderIdentity, leaseTransitions }).toEqual({
    holderIdentity: before.holderIdentity,
    leaseTransitions: before.leaseTransitions,
  });
});

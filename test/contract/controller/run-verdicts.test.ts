// Verdicts: why a revision failed is kept beside its record, before its instances go, and stays when other revisions serve.

import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { configMapType, podDisruptionBudgetType, secretType } from '../../../src/lib/api/core.ts';
import { annotations, kinds } from '../../../src/lib/api/group.ts';
import { processGuid } from '../../../src/lib/api/names.ts';
import { readRecords } from '../../../src/lib/api/revisions.ts';
import { readVerdicts, type Verdict } from '../../../src/lib/api/verdicts.ts';
import { apiError } from '../../support/memory-cluster.ts';
import { appGuid, ns, startRunScene, type RunScene } from './run-scene.ts';

let scene: RunScene;
/** Added to the controller's clock. */
let passedMs = 0;
afterEach(async () => {
  passedMs = 0;
  await scene.stop();
});

const map = () => scene.cluster.peek(configMapType, ns, `${appGuid}-revisions`);
const verdicts = (): Verdict[] => readVerdicts(map());
const reaches = (id: string, phase: 'Serving' | 'Failed'): Promise<void> =>
  scene.until(() => expect(scene.app()?.status?.deployment).toMatchObject({ id, phase }));

test('the cause of a failed revision is kept before its instances are removed, and stays beside later records', async () => {
  scene = await startRunScene();
  await reaches(await scene.deploy('good:1'), 'Serving');
  scene.cluster.writes.length = 0;
  const id = await scene.deploy('crash:1');
  await reaches(id, 'Failed');
  const { cause, message } = scene.app()?.status?.deployment ?? {};
  expect(verdicts()).toMatchObject([{ version: 2, change: id, cause, message, process: 'web' }]);
  expect(cause).toBe('exit-code');
  const patched = scene.cluster.writes.filter(({ verb }) => verb === 'patch');
  const kept = patched.findIndex(({ kind, body }) => kind === 'ConfigMap' && 'verdict-2' in ((body as { data?: object }).data ?? {}));
  const ended = patched.findLastIndex(({ kind }) => kind === 'AppWorkload');
  expect(kept).toBeGreaterThan(-1);
  expect(ended).toBeGreaterThan(kept);
  await reaches(await scene.deploy('good:3'), 'Serving');
  expect(readRecords(map()).map(({ version }) => version)).toEqual([3, 2, 1]);
  expect(verdicts()).toMatchObject([{ version: 2, cause: 'exit-code' }]);
});

test('a failure to keep it does not stop the return', async () => {
  scene = await startRunScene();
  await reaches(await scene.deploy('good:1'), 'Serving');
  const id = await scene.deploy('crash:1');
  await scene.until(() => expect(readRecords(map())).toHaveLength(2));
  await scene.cluster.delete(configMapType, ns, `${appGuid}-revisions`);
  await reaches(id, 'Failed');
  expect(scene.app()?.metadata.annotations?.[annotations.deployId]).toBe(id);
});

test('a change that waits for a binding names its service instance, and its failure is kept', async () => {
  scene = await startRunScene({ now: () => Date.now() + passedMs });
  await reaches(await scene.deploy('good:1'), 'Serving');
  await scene.cluster.create(kinds.serviceInstance, {
    metadata: { name: 'i-1', namespace: ns },
    spec: { displayName: 'db', type: 'user-provided', secretName: 'i-1', planGuid: '' },
  });
  await scene.cluster.create(kinds.serviceBinding, {
    metadata: { name: 'b-1', namespace: ns },
    spec: { type: 'app', appRef: { name: appGuid }, service: { kind: 'CFServiceInstance', name: 'i-1' }, parameters: { name: '' } },
  });
  const id = await scene.deploy('good:2');
  const message = expect.stringMatching(/^The app's binding to service instance 'db' is not ready[.:]/) as string;
  await scene.until(() => expect(scene.app()?.status?.deployment).toMatchObject({ id, reason: 'BindingNotReady', message }));
  passedMs = 20_000;
  await reaches(id, 'Failed');
  expect(readRecords(map()).map(({ version, droplet }) => [version, droplet])).toEqual([[2, 'build-2'], [1, 'build-1']]); // prettier-ignore
  expect(verdicts()).toMatchObject([{ version: 2, change: id, cause: 'binding-not-ready', process: 'web' }]);
});

test('a change without its variables has a revision that failed, and starts with another one', async () => {
  scene = await startRunScene({ now: () => Date.now() + passedMs });
  await reaches(await scene.deploy('good:1'), 'Serving');
  await scene.cluster.delete(secretType, ns, 'env');
  const id = await scene.deploy('good:2', { rev: '1' });
  await scene.until(() => expect(scene.app()?.status?.deployment).toMatchObject({ id, reason: 'EnvironmentLost' }));
  passedMs = 20_000;
  await reaches(id, 'Failed');
  expect(verdicts()).toMatchObject([{ version: 2, change: id, cause: 'secret-missing', process: 'web' }]);
  expect(readRecords(map())[0]).not.toHaveProperty('settings');
  let looks = 0;
  scene.cluster.intercept = (verb, type, name) => void (verb === 'get' && type === secretType && name === 'env' && (looks += 1));
  await sleep(4_000);
  expect(looks).toBeLessThan(5);
  await scene.cluster.create(secretType, { metadata: { name: 'env', namespace: ns }, data: { COLOUR: 'Ymx1ZQ==' } });
  await reaches(id, 'Serving');
  await scene.until(() => expect(scene.app()?.status?.revision).toMatchObject({ version: 3, deployed: 3 }));
  expect(readRecords(map()).map(({ version, settings, description }) => [version, settings, description])).toEqual([
    [3, 3, 'New environment variables deployed.'],
    [2, undefined, 'New droplet deployed. New environment variables deployed.'],
    [1, 1, 'Initial revision.'],
  ]);
});

const quotaText = 'exceeded quota: kf-limits, requested: count/secrets=1, used: count/secrets=2000, limited: count/secrets=2000';

test.each([
  ['QuotaExceeded', 'quota', quotaText],
  ['GenerationRefused', 'admission', "ValidatingAdmissionPolicy 'p' with binding 'p' denied request: no"],
])(
  'a version whose Secret is refused is made once, fails with its cause, and starts when it is not refused any more: %s',
  async (reason, cause, text) => {
    scene = await startRunScene({ now: () => Date.now() + passedMs });
    await reaches(await scene.deploy('good:1'), 'Serving');
    let isFull = true;
    scene.cluster.intercept = (verb, type, name) => {
      if (isFull && verb === 'create' && type === secretType && name.endsWith('-env'))
        throw apiError(403, 'Forbidden', `secrets "${name}" is forbidden: ${text}`, name);
    };
    scene.cluster.writes.length = 0;
    const made = () => scene.cluster.writes.filter(({ verb, kind }) => verb === 'create' && kind === 'AppWorkload');
    const id = await scene.deploy('good:2', { rev: '1' });
    await scene.until(() => expect(scene.app()?.status?.deployment).toMatchObject({ id, phase: 'Pending', reason }));
    passedMs = 20_000;
    await reaches(id, 'Failed');
    expect(scene.app()?.status?.deployment).toMatchObject({ cause, message: expect.stringContaining(text) as string });
    expect(verdicts()).toMatchObject([{ version: 2, change: id, cause, process: 'web' }]);
    isFull = false;
    await reaches(id, 'Serving');
    expect(made()).toHaveLength(1);
  },
);

test('a droplet with a process type that is refused has revisions and verdicts too', async () => {
  scene = await startRunScene();
  scene.cluster.intercept = (verb, { plural }, name) => {
    if (verb === 'create' && plural === kinds.process.plural && name === processGuid(appGuid, 'bad_'))
      throw apiError(422, 'Invalid', `CFProcess "${name}" is invalid: metadata.labels: Invalid value`, name);
  };
  await reaches(await scene.deploy('good:1', { processTypes: ['web', 'bad_'] }), 'Serving');
  const id = await scene.deploy('crash:1', { processTypes: ['web', 'bad_'] });
  await reaches(id, 'Failed');
  expect(scene.app()?.status?.revision).toMatchObject({ version: 2, deployed: 1 });
  expect(verdicts()).toMatchObject([{ version: 2, change: id, cause: 'exit-code' }]);
});

const instancesOf = (image: string) => scene.cluster.all(kinds.appWorkload).find(({ spec }) => spec.image === image)?.spec.instances;

/** How often a version got its instance. */
const startsOf = (image: string): number => {
  const names = scene.cluster.all(kinds.appWorkload).flatMap(({ metadata, spec }) => (spec.image === image ? [metadata.name] : []));
  const bodies = scene.cluster.writes.filter(({ kind, name, verb }) => kind === 'AppWorkload' && verb === 'patch' && names.includes(name));
  return bodies.filter(({ body }) => (body as { spec?: { instances?: number } }).spec?.instances === 1).length;
};

test('a failed version is not started again when its status could not be written', async () => {
  scene = await startRunScene();
  await reaches(await scene.deploy('good:1'), 'Serving');
  let lost = 0;
  scene.cluster.intercept = (verb, type) => {
    if (verb !== 'patch' || type.plural !== kinds.process.plural || verdicts().length === 0 || lost >= 4) return;
    lost += 1;
    throw new Error('connection lost');
  };
  await reaches(await scene.deploy('crash:1'), 'Failed');
  await scene.until(() => expect([instancesOf('good:1'), instancesOf('crash:1')]).toEqual([1, 0]));
  expect([lost, startsOf('crash:1')]).toEqual([4, 1]);
});

test('a failed version is replaced although its budget is refused', async () => {
  scene = await startRunScene();
  await reaches(await scene.deploy('good:1'), 'Serving');
  scene.cluster.intercept = (verb, type, name) => {
    if (verb === 'create' && type === podDisruptionBudgetType) throw apiError(403, 'Forbidden', 'exceeded quota', name);
  };
  for (const { metadata } of scene.cluster.all(podDisruptionBudgetType))
    await scene.cluster.delete(podDisruptionBudgetType, ns, metadata.name ?? '');
  await reaches(await scene.deploy('crash:1'), 'Failed');
  await scene.until(() => expect([instancesOf('good:1'), instancesOf('crash:1')]).toEqual([1, 0]));
  expect(startsOf('crash:1')).toBe(1);
});

/** Refuses the frozen Secrets of variables. @returns how often that was tried */
function refuseSecrets(text: (tries: number) => string): () => number {
  let tries = 0;
  scene.cluster.intercept = (verb, type, name) => {
    if (verb !== 'create' || type !== secretType || !name.endsWith('-env')) return;
    tries += 1;
    throw apiError(403, 'Forbidden', text(tries), name);
  };
  return () => tries;
}

test('a refusal with another text at each try is tried again after a pause only', async () => {
  scene = await startRunScene();
  await reaches(await scene.deploy('good:1'), 'Serving');
  const tries = refuseSecrets((count) => `admission webhook "v.example" denied the request: not signed (request ${String(count)})`);
  const id = await scene.deploy('good:2', { rev: '1' });
  await scene.until(() => expect(scene.app()?.status?.deployment).toMatchObject({ id, reason: 'GenerationRefused' }));
  await sleep(1_000);
  expect(tries()).toBeLessThan(10);
});

test('a refused replacement of a version that lost its variables is tried again after a pause only', async () => {
  scene = await startRunScene();
  await reaches(await scene.deploy('good:1'), 'Serving');
  await scene.cluster.mergePatch(secretType, ns, 'env', { data: { NEW: 'eA==' } });
  const tries = refuseSecrets(() => quotaText);
  const [workload] = scene.cluster.all(kinds.appWorkload);
  const lost = {
    type: 'Whole',
    status: 'False' as const,
    reason: 'EnvironmentLost',
    message: 'x',
    lastTransitionTime: new Date().toISOString(),
  };
  const status = { conditions: [...(workload?.status?.conditions ?? []), lost] };
  await scene.cluster.mergePatch(kinds.appWorkload, ns, workload?.metadata.name ?? '', { status }, { subresource: 'status' });
  await scene.until(() => expect(tries()).toBeGreaterThan(0));
  await sleep(1_000);
  expect(tries()).toBeLessThan(5);
});

test('a refused budget delays no step of a change', async () => {
  scene = await startRunScene();
  await reaches(await scene.deploy('good:1'), 'Serving');
  await scene.cluster.mergePatch(kinds.process, ns, scene.web()?.metadata.name ?? '', { spec: { desiredInstances: 4 } });
  await scene.until(() => expect(scene.web()?.status?.actualInstances).toBe(4));
  scene.cluster.intercept = (verb, type, name) => {
    if (verb === 'create' && type === podDisruptionBudgetType) throw apiError(403, 'Forbidden', 'exceeded quota: team', name);
  };
  for (const { metadata } of scene.cluster.all(podDisruptionBudgetType))
    await scene.cluster.delete(podDisruptionBudgetType, ns, metadata.name ?? '');
  await reaches(await scene.deploy('good:2', { rev: '1' }), 'Serving');
});

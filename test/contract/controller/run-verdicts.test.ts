// Verdicts: why a revision failed is kept beside its record, before its instances go, and stays when other revisions serve.

import { afterEach, expect, test } from 'vitest';
import { configMapType } from '../../../src/lib/api/core.ts';
import { annotations } from '../../../src/lib/api/group.ts';
import { readRecords } from '../../../src/lib/api/revisions.ts';
import { readVerdicts, type Verdict } from '../../../src/lib/api/verdicts.ts';
import { appGuid, ns, startRunScene, type RunScene } from './run-scene.ts';

let scene: RunScene;
afterEach(() => scene.stop());

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

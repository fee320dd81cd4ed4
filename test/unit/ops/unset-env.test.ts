import { expect, test } from 'vitest';
import { secretType } from '../../../src/lib/api/core.ts';
import type { CFApp } from '../../../src/lib/api/types.generated.ts';
import type { Stored } from '../../../src/lib/api/object.ts';
import { unsetEnv } from '../../../src/lib/ops/apps/env.ts';
import type { SpaceSession } from '../../../src/lib/session/session.ts';
import { kfVersion } from '../../../src/lib/version.ts';
import { MemoryCluster } from '../../support/memory-cluster.ts';

test('a variable named like a method of every object counts as set only if somebody set it', async () => {
  const cluster = new MemoryCluster();
  await cluster.create(secretType, { metadata: { name: 'a-env', namespace: 'space' }, data: { KEY: 'dg==' } });
  const info = () => Promise.resolve({ controller: { version: kfVersion() }, oldestCli: kfVersion() });
  const place = { cluster, space: { guid: 'space', name: 'space' } };
  const session = { ...place, info, changedBy: () => Promise.resolve('somebody') } as unknown as SpaceSession;
  const app = { metadata: { name: 'a', namespace: 'space' }, spec: { envSecretName: 'a-env' } } as Stored<CFApp>;
  expect(await unsetEnv(session, app, 'constructor')).toBe(false);
  expect(await unsetEnv(session, app, 'KEY')).toBe(true);
});

import { expect, test } from 'vitest';
import { secretType } from '../../../src/lib/api/core.ts';
import { resolvePlan } from '../../../src/lib/ops/install/request.ts';
import { withBuildEnvRevision } from '../../../src/lib/ops/install/build-env.ts';
import { buildInfo, buildInstallationEnv } from '../../../src/templates/setup/info.ts';
import { MemoryCluster } from '../../support/memory-cluster.ts';

const password = 'https://user:secret@npm.example.com/';
const plan = (buildEnv: Record<string, string>) => resolvePlan({ buildEnv }, '0.2.0', 'hostport');

test('the environment of builds has a revision that stays while the environment is the same', async () => {
  const cluster = new MemoryCluster();
  const first = await withBuildEnvRevision(cluster, plan({ MIRROR: password }));
  expect(first.buildEnvRevision).toMatch(/^[0-9a-f-]{36}$/);
  await cluster.create(secretType, buildInstallationEnv(first));
  expect((await withBuildEnvRevision(cluster, plan({ MIRROR: password }))).buildEnvRevision).toBe(first.buildEnvRevision);
  expect((await withBuildEnvRevision(cluster, plan({ MIRROR: 'other' }))).buildEnvRevision).not.toBe(first.buildEnvRevision);
  expect((await withBuildEnvRevision(cluster, plan({}))).buildEnvRevision).toBeUndefined();
});

test('the public object contains the revision and no value', async () => {
  const full = await withBuildEnvRevision(new MemoryCluster(), plan({ MIRROR: password }));
  const text = JSON.stringify(buildInfo(full));
  expect(text).toContain(full.buildEnvRevision);
  expect(text).not.toContain('MIRROR');
  expect(text).not.toContain('secret@');
});

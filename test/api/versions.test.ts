// The policy that an installation is not taken back by a kf that does not know what it depends on.

import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { until } from '../support/until.ts';
import { ask, kubectl, makeNamespace } from './kubectl.ts';

const key = 'kf.cloudfoundry.org/setup-format';
const info = (format: string | undefined, text: string): object => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'kf-info', namespace: 'cf', ...(format === undefined ? {} : { annotations: { [key]: format } }) },
  data: { 'info.json': text },
});
const apply = ['apply', '--server-side', '--force-conflicts', '--field-manager=kf-setup', '-f', '-'];

beforeAll(async () => {
  await makeNamespace('cf');
  await kubectl(['delete', 'configmap', '-n', 'cf', 'kf-info', '--ignore-not-found']);
  await kubectl(['apply', '--server-side', '-f', join('manifests', 'policies', 'versions.yaml')]);
  await kubectl(apply, { input: info('2', '{}') });
  await until('the policy to be in force', async () => {
    const { code } = await ask([...apply, '--dry-run=server'], { input: info('1', '{}') });
    return code !== 0;
  });
});

/** Other files write a description of their own, without the number. */
afterAll(() => kubectl(['delete', 'configmap', '-n', 'cf', 'kf-info', '--ignore-not-found']));

test.each([undefined, '1', '', 'x'])('a setup with the number %j is refused, in the dry run too', async (format) => {
  for (const flags of [[], ['--dry-run=server']]) {
    const refused = await ask([...apply, ...flags], { input: info(format, '{"changed":true}') });
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain('This kf is too old to replace the one that set this cluster up: install that kf, or a newer one');
  }
});

test.each(['2', '3', '10'])('a setup with the number %s writes it', async (format) => {
  await kubectl(apply, { input: info(format, `{"by":${format}}`) });
});

test('other ConfigMaps are not concerned', async () => {
  const other = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'other', namespace: 'cf', annotations: { [key]: '2' } } };
  await kubectl(apply, { input: other });
  await kubectl(apply, { input: { ...other, metadata: { name: 'other', namespace: 'cf' } } });
});

import { expect, test } from 'vitest';
import type { KfInfo } from '../../../src/lib/api/kf-info.ts';
import { buildKey } from '../../../src/lib/ops/builds/build-key.ts';

const inputs = { contentHash: 'sha256:1', buildpacks: [], stack: '', env: { A: '1' } };
const key = (builder: Partial<KfInfo['builder']>): string =>
  buildKey({ builder: { name: 'kf-builder', image: 'b', ...builder } } as KfInfo, inputs);

test('builds differ when the environment that setup gives them has changed, and only then', () => {
  expect(key({ envRevision: 'r1' })).toBe(key({ envRevision: 'r1' }));
  expect(key({ envRevision: 'r2' })).not.toBe(key({ envRevision: 'r1' }));
  expect(key({})).not.toBe(key({ envRevision: 'r1' }));
});

test('the environment itself counts where an older controller tells it', () => {
  expect(key({ env: { MIRROR: 'm' } })).not.toBe(key({}));
  expect(key({ env: { MIRROR: 'n' } })).not.toBe(key({ env: { MIRROR: 'm' } }));
});

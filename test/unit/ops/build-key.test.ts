import { expect, test } from 'vitest';
import type { KfInfo } from '../../../src/lib/api/kf-info.ts';
import { annotations } from '../../../src/lib/api/group.ts';
import type { Stored } from '../../../src/lib/api/object.ts';
import type { CFServiceBinding } from '../../../src/lib/api/types.generated.ts';
import { buildKey } from '../../../src/lib/ops/builds/build-key.ts';

const inputs = { contentHash: 'sha256:1', buildpacks: [], stack: '', env: { A: '1' } };
const key = (builder: Partial<KfInfo['builder']>, bindings: Stored<CFServiceBinding>[] = []): string =>
  buildKey({ builder: { name: 'kf-builder', image: 'b', ...builder } } as KfInfo, { ...inputs, bindings });

test('the key changes if the environment that setup gives to builds has changed, and only then', () => {
  expect(key({ envRevision: 'r1' })).toBe(key({ envRevision: 'r1' }));
  expect(key({ envRevision: 'r2' })).not.toBe(key({ envRevision: 'r1' }));
  expect(key({})).not.toBe(key({ envRevision: 'r1' }));
});

test('the environment itself is part of the key if an older controller shows it', () => {
  expect(key({ env: { MIRROR: 'm' } })).not.toBe(key({}));
  expect(key({ env: { MIRROR: 'n' } })).not.toBe(key({ env: { MIRROR: 'm' } }));
});

const binding = (name: string, version: string, displayName?: string): Stored<CFServiceBinding> =>
  ({
    metadata: { name, annotations: { [annotations.instanceVersion]: version } },
    spec: { type: 'app', appRef: { name: 'shop' }, service: { name: 'db' }, displayName },
  }) as unknown as Stored<CFServiceBinding>;
const bound = (...bindings: Stored<CFServiceBinding>[]): string => key({}, bindings);

test('the key changes with other services, other names of bindings, or other credentials', () => {
  const one = bound(binding('b-1', '7'));
  expect(bound(binding('b-1', '7'))).toBe(one);
  const others = [bound(), bound(binding('b-2', '7')), bound(binding('b-1', '8')), bound(binding('b-1', '7', 'other'))];
  expect(new Set([one, ...others]).size).toBe(5);
});

test('the key does not depend on the order of bindings, nor on one that is refused or being deleted', () => {
  const [one, two] = [binding('b-1', '7'), binding('b-2', '7')];
  const refused = { ...two, status: { conditions: [{ type: 'Claimed', status: 'False' }] } } as Stored<CFServiceBinding>;
  const goes = { ...two, metadata: { ...two.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } };
  expect(bound(two, one)).toBe(bound(one, two));
  expect(bound(one, refused, goes)).toBe(bound(one));
});

test('without services the key is that of earlier versions', () => {
  expect(bound()).toBe('sha256:5e295677fc189bfe19bf487df373bb9d6909b3382624615bd3f60e1479ae113c');
});

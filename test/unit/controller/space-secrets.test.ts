import { describe, expect, test } from 'vitest';
import type { Secret } from '../../../src/lib/api/core.ts';
import { registryPassword } from '../../../src/lib/api/registry-credentials.ts';
import { isGoodCredential, lifetimes, spaceCredentials } from '../../../src/controller/registry/credentials.ts';

const [key, other] = [Buffer.from('the key that signs, long enough..'), Buffer.from('another key, and long enough too.')];
const now = 1_800_000_000;
const prefix = 'localhost:32500/';

describe.each([
  ['pull', 0],
  ['push', 1],
] as const)('the %s credential of a space', (kind, at) => {
  const credential = (space = 's-1') => spaceCredentials(space, prefix)[at] as ReturnType<typeof spaceCredentials>[number];
  const signed = (until: number, signer = key, space = 's-1'): Secret => {
    const username = credential(space).user(until);
    return credential().secret({ username, password: registryPassword(signer, username) });
  };
  const isGood = (secret: Secret): boolean => isGoodCredential(secret, credential(), key, now);
  const { seconds, renewBelow } = lifetimes[kind];

  test('is not renewed before half of its lifetime, or the reserve for an absent controller, is left', () => {
    expect(isGood(signed(now + seconds))).toBe(true);
    expect(isGood(signed(now + renewBelow))).toBe(true);
    expect(isGood(signed(now + renewBelow - 1))).toBe(false);
  });

  test('is renewed when another key signs, when it expires later than any new one, or when it is of another space or changed', () => {
    expect(isGood(signed(now + seconds, other))).toBe(false);
    expect(isGood(signed(now + seconds + 1))).toBe(false);
    expect(isGood(signed(now + seconds, key, 's-2'))).toBe(false);
    expect(isGood({ ...signed(now + seconds), data: { ...signed(now + seconds).data, more: 'eA==' } })).toBe(false);
  });

  test('is renewed if it is of version 0.1.0, without an expiry time', () => {
    const username = `${kind}.s-1`;
    expect(isGood(credential().secret({ username, password: registryPassword(key, username) }))).toBe(false);
    expect(isGood({ ...credential().secret({ username, password: '' }), data: {} })).toBe(false);
  });
});

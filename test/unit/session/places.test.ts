import { expect, it } from 'vitest';
import type { CFOrg } from '../../../src/lib/api/types.generated.ts';
import { byClaim } from '../../../src/lib/session/places.ts';
import { asStored } from '../../support/stored.ts';

const org = (name: string, second: number, claimed?: 'True' | 'False') =>
  asStored({
    metadata: { name, namespace: 'cf', creationTimestamp: `2026-08-07T10:16:2${second}Z` },
    spec: { displayName: 'shop' },
    ...(claimed === undefined ? {} : { status: { conditions: [{ type: 'Claimed', status: claimed, reason: 'x', message: '' }] } }),
  } as CFOrg);

it.each([
  ['the older one, if none has it', org('a', 2), org('b', 1), 'b'],
  ['the one that has it, also if it is younger', org('a', 1, 'False'), org('b', 2, 'True'), 'b'],
  ['always the same one of those of one second', org('b', 1), org('a', 1), 'a'],
])('of two orgs with one name, commands use %s', (_, one, other, first) => {
  expect([one, other].toSorted(byClaim)[0]?.metadata.name).toBe(first);
  expect([other, one].toSorted(byClaim)[0]?.metadata.name).toBe(first);
});

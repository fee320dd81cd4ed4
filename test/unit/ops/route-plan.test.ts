// Which routes a push wants, and the hosts that it makes of an app's name.

import { describe, expect, test } from 'vitest';
import type { Stored } from '../../../src/lib/api/object.ts';
import type { CFDomain } from '../../../src/lib/api/types.generated.ts';
import { planPush } from '../../../src/lib/manifest/push-plan.ts';
import { wantedRoutes } from '../../../src/lib/ops/push/route-plan.ts';

const domain = { metadata: { name: 'd' }, spec: { name: 'apps.example.com' } } as Stored<CFDomain>;

function hostOf(appName: string, flags = {}): string | undefined {
  const [plan] = planPush({ workingFolder: '/m', flags: { name: appName, ...flags } }).apps;
  if (plan === undefined) throw new Error('no app');
  return wantedRoutes(plan, [domain], false)[0]?.host;
}

const label = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

describe('a random host', () => {
  test.each([
    ['shop', /^shop-[a-z]+-[a-z]+-[a-z]{2}$/],
    ['My_Shop', /^my-shop-[a-z]+-[a-z]+-[a-z]{2}$/],
    ['_shop__', /^shop-[a-z]+-[a-z]+-[a-z]{2}$/],
    ['___', /^[a-z]+-[a-z]+-[a-z]{2}$/],
    ['m'.repeat(200), /^m+-[a-z]+-[a-z]+-[a-z]{2}$/],
    [`${'m-'.repeat(50)}m`, /^m[-m]*m-[a-z]+-[a-z]+-[a-z]{2}$/],
  ])('of app %j is a valid host name', (name, form) => {
    const host = hostOf(name, { randomRoute: true });
    expect(host).toMatch(form);
    expect(host).toMatch(label);
  });
});

test('the default route is never on an internal domain, however old that is', () => {
  const internal = { metadata: { name: 'i' }, spec: { name: 'apps.internal', internal: true } } as Stored<CFDomain>;
  const [plan] = planPush({ workingFolder: '/m', flags: { name: 'shop' } }).apps;
  if (plan === undefined) throw new Error('no app');
  expect(wantedRoutes(plan, [internal, domain], false).map(({ domain: { spec } }) => spec.name)).toEqual(['apps.example.com']);
});

test.each([
  ['shop', 'shop'],
  ['My_Shop', 'my-shop'],
])('the default host of app %j is %j', (name, host) => {
  expect(hostOf(name)).toBe(host);
});

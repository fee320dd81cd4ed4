import { describe, expect, test } from 'vitest';
import {
  addressOf,
  appWorkloadName,
  likely,
  nameClaims,
  namespacedUuid,
  nearest,
  processGuid,
  roleBindingName,
  serviceName,
  sha224,
  statefulSetName,
  timeLabel,
  uuidV5,
} from '../../../src/lib/api/names.ts';
import type { CFApp, CFDomain, CFRoute } from '../../../src/lib/api/types.generated.ts';

const app = '11111111-1111-4111-8111-111111111111';
const space = '22222222-2222-4222-8222-222222222222';
const process = 'adf88d59-873a-5df1-860b-00b9853c23b5';

describe('the test vectors of the contract', () => {
  test('a process is named after its app and type', () => {
    expect(namespacedUuid(app, 'web')).toBe(process);
    expect(processGuid(app, 'web')).toBe(process);
  });

  test('a StatefulSet is named after forty characters of app and space and ten of a hash', () => {
    expect(statefulSetName(app, space, process, '0')).toBe('11111111-1111-4111-8111-111111111111-222-b1a4302822');
  });

  test('names become SHA-224 in labels', () => {
    expect(sha224('hello')).toBe('ea09ae9cc6768c50fcee903ed054556e5bfc8347907f12598aa24193');
  });

  test('a role binding is named after role and user', () => {
    expect(roleBindingName('space_developer', { user: 'alice' })).toBe(
      'cf-397993fd2409784578b04d93893ccaa4c33899a29ca9e93027b9c960a9cdddfb',
    );
  });

  test('the Lease of an app name is named after its hash', () => {
    const object = { metadata: { name: app }, spec: { displayName: 'My-App' } } as CFApp;
    expect(nameClaims.app(object)).toEqual({
      entityType: 'app',
      uniqueName: 'my-app',
      leaseName: 'n-81c7b2925006d086e7596837968776c128ba5ec2',
    });
  });
});

test('uuidV5 agrees with the example of RFC 9562', () => {
  expect(uuidV5('6ba7b810-9dad-11d1-80b4-00c04fd430c8', 'www.example.com')).toBe('2ed6657d-e927-568b-95e1-2665a8aea6a2');
});

test("the role binding of a service account has the account's namespace in its name", () => {
  const binding = roleBindingName('space_developer', { namespace: 'ci', name: 'deployer' });
  expect(binding).toBe(roleBindingName('space_developer', { user: 'ci/deployer' }));
});

test('for an app GUID that is not a Kubernetes name the process GUID is used', () => {
  expect(statefulSetName('My App!', space, process, 'ab12')).toMatch(new RegExp(`^${process}-[0-9a-f]{10}$`));
});

test('every computed name has at most 63 characters', () => {
  const generation = '0123456789';
  const names = [
    appWorkloadName(process, generation),
    serviceName(app, generation),
    `${statefulSetName(app, space, process, generation)}-1000`,
  ];
  for (const name of names) expect(name.length).toBeLessThanOrEqual(63);
});

test('the name lease of a route ignores the case of host and path, as cf does', () => {
  const route = (host: string, path: string) =>
    ({ metadata: {}, spec: { host, path, domainRef: { namespace: 'cf', name: 'd' } } }) as CFRoute;
  expect(nameClaims.route(route('WWW', '/A')).uniqueName).toBe('www::cf::d::/a');
  expect(nameClaims.route(route('www', '/a'))).toEqual(nameClaims.route(route('www', '/A')));
  expect(nameClaims.routeHost('WWW.example.com')).toEqual(nameClaims.routeHost('www.example.com'));
});

test('an address consists of host, domain and path', () => {
  const route = { metadata: {}, spec: { host: 'Shop', path: '/v1', domainRef: { name: 'd' } } } as CFRoute;
  const domain = { metadata: {}, spec: { name: 'example.com' } } as CFDomain;
  expect(addressOf(route, domain)).toEqual({ fqdn: 'shop.example.com', uri: 'shop.example.com/v1' });
  expect(addressOf(route, { metadata: {}, spec: { name: 'example.com.' } }).fqdn).toBe('shop.example.com');
});

test('times in labels are in UTC and without colons', () => {
  expect(timeLabel('2026-08-07T12:16:20.450+02:00')).toBe('2026-08-07T10-16-20');
});

describe('nearest', () => {
  test('finds the name behind a typing error', () => {
    expect(nearest('ordrs', ['billing', 'orders', 'shop'])).toBe('orders');
  });

  test('allows two swapped letters in a short name', () => {
    expect(nearest('bakc', ['front', 'back'])).toBe('back');
  });

  test('returns the closest of several names', () => {
    expect(nearest('memory', ['memorial', 'memry'])).toBe('memry');
  });

  test('returns nothing if no name is similar', () => {
    expect(nearest('orders', ['billing', 'shop'])).toBeUndefined();
  });
});

describe('likely', () => {
  const commands = ['app', 'apps', 'sp', 'push', 'apply-manifest', 'restart'];

  test('names that begin with the typed word come before similar names', () => {
    expect(likely('ap', commands)).toEqual(['app', 'apps', 'apply-manifest']);
  });

  test('then follow the nearest names, in the given order if two are equally near', () => {
    expect(likely('apsp', commands)).toEqual(['app', 'apps']);
  });

  test('there are at most three names', () => {
    expect(likely('a', ['ab', 'ac', 'ad', 'ae'])).toEqual(['ab', 'ac', 'ad']);
  });

  test('there is no name if none is similar', () => {
    expect(likely('orders', commands)).toEqual([]);
  });
});

import { expect, test } from 'vitest';
import { indexLabels } from '../../../src/lib/api/labels.ts';
import { sha224 } from '../../../src/lib/api/names.ts';

const apiVersion = 'korifi.cloudfoundry.org/v1alpha1';
const now = new Date('2026-08-07T10:16:20Z');
const of = (kind: string, rest: object, metadata: object = {}) =>
  indexLabels({ apiVersion, kind, metadata: { name: 'guid', namespace: 'ns', ...metadata }, ...rest }, { now });
const base = { 'korifi.cloudfoundry.org/guid': 'guid', 'korifi.cloudfoundry.org/created_at': '2026-08-07T10-16-20' };
const ready = (status: string) => ({ status: { conditions: [{ type: 'Ready', status }] } });

test('an app can be found by its space and the hash of its name', () => {
  expect(of('CFApp', { spec: { displayName: 'shop' } })).toEqual({
    ...base,
    'korifi.cloudfoundry.org/space-guid': 'ns',
    'korifi.cloudfoundry.org/display-name': sha224('shop'),
    'korifi.cloudfoundry.org/deployment-status': 'ACTIVE',
  });
});

test('a ready app has a finalized deployment', () => {
  expect(of('CFApp', { spec: { displayName: 'shop' }, ...ready('True') })['korifi.cloudfoundry.org/deployment-status']).toBe('FINALIZED');
});

test('a build has the label of its state only if it has a state', () => {
  const spec = { appRef: { name: 'app' }, packageRef: { name: 'package' } };
  expect(of('CFBuild', { spec })).not.toHaveProperty(['korifi.cloudfoundry.org/build-state']);
  expect(of('CFBuild', { spec, status: { state: 'STAGED' } })).toMatchObject({
    'korifi.cloudfoundry.org/app-guid': 'app',
    'korifi.cloudfoundry.org/package-guid': 'package',
    'korifi.cloudfoundry.org/droplet-guid': 'guid',
    'korifi.cloudfoundry.org/build-state': 'STAGED',
  });
});

test('a route has labels for its path and for missing destinations only if they apply', () => {
  const domainRef = { name: 'domain' };
  const bare = of('CFRoute', { spec: { host: 'www', domainRef } });
  expect(bare).not.toHaveProperty(['korifi.cloudfoundry.org/route-path']);
  expect(bare).not.toHaveProperty(['korifi.cloudfoundry.org/unmapped']);
  expect(of('CFRoute', { spec: { host: 'www', path: '/a', domainRef, destinations: [] } })).toMatchObject({
    'korifi.cloudfoundry.org/route-host': 'www',
    'korifi.cloudfoundry.org/route-path': sha224('/a'),
    'korifi.cloudfoundry.org/unmapped': 'true',
  });
});

test('a wildcard host has no label, because * is not a valid label value', () => {
  expect(of('CFRoute', { spec: { host: '*', domainRef: { name: 'domain' } } })).not.toHaveProperty(['korifi.cloudfoundry.org/route-host']);
});

test('the creation time of the server has priority over the clock', () => {
  const labels = of('CFDomain', { spec: { name: 'example.com' } }, { creationTimestamp: '2025-01-02T03:04:05Z' });
  expect(labels['korifi.cloudfoundry.org/created_at']).toBe('2025-01-02T03-04-05');
});

test("kinds that are not kf's get no labels", () => {
  expect(indexLabels({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'x' } })).toEqual({});
  expect(of('AppWorkload', { spec: {} })).toEqual({});
});

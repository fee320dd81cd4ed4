import { expect, test } from 'vitest';
import { surplusOf } from '../../../src/controller/builds/retention.ts';
import { isInClusterRegistry, pullRepository, pushReference, pushRepository } from '../../../src/lib/api/repositories.ts';
import type { CFApp, CFBuild, CFPackage } from '../../../src/lib/api/types.generated.ts';
import type { Stored } from '../../../src/lib/api/object.ts';
import { asStored } from '../../support/stored.ts';

const condition = (type: string, status: 'True' | 'False') => ({ type, status, reason: 'x', message: '', lastTransitionTime: '' });
const at = (age: number): string => `2026-01-01T00:00:${String(60 - age).padStart(2, '0')}Z`;
const app = (droplet?: string): Stored<CFApp> =>
  asStored({
    metadata: { name: 'a', namespace: 's' },
    spec: droplet === undefined ? {} : { currentDropletRef: { name: droplet } },
  } as CFApp);
const build = (name: string, age: number, state?: 'STAGED' | 'FAILED', source = `p-${name}`): Stored<CFBuild> =>
  asStored({
    metadata: { name, creationTimestamp: at(age) },
    spec: { packageRef: { name: source } },
    status: state === undefined ? {} : { state, conditions: [condition('Succeeded', state === 'STAGED' ? 'True' : 'False')] },
  } as CFBuild);
const source = (name: string, age: number, ready = true): Stored<CFPackage> =>
  asStored({
    metadata: { name, creationTimestamp: at(age) },
    status: { conditions: ready ? [condition('Ready', 'True')] : [] },
  } as CFPackage);
const later = Date.parse('2026-01-01T01:00:00Z');
const names = (objects: { metadata: { name?: string } }[]) => objects.map((object) => object.metadata.name);
const six = [1, 2, 3, 4, 5, 6];

test('the newest five droplets, the newest five failures and running builds stay', () => {
  const builds = [
    ...six.map((n) => build(`s${String(n)}`, n, 'STAGED')),
    ...six.map((n) => build(`f${String(n)}`, n + 10, 'FAILED')),
    build('run', 50),
  ];
  expect(names(surplusOf(app(), builds, [], later).builds)).toEqual(['s6', 'f6']);
});

test('the current droplet and its package stay, however old they are', () => {
  const builds = six.map((n) => build(`s${String(n)}`, n, 'STAGED', `p${String(n)}`));
  const surplus = surplusOf(
    app('s6'),
    builds,
    six.map((n) => source(`p${String(n)}`, n)),
    later,
  );
  expect([names(surplus.builds), names(surplus.packages)]).toEqual([[], []]);
});

test('packages with newer ones are deleted, but not those of a running build or without source', () => {
  const packages = [...six.map((n) => source(`p${String(n)}`, n)), source('p7', 7), source('empty', 40, false)];
  expect(names(surplusOf(app(), [build('run', 1, undefined, 'p7')], packages, later).packages)).toEqual(['p6']);
});

test('packages without source are deleted after a day', () => {
  const packages = [source('empty', 40, false), source('current', 40, false)];
  const left = (hours: number) =>
    names(surplusOf(app(), [build('run', 1, undefined, 'current')], packages, Date.parse(at(40)) + hours * 3_600_000).packages);
  expect(left(24)).toEqual([]);
  expect(left(25)).toEqual(['empty']);
});

test('objects of a running push and all new objects stay', () => {
  const builds = six.map((n) => build(`s${String(n)}`, n, 'STAGED'));
  const packages = six.map((n) => source(`p${String(n)}`, n));
  const young = surplusOf(app(), builds, packages, Date.parse(at(0)));
  expect([young.builds, young.packages, young.waits]).toEqual([[], [], true]);
  const mark = { annotations: { 'kf.cloudfoundry.org/push-id': 'x' } };
  const pushed = { ...app(), metadata: { ...app().metadata, ...mark } };
  const own = builds.map((each) => (each.metadata.name === 's6' ? { ...each, metadata: { ...each.metadata, ...mark } } : each));
  expect(names(surplusOf(pushed, own, [], later).builds)).toEqual([]);
});

test('a package that waits for its start or was pushed again stays, however many builds follow', () => {
  const packages = six.map((n) => source(`p${String(n)}`, n));
  const marked = (annotations: Record<string, string>) => ({ ...app('s1'), metadata: { ...app().metadata, annotations } });
  const left = (of: Stored<CFApp>) => names(surplusOf(of, [], [...packages, source('p7', 7)], later).packages);
  expect(left(app('s1'))).toEqual(['p6', 'p7']);
  expect(left(marked({ 'kf.cloudfoundry.org/unstaged': 'p7/s1' }))).toEqual(['p6']);
  expect(left(marked({ 'kf.cloudfoundry.org/package': 'p6/p1' }))).toEqual(['p7']);
});

test('repositories have the same path at the push port and behind the pull prefix', () => {
  const inside = { pushHost: 'kf-registry.kf-system.svc:5000', pullPrefix: 'localhost:32500/' };
  expect(pushRepository(inside, 's', 'a', 'droplets')).toBe('kf-registry.kf-system.svc:5000/s/a-droplets');
  expect(pullRepository(inside, 's', 'a', 'droplets')).toBe('localhost:32500/s/a-droplets');
  expect(pushReference(inside, 'localhost:32500/s/a-droplets@sha256:x')).toBe('kf-registry.kf-system.svc:5000/s/a-droplets@sha256:x');
  expect(pushReference(inside, 'elsewhere/s/a@sha256:x')).toBeUndefined();
  const outside = { pushHost: 'ghcr.io', pullPrefix: 'ghcr.io/team/kf-' };
  expect(pushRepository(outside, 's', 'a', 'packages')).toBe('ghcr.io/team/kf-s/a-packages');
  expect(pullRepository(outside, 's', 'a', 'packages')).toBe('ghcr.io/team/kf-s/a-packages');
  expect([isInClusterRegistry(inside), isInClusterRegistry(outside), isInClusterRegistry({ pushHost: 'evil.svc.example.org' })]).toEqual([
    true,
    false,
    false,
  ]);
});

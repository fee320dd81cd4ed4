import { expect, test } from 'vitest';
import {
  addressesOf,
  appRevOf,
  effectiveCommand,
  instancesOf,
  lastStillServes,
  processesOf,
  servesVersionBefore,
} from '../../../src/lib/api/app.ts';
import { asStored } from '../../support/stored.ts';
import type { CFApp, CFProcess, CFRoute } from '../../../src/lib/api/types.generated.ts';

const app = { metadata: { name: 'a' }, spec: { desiredState: 'STARTED' } } as CFApp;
const process = (type: string, rest: object = {}, status: object = {}) =>
  ({ metadata: { name: type }, spec: { appRef: { name: 'a' }, processType: type, ...rest }, status }) as CFProcess;
const route = (uri: string | undefined, creationTimestamp: string, appGuid = 'a') =>
  asStored({
    metadata: { name: uri ?? 'none', creationTimestamp },
    spec: { destinations: [{ appRef: { name: appGuid } }] },
    status: { uri },
  } as unknown as CFRoute);

test('processes are listed with web first, then by type, and without those of other apps', () => {
  const foreign = { ...process('web'), spec: { ...process('web').spec, appRef: { name: 'b' } } };
  const types = processesOf(app, [process('worker'), process('clock'), foreign, process('web')]).map((each) => each.spec.processType);
  expect(types).toEqual(['web', 'clock', 'worker']);
});

test('addresses are listed in alphabetical order, without routes that have no address yet', () => {
  const routes = [
    route('new', '2026-02-01T00:00:00Z'),
    route(undefined, '2026-01-15T00:00:00Z'),
    route('old', '2026-01-01T00:00:00Z'),
    route('x', '2025-01-01T00:00:00Z', 'b'),
  ];
  expect(addressesOf(app, routes)).toEqual(['new', 'old']);
});

test('the version before serves beside a change that failed only while instances of it are ready', () => {
  const after = (deployment: object, desiredState = 'STARTED') => servesVersionBefore({ ...app, spec: { ...app.spec, desiredState }, status: { deployment } } as unknown as CFApp); // prettier-ignore
  const old = (ready: number) => [
    { state: 'Failed', instances: 0, ready: 0 },
    { state: 'Old', instances: 1, ready },
  ];
  expect(after({ phase: 'Failed', generations: old(1) })).toBe(true);
  expect(after({ phase: 'Failed', generations: old(0) })).toBe(false);
  expect(after({ phase: 'Serving', generations: old(1) })).toBe(false);
  expect(after({ phase: 'Failed', canceled: true, generations: old(1) })).toBe(false);
  expect(after({ phase: 'Failed', generations: old(1) }, 'STOPPED')).toBe(false);
});

test('the version that served last still serves while instances of it are ready', () => {
  const serves = (phase: string, generations: object[], desiredState = 'STARTED') => lastStillServes({ ...app, spec: { ...app.spec, desiredState }, status: { deployment: { phase, generations } } } as unknown as CFApp); // prettier-ignore
  const old = (ready: number, served = true) => ({ state: 'Old', ready, served });
  expect(serves('Serving', [{ state: 'Current', ready: 1 }])).toBe(true);
  expect(serves('Serving', [{ state: 'Current', ready: 0 }, old(1)])).toBe(false);
  expect(serves('Starting', [{ state: 'Current', ready: 1 }, old(1)])).toBe(true);
  expect(serves('Starting', [{ state: 'Current', ready: 1 }, old(0)])).toBe(false);
  expect(serves('Failed', [{ state: 'Failed', ready: 0 }, old(1)])).toBe(true);
  expect(serves('Failed', [{ state: 'Failed', ready: 1 }, old(1, false)])).toBe(false);
  expect(serves('Serving', [{ state: 'Current', ready: 1 }], 'STOPPED')).toBe(false);
});

test('the version that served last is the current one while a later change is canceled, or not yet looked at', () => {
  const generations = [{ state: 'Current', ready: 1 }];
  const after = (more: object, deployment: object) =>
    lastStillServes({ ...app, ...more, status: { deployment: { phase: 'Pending', generations, ...deployment } } } as unknown as CFApp);
  const canceled = {
    metadata: { annotations: { 'kf.cloudfoundry.org/deploy-id': 'one' } },
    spec: { ...app.spec, desiredState: 'STARTED', rollout: { id: 'one', canceled: true } },
  };
  const started = { spec: { ...app.spec, desiredState: 'STARTED' } };
  expect([after(canceled, {}), after(started, { reason: 'Reconciling' }), after(started, {})]).toEqual([true, true, false]);
});

test('an instance that should exist and is not reported is down', () => {
  const web = process('web', { desiredInstances: 2 }, { instancesStatus: { '1': { state: 'RUNNING' } } });
  expect(instancesOf(app, web)).toEqual([
    { index: 0, state: 'DOWN' },
    { index: 1, state: 'RUNNING' },
  ]);
});

test('a stopped app lacks no instances', () => {
  const stopped = { ...app, spec: { ...app.spec, desiredState: 'STOPPED' as const } };
  expect(instancesOf(stopped, process('web', { desiredInstances: 2 }))).toEqual([]);
});

test('an empty command counts as none', () => {
  expect(effectiveCommand(process('web', { command: '', detectedCommand: 'npm start' }))).toBe('npm start');
  expect(effectiveCommand(process('web'))).toBeUndefined();
});

test('an app-rev that is not a number counts as 0', () => {
  const withRev = (rev: string) => ({ ...app, metadata: { annotations: { 'korifi.cloudfoundry.org/app-rev': rev } } });
  expect([withRev('7'), withRev('x'), withRev('-1'), app].map(appRevOf)).toEqual([7, 0, 0, 0]);
});

import { expect, test } from 'vitest';
import {
  hinderedRollout,
  isRemade,
  rolloutStatus,
  summaryOf,
  withAbsent,
  type RolloutFacts,
} from '../../../src/controller/rollout/status.ts';
import type { Context } from '../../../src/controller/runtime/reconciler.ts';
import { conditionsWith, longestMessage, readyStatement, writeStatus, type Statement } from '../../../src/controller/runtime/status.ts';
import { findCondition } from '../../../src/lib/api/conditions.ts';
import { kinds } from '../../../src/lib/api/group.ts';
import type { CFDomain, CFProcess, DeploymentStatus } from '../../../src/lib/api/types.generated.ts';
import { causeOfReason } from '../../../src/lib/api/causes.ts';
import { MemoryCluster } from '../../support/memory-cluster.ts';
import type { Stored } from '../../../src/lib/api/object.ts';
import { asStored } from '../../support/stored.ts';

const running = { state: 'RUNNING' as const, ready: true };
const quota = { reason: 'QuotaExceeded' as const, cause: 'quota' as const, message: 'The quota of the space is used up.', final: true };

test('missing instances are reported with the cause', () => {
  expect(withAbsent({ '1': running }, 3, quota)).toEqual({
    '0': { state: 'DOWN', ready: false, reason: 'QuotaExceeded', cause: 'quota', details: 'The quota of the space is used up.' },
    '1': running,
    '2': { state: 'DOWN', ready: false, reason: 'QuotaExceeded', cause: 'quota', details: 'The quota of the space is used up.' },
  });
});

test('missing instances without a known cause are not reported', () => {
  expect(withAbsent({ '0': running }, 3, undefined)).toEqual({ '0': running });
});

test('a change that cannot begin waits for a while, then has failed, and stays so until it begins', () => {
  const process = (rollout?: DeploymentStatus): Stored<CFProcess> =>
    asStored<CFProcess>({
      metadata: {},
      spec: {
        appRef: { name: 'a' },
        processType: 'web',
        memoryMB: 1,
        diskQuotaMB: 1,
        healthCheck: { type: 'port', data: { invocationTimeoutSeconds: 0, timeoutSeconds: 0 } },
      },
      ...(rollout === undefined ? {} : { status: { actualInstances: 0, rollout } }),
    });
  const start = Date.parse('2026-01-01T00:00:00Z');
  const why = { reason: 'EnvironmentLost', message: 'It is gone.' };
  const at = (seconds: number, before?: DeploymentStatus, from = 0) =>
    hinderedRollout(process(before), 'id', why, { now: start + seconds * 1_000, from: start + from * 1_000 });
  const first = at(0);
  expect(first).toMatchObject({ phase: 'Pending', since: '2026-01-01T00:00:00Z', ...why });
  expect(at(15, first)).toEqual(first);
  const failed = at(16, first);
  expect(failed).toEqual({ ...first, phase: 'Failed', cause: causeOfReason(why.reason) });
  expect(at(17, failed)).toEqual(failed);
  // Time before this controller could mend it does not count.
  expect([at(60, first, 45).phase, at(61, first, 45).phase]).toEqual(['Pending', 'Failed']);
  // The wait starts again for another cause or another change; the status of the generations stays.
  const generations = [{ process: 'web', hash: 'a', state: 'Current' as const, instances: 1, ready: 1 }];
  expect(at(40, { ...first, reason: 'BindingNotReady', generations })).toMatchObject({ phase: 'Pending', generations });
  const inChange = (id: string) => at(40, { ...first, id, generations: [{ ...generations[0], state: 'Failed' }] } as DeploymentStatus);
  expect(inChange('id').generations).toMatchObject([{ state: 'Failed' }]);
  expect(inChange('before').generations).toMatchObject([{ state: 'Old' }]);
  expect(at(40, { ...failed, id: 'before' })).toMatchObject({ phase: 'Pending', id: 'id' });
  // It may contain text of a broker. The schema does not allow a longer message, and would reject the whole status.
  const long = hinderedRollout(process(), 'id', { ...why, message: 'x'.repeat(longestMessage + 1) }, { now: start, from: start });
  expect(long.message?.length).toBeLessThanOrEqual(longestMessage);
});

test('a generation with another uid is another generation, and those of kf 0.1.0 have no uid', () => {
  const said = (uid?: string): DeploymentStatus => ({
    id: 'x',
    phase: 'Serving',
    generations: [{ process: 'web', hash: 'a', state: 'Current', instances: 1, ready: 1, ...(uid === undefined ? {} : { uid }) }],
  });
  expect([isRemade(said('1'), 'a', '1'), isRemade(said('1'), 'a', '2'), isRemade(said(), 'a', '2'), isRemade(said('1'), 'b', '2')]).toEqual([
    false, true, false, false,
  ]); // prettier-ignore
});

test('a status lists the first instances only and counts all of them', () => {
  const many = Object.fromEntries(
    Array.from({ length: 1_000 }, (_, index) => [String(index), index < 990 ? running : { state: 'CRASHED' as const }]),
  );
  const { instancesStatus, instanceCounts } = summaryOf(many);
  expect(Object.keys(instancesStatus)).toEqual(Array.from({ length: 100 }, (_, index) => String(index)));
  expect(instanceCounts).toEqual({ running: 990, starting: 0, crashed: 10, down: 0 });
  const absent = summaryOf(withAbsent({}, 1_000, { ...quota, message: `${'x'.repeat(499)}\u{1F600}${'y'.repeat(4_000)}` }));
  expect(absent.instanceCounts.down).toBe(1_000);
  expect(JSON.stringify(absent).length).toBeLessThan(70_000);
  expect(absent.instancesStatus['0']?.details).toBe(`${'x'.repeat(499)}\ufffd`);
});

test('a version whose instances are all ready waits for the routes if not all of them lead to it alone', () => {
  const process = { metadata: {}, spec: { processType: 'web' } } as unknown as CFProcess;
  const facts = { process, deployId: 'x', target: 'b', desired: 2, proven: true, switched: false, failed: false } as RolloutFacts;
  const about = { generations: [], instances: [], targetUid: 'u', now: 0 };
  const at = (ready: number) => rolloutStatus({ ...facts, ...about, ready }, true).message;
  expect(at(1)).toBe('1 of 2 instances are ready.');
  expect(at(2)).toBe('Waiting for all routes to lead to the new version.');
});

test('a transition has the time of the API server, because other times are measured from it', async () => {
  const cluster = new MemoryCluster();
  const made = await cluster.create(kinds.domain, { metadata: { name: 'd', namespace: 'cf' }, spec: { name: 'example.org' } });
  const ahead = Date.parse('2040-01-01T00:00:00Z');
  const context = { cluster, now: () => ahead, event: () => undefined } as unknown as Context;
  const say = (domain: Stored<CFDomain>, status: 'True' | 'False', message = ''): Promise<Stored<CFDomain>> =>
    writeStatus(context, kinds.domain, domain, {
      ...domain.status,
      conditions: conditionsWith(domain, { ...readyStatement, status, message }),
    });
  const first = await say(made, 'False');
  expect(findCondition(first, 'Ready')?.lastTransitionTime).toBe('2040-01-01T00:00:00Z');
  context.now = () => ahead + 60_000;
  const second = await say(first, 'False', 'another message');
  expect(findCondition(second, 'Ready')?.lastTransitionTime).toBe('2040-01-01T00:00:00Z');
  expect(findCondition(await say(second, 'True'), 'Ready')?.lastTransitionTime).toBe('2040-01-01T00:01:00Z');
});

test('a new object that is as it should be causes no Event, but its trouble and the end of that do', async () => {
  const cluster = new MemoryCluster();
  const told: string[] = [];
  const event: Context['event'] = (_type, _object, { type, reason, message }) => void told.push([type, reason, message].join(' '));
  const context = { cluster, now: Date.now, event } as unknown as Context;
  const claimed = { type: 'Claimed', status: 'True' as const, reason: 'Claimed', message: '' };
  const say = (domain: Stored<CFDomain>, ready: Statement): Promise<Stored<CFDomain>> =>
    writeStatus(context, kinds.domain, domain, { ...domain.status, conditions: conditionsWith(domain, claimed, ready) });
  const made = await cluster.create(kinds.domain, { metadata: { name: 'd', namespace: 'cf' }, spec: { name: 'example.org' } });
  const first = await say(made, readyStatement);
  expect(told).toEqual([]);
  const second = await say(first, { ...readyStatement, status: 'False', reason: 'NoGateway', message: 'There is no gateway.' });
  await say(second, readyStatement);
  expect(told).toEqual(['Warning NoGateway There is no gateway.', 'Normal Ready Condition Ready is True']);
});

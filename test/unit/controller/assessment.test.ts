// The assessment of a version that replaces another: it works, it may still work, or it has failed, and why.

import { describe, expect, test } from 'vitest';
import type { Instance, Problem } from '../../../src/controller/instances/instances.ts';
import { expectationsOf, isLeftOver, Assessor, isLackOfRoom, readyOf, type View } from '../../../src/controller/rollout/assessment.ts';
import type { Context } from '../../../src/controller/runtime/reconciler.ts';
import { Store } from '../../../src/controller/runtime/store.ts';
import type { StatefulSet } from '../../../src/lib/api/core.ts';
import { annotations, labels } from '../../../src/lib/api/group.ts';
import type { DeploymentStatus } from '../../../src/lib/api/types.generated.ts';
import { statefulSetNameOf } from '../../../src/templates/stateful-set.ts';
import { asStored } from '../../support/stored.ts';
import {
  assess,
  awaited,
  crashed,
  hash,
  instance,
  proven,
  quota,
  start,
  unhealthy,
  unschedulable,
  viewOf,
  workload,
  type Given,
} from './assessment-scene.ts';

describe('a refused proof', () => {
  test.each(['NotServing', 'RouteNotAccepted'] as const)('fails the version with its reason %s and an Event of the app', async (reason) => {
    const { view, events } = viewOf({ instances: [instance({ ready: true })] });
    const message = 'Requests to a.example.com/ are answered with 502.';
    const said = await new Assessor().assess(view, { state: 'refused', reason, cause: 'not-serving', message });
    expect(said).toEqual({ failed: true, cause: { problem: { reason, cause: 'not-serving', message, final: true } } });
    expect(events).toEqual([{ reason, message: `web: ${message}` }]);
  });
});

describe('an instance that does not work', () => {
  test('fails the version if only a change can help, with the first and last lines of its log', async () => {
    const log = { head: ['first'], omitted: 3, tail: ['last'] };
    const one = instance({ problem: crashed });
    const { view, events } = viewOf({ instances: [one], seam: { logEnds: () => Promise.resolve(log) } });
    expect(await new Assessor().assess(view, awaited)).toEqual({ failed: true, cause: { problem: crashed, log, instance: one } });
    expect(events).toEqual([{ reason: 'Crashed', message: 'web: It ended with exit code 1.' }]);
  });

  test('does not fail the version if the cause may pass, and is checked again when that can have changed', async () => {
    const pulling: Problem = {
      reason: 'ImagePull',
      cause: 'registry-unreachable',
      message: 'The registry does not answer.',
      final: false,
      lookAgainMs: 300,
    };
    const { view, soonest, events } = viewOf({ instances: [instance({ problem: pulling })] });
    expect(await new Assessor().assess(view, awaited)).toEqual({ failed: false, awaited: pulling });
    expect([soonest(), events]).toEqual([300, []]);
  });

  test('is the cause before others if its problem is final, whatever the order of the instances', async () => {
    const passing: Problem = { reason: 'ImagePull', cause: 'registry-unreachable', message: 'The registry does not answer.', final: false };
    const instances = [instance({ problem: passing }), instance({ index: 1, problem: crashed })];
    expect((await assess({ instances, desired: 2 })).cause?.problem.reason).toBe('Crashed');
  });

  test('is ignored if it is of another version or is terminating', async () => {
    const instances = [instance({ generation: 'bbbbbbbbbb', problem: crashed }), instance({ index: 1, ending: true, problem: crashed })];
    expect(await assess({ instances })).toEqual({ failed: false });
  });

  test('does not fail the version when its node has refused or ended it, until others had time to take its successors', async () => {
    const assessor = new Assessor();
    const endedBy = (cause: Problem['cause'], uid: string) =>
      instance({ uid, problem: { reason: 'Unknown', cause, message: 'The pod was ended.', final: true } });
    const at = (seconds: number, ended: Instance) => assessor.assess(viewOf({ instances: [ended], at: seconds * 1_000 }).view, awaited);
    expect(await at(10, endedBy('no-room', 'first'))).toMatchObject({ failed: false, awaited: { final: false, cause: 'no-room' } });
    expect(await at(13, endedBy('node-lost', 'second'))).toMatchObject({ failed: false });
    expect(await at(18, endedBy('no-room', 'third'))).toMatchObject({ failed: true, cause: { problem: { cause: 'no-room' } } });
    // Ended again and again, it does not get the time anew.
    expect(await at(60, endedBy('evicted', 'fourth'))).toMatchObject({ failed: true });
    // Another instance, and this one after it was ready, have their own time; and what happened long ago is another matter.
    expect(await at(61, { ...endedBy('no-room', 'of another'), index: 1 })).toMatchObject({ failed: false });
    await at(62, instance({ uid: 'ready', ready: true }));
    expect(await at(63, endedBy('evicted', 'after it'))).toMatchObject({ failed: false });
    expect(await at(400, endedBy('evicted', 'fifth'))).toMatchObject({ failed: false });
    expect(await at(401, endedBy('disk', 'sixth'))).toMatchObject({ failed: true });
    // What may pass on one instance does not hide what is final on another one.
    const both = { instances: [endedBy('no-room', 'seventh'), instance({ index: 1, uid: 'other', problem: crashed })], desired: 2 };
    expect(await assess(both)).toMatchObject({ failed: true, cause: { problem: { cause: 'exit-code' } } });
  });

  test('does not fail the version for lack of resources while other instances are about to end', async () => {
    const waiting = instance({ problem: unschedulable });
    const leaving = instance({ generation: 'bbbbbbbbbb', ending: true, ready: true });
    const surplus = instance({ generation: 'bbbbbbbbbb', ready: true });
    expect(await assess({ instances: [waiting, leaving] })).toMatchObject({ failed: false, awaited: { final: false } });
    expect(await assess({ instances: [waiting, surplus, { ...surplus, index: 1 }] })).toMatchObject({ failed: false });
    expect(await assess({ instances: [waiting] })).toMatchObject({ failed: true, cause: { problem: unschedulable } });
  });

  test('fails the version for lack of resources when instances beyond those wanted have been kept for 30 s', async () => {
    const assessor = new Assessor();
    const kept = instance({ generation: 'bbbbbbbbbb', ready: true });
    const instances = [instance({ problem: unschedulable }), instance({ generation: 'bbbbbbbbbb' }), { ...kept, index: 1 }];
    const at = (seconds: number) => assessor.assess(viewOf({ instances, at: seconds * 1_000 }).view, awaited);
    for (const [seconds, failed] of [[30, false], [59, false], [60, false], [73.9, false], [74, true]] as const) expect([seconds, (await at(seconds)).failed]).toEqual([seconds, failed]); // prettier-ignore
  });

  test('fails the version for lack of resources while the spare of the version before is what serves', async () => {
    const metadata = { name: 'p-old', labels: { [labels.generation]: 'bbbbbbbbbb' }, annotations: { [annotations.spare]: 'true' } };
    const before = asStored({ metadata: { ...workload.metadata, ...metadata, uid: 'old' }, spec: { ...workload.spec, instances: 2 } }); // prettier-ignore
    const spare = instance({ generation: 'bbbbbbbbbb', index: 1, ready: true });
    const made = instance({ generation: 'bbbbbbbbbb' });
    const { view } = viewOf({ instances: [instance({ problem: unschedulable }), spare, made] });
    expect((await new Assessor().assess({ ...view, workloads: [workload, before] }, awaited)).failed).toBe(true);
    // Once the first one is ready elsewhere, the spare goes.
    const moved = { ...view, workloads: [workload, before], instances: [...view.instances.slice(0, 2), { ...made, ready: true }] };
    expect((await new Assessor().assess(moved, awaited)).failed).toBe(false);
  });

  test('does not fail the version for lack of resources until the scheduler has tried again, after the others are gone', async () => {
    const assessor = new Assessor();
    const waiting = instance({ problem: unschedulable });
    const leaving = instance({ generation: 'bbbbbbbbbb', ending: true, ready: true });
    const at = (seconds: number, instances = [waiting]) => viewOf({ instances, at: seconds * 1_000 });
    expect((await assessor.assess(at(30, [waiting, leaving]).view, awaited)).failed).toBe(false);
    const gone = at(30.01);
    expect(await assessor.assess(gone.view, awaited)).toMatchObject({ failed: false, awaited: { final: false } });
    expect(gone.soonest()).toBeLessThanOrEqual(15_000);
    expect((await assessor.assess(at(44.9).view, awaited)).failed).toBe(false);
    expect((await assessor.assess(at(45).view, awaited)).failed).toBe(true);
  });
});

describe('a failure by timeout', () => {
  const waiting = [instance({ problem: unschedulable })];

  test('is not reported within 12 s after the controller missed changes', async () => {
    const steadySince = () => start + 50_000;
    const early = viewOf({ instances: waiting, at: 61_000, seam: { steadySince } });
    expect(await new Assessor().assess(early.view, awaited)).toEqual({ failed: false, awaited: { ...unschedulable, final: false } });
    expect(early.soonest()).toBe(1_000);
    expect((await assess({ instances: waiting, at: 62_000, seam: { steadySince } })).failed).toBe(true);
  });

  test.each([
    ['became ready', undefined],
    ['may still become ready', { ...unschedulable, final: false }],
    ['has another problem', crashed],
  ])('is not reported when the API server already has that the instance %s', async (_, now) => {
    const asked: string[] = [];
    const problemNow = (ns: string, { pod }: Instance) => {
      asked.push(`${ns}/${pod}`);
      return Promise.resolve(now);
    };
    const early = viewOf({ instances: waiting, seam: { problemNow } });
    expect(await new Assessor().assess(early.view, awaited)).toEqual({ failed: false, awaited: { ...unschedulable, final: false } });
    expect([asked, early.events, early.soonest()]).toEqual([['ns/pod-0'], [], 2_000]);
  });

  test('of a health check requires a late failed check, and quotes its message', async () => {
    const instances = [instance({ problem: unhealthy })];
    const checked = (at: number) => ({
      lastCheck: () => Promise.resolve({ message: 'HTTP probe failed with statuscode: 404', at: start + at }),
    });
    expect((await assess({ instances })).failed).toBe(false);
    expect((await assess({ instances, seam: checked(10_000) })).failed).toBe(false);
    const said = await assess({ instances, seam: checked(25 * 700) });
    expect(said).toMatchObject({ failed: true, cause: { problem: { reason: 'HealthCheckFailed' } } });
    expect(said.cause?.problem.message).toMatch(/^It did not answer on port 8080 within 60 s\. .*404/);
  });
});

describe('a readiness check that fails', () => {
  const target = asStored({
    ...workload,
    spec: { ...workload.spec, readinessProbe: { periodSeconds: 5, failureThreshold: 3, httpGet: { path: '/ready', port: 8080 } } },
  });
  const unready: Problem = {
    reason: 'HealthCheckFailed',
    cause: 'health-http',
    message: 'Its readiness check fails.',
    final: true,
    byTime: true,
    ofPresentRun: true,
  };
  const assessed = async (said: string | undefined): Promise<Problem | undefined> => {
    const lastCheck = () => Promise.resolve(said === undefined ? undefined : { message: said, at: start });
    const { view } = viewOf({ instances: [instance({ problem: unready })], seam: { lastCheck } });
    return (await new Assessor().assess({ ...view, target }, awaited)).cause?.problem;
  };

  test('is told with the words of the kubelet, and with the settings of that check', async () => {
    expect((await assessed('HTTP probe failed with statuscode: 503'))?.message).toBe(
      'Its readiness check fails. The app listens on port 8080, but GET /ready is answered with 503; a health check needs 200 to 399. ' +
        'Another path: readiness-health-check-http-endpoint in the manifest.',
    );
    expect((await assessed('Get "http://10.0.0.7:8080/ready": context deadline exceeded'))?.message).toContain(
      ': readiness-health-check-invocation-timeout in the manifest',
    );
    expect(await assessed('dial tcp 10.0.0.7:8080: connect: connection refused')).toMatchObject({ cause: 'not-listening' });
  });

  test('is known without them', async () => {
    expect(await assessed(undefined)).toEqual(unready);
  });

  test('of a version that served is looked at again when it is certain', async () => {
    const pending: Problem = { ...unready, cause: 'start-timeout', final: false, lookAgainMs: 9_000 };
    const { view, soonest } = viewOf({ before: { phase: 'Serving' }, instances: [instance({ problem: pending })] });
    expect([await new Assessor().assess(view, awaited), soonest()]).toEqual([{ failed: false }, 9_000]);
  });

  test('is expected of a workload that has one', () => {
    expect(expectationsOf(target).readiness).toEqual({ port: 8080, path: '/ready', failsAfterSeconds: 15 });
  });
});

describe('missing instances', () => {
  test('fail the version after half a second, with the cause', async () => {
    const assessor = new Assessor();
    const refused: Problem = { ...quota, reason: 'CreateContainer', cause: 'admission' };
    const seam = { missing: () => Promise.resolve(refused) };
    const first = viewOf({ at: 0, seam });
    expect(await assessor.assess(first.view, awaited)).toEqual({ failed: false });
    expect(first.soonest()).toBe(500);
    expect(await assessor.assess(viewOf({ at: 499, seam }).view, awaited)).toEqual({ failed: false });
    expect(await assessor.assess(viewOf({ at: 500, seam }).view, awaited)).toMatchObject({ failed: true, cause: { problem: refused } });
  });

  test('that a quota refuses fail the version after 5 s: it counts instances for a moment after they are gone', async () => {
    const assessor = new Assessor();
    const seam = { missing: () => Promise.resolve(quota) };
    await assessor.assess(viewOf({ at: 0, seam }).view, awaited);
    const early = await assessor.assess(viewOf({ at: 4_999, seam }).view, awaited);
    expect(early).toEqual({ failed: false, awaited: { ...quota, final: false } });
    expect(isLackOfRoom(early.awaited)).toBe(true);
    expect(await assessor.assess(viewOf({ at: 5_000, seam }).view, awaited)).toMatchObject({ failed: true, cause: { problem: quota } });
  });

  test('that nothing refused fail the version after 8 s: the API server may be away for a moment', async () => {
    const assessor = new Assessor();
    const lost: Problem = { ...quota, reason: 'CreateContainer', cause: 'unknown', message: 'stream error' };
    const seam = { missing: () => Promise.resolve(lost) };
    await assessor.assess(viewOf({ at: 0, seam }).view, awaited);
    const early = await assessor.assess(viewOf({ at: 7_999, seam }).view, awaited);
    expect(early).toEqual({ failed: false, awaited: { ...lost, final: false } });
    expect(isLackOfRoom(early.awaited)).toBe(false);
    expect(await assessor.assess(viewOf({ at: 8_000, seam }).view, awaited)).toMatchObject({ failed: true, cause: { problem: lost } });
  });

  test('do not fail the version while other instances are about to end', async () => {
    const assessor = new Assessor();
    const given = { instances: [instance({ generation: 'bbbbbbbbbb', ending: true })], seam: { missing: () => Promise.resolve(quota) } };
    await assessor.assess(viewOf({ ...given, at: 0 }).view, awaited);
    const said = await assessor.assess(viewOf({ ...given, at: 500 }).view, awaited);
    expect(said).toEqual({ failed: false, awaited: { ...quota, final: false } });
  });

  test('get half a second again after they had existed', async () => {
    const assessor = new Assessor();
    const seam = { missing: () => Promise.resolve(quota) };
    await assessor.assess(viewOf({ at: 0, seam }).view, awaited);
    await assessor.assess(viewOf({ at: 400, seam, instances: [instance()] }).view, awaited);
    expect(await assessor.assess(viewOf({ at: 600, seam }).view, awaited)).toEqual({ failed: false });
  });
});

describe('an earlier assessment', () => {
  const bad = [instance({ problem: crashed })];

  test('of a version that served is not repeated, and only obstacles to its growth are reported', async () => {
    const assessor = new Assessor();
    const given = { before: { phase: 'Serving' as const }, instances: [], seam: { missing: () => Promise.resolve(quota) } };
    await assessor.assess(viewOf({ ...given, at: 0 }).view, awaited);
    expect(await assessor.assess(viewOf({ ...given, at: 500 }).view, awaited)).toEqual({ failed: false, absent: quota });
    expect(await assessor.assess(viewOf({ ...given, instances: bad }).view, awaited)).toEqual({ failed: false });
  });

  test('of a version that served looks again until it is known why instances are missing', async () => {
    const assessor = new Assessor();
    await assessor.assess(viewOf({ before: { phase: 'Serving' }, at: 0 }).view, awaited);
    const { view, soonest } = viewOf({ before: { phase: 'Serving' }, at: 500 });
    expect([await assessor.assess(view, awaited), soonest()]).toEqual([{ failed: false }, 2_000]);
  });

  test('as failed stays until all instances are ready and a request has reached the version', async () => {
    const before = { phase: 'Failed' as const };
    const well = [instance({ ready: true })];
    expect(await assess({ before, instances: bad })).toEqual({ failed: true });
    expect(await assess({ before, instances: well })).toEqual({ failed: true });
    expect(await assess({ before, instances: well }, proven)).toEqual({ failed: false });
  });

  test('as failed still reports obstacles to the growth of the version that serves in its place', async () => {
    const assessor = new Assessor();
    const metadata = { ...workload.metadata, uid: 'other-uid', labels: { [labels.generation]: 'bbbbbbbbbb' } };
    const standIn = { ...workload, metadata, spec: { ...workload.spec, instances: 2 } };
    const seam = { missing: (_ns: string, set: string) => Promise.resolve(set === statefulSetNameOf(standIn) ? quota : undefined) };
    const seen = (at: number, serving: number): View => {
      const instances = Array.from({ length: serving }, (_, index) => instance({ index, generation: 'bbbbbbbbbb', ready: true }));
      const { view } = viewOf({ before: { phase: 'Failed' }, instances, seam, at });
      return { ...view, workloads: [workload, standIn] };
    };
    await assessor.assess(seen(0, 1), awaited);
    expect(await assessor.assess(seen(500, 1), awaited)).toEqual({ failed: true, absent: quota });
    expect(await assessor.assess(seen(600, 2), awaited)).toEqual({ failed: true });
  });

  test('is valid only for the same change and the same AppWorkload', async () => {
    const generations = [{ process: 'web', hash, state: 'Current' as const, instances: 1, ready: 1, uid: 'another', served: true }];
    for (const before of [
      { phase: 'Serving' as const, id: 'earlier' },
      { phase: 'Serving' as const, generations },
      { phase: 'Serving' as const, generations: [{ ...generations[0], uid: 'w-uid', state: 'Old' as const }] },
    ]) {
      expect((await assess({ before: before as Partial<DeploymentStatus>, instances: bad })).failed).toBe(true);
    }
  });

  test('of a version that had no instances to start says nothing of its first ones', async () => {
    const given: Given = { before: { phase: 'Serving', generations: [{ process: 'web', hash, state: 'Current', instances: 0, ready: 0, uid: 'w-uid' }] } }; // prettier-ignore
    const [failed, starting] = await Promise.all([assess({ ...given, instances: bad }), assess({ ...given, instances: [instance()] })]);
    expect([failed.failed, starting]).toEqual([true, { failed: false }]);
    // Status of kf 0.1.0 does not say what served.
    const old: Given = { before: { phase: 'Serving', generations: [{ process: 'web', hash, state: 'Current', instances: 3, ready: 3 }] } };
    expect((await assess({ ...old, instances: bad })).failed).toBe(false);
  });

  test('as failed does not apply to an app that should have no instances', async () => {
    expect(await assess({ desired: 0, before: { phase: 'Failed' }, instances: bad })).toEqual({ failed: false });
  });
});

test('a version whose instances are ready and reached by a request works, whatever happened to them before', async () => {
  expect(await assess({ instances: [instance({ ready: true, problem: crashed })] }, proven)).toEqual({ failed: false });
});

test('the version waits for the same as the probe', async () => {
  const message = 'The gateway has not loaded the route a.example.com yet';
  const said = await assess({ instances: [instance({ ready: true })] }, { state: 'awaited', message });
  expect(said).toEqual({ failed: false, awaited: { reason: 'Serving', message } });
});

test('ready instances are counted by version', () => {
  const instances = [instance({ ready: true }), instance(), instance({ ready: true, generation: 'bbbbbbbbbb' })];
  expect([readyOf(instances, hash), readyOf(instances, 'bbbbbbbbbb'), readyOf([], hash)]).toEqual([1, 1, 0]);
});

test('the expectations of an instance come from its workload', () => {
  const known = { startSeconds: 60, port: 8080, path: '/health', memory: '128Mi', builtProcess: 'web' };
  // Its stop takes up to 14 s, and a busy node is some seconds late.
  expect(expectationsOf(workload)).toEqual({ ...known, longestStartSeconds: 84 });
  const slow = { failureThreshold: 60, timeoutSeconds: 3, tcpSocket: { port: 8080 } };
  const spec = { ...workload.spec, drainSeconds: 0, graceSeconds: 30, startupProbe: slow };
  expect(expectationsOf({ ...workload, spec }).longestStartSeconds).toBe(220);
  const { startupProbe: _check, ...unchecked } = workload.spec;
  expect(expectationsOf({ ...workload, spec: { ...unchecked, image: 'nginx' } })).toEqual({
    startSeconds: 0,
    memory: '128Mi',
  });
  expect(expectationsOf(undefined)).toEqual({ startSeconds: 0 });
});

describe('an instance is left over', () => {
  const sets = new Store<StatefulSet>();
  const context = { stores: { of: () => sets } } as unknown as Context;
  const put = (uid: string, owner: string): boolean =>
    sets.put({
      metadata: {
        name: statefulSetNameOf(workload), namespace: 'ns', uid, resourceVersion: '1',
        ownerReferences: [{ apiVersion: 'v1', kind: 'AppWorkload', name: 'p', uid: owner, controller: true }],
      },
    }); // prettier-ignore

  test('if its StatefulSet or its workload has been replaced', () => {
    const own = instance({ owner: 'set-uid' });
    put('set-uid', 'w-uid');
    expect(isLeftOver(context, workload, own)).toBe(false);
    put('set-uid', 'another');
    expect(isLeftOver(context, workload, own)).toBe(true);
    put('another', 'w-uid');
    expect(isLeftOver(context, workload, own)).toBe(true);
    expect([isLeftOver(context, undefined, own), isLeftOver(context, workload, instance())]).toEqual([false, false]);
  });
});

// What happened to an app, from what was seen of it before and what is seen now.

import { describe, expect, it } from 'vitest';
import { compareApp, seenOf, type AppObjects } from '../../../src/lib/api/app-events.ts';
import { entriesFor, eventsName, mostEvents, readEvents, readSeen, type Seen } from '../../../src/lib/api/event-log.ts';
import { annotations, labels } from '../../../src/lib/api/group.ts';
import type { AppEvent } from '../../../src/lib/api/results.ts';
import type { AppRollout, CFApp, CFBuild, CFProcess, CFRoute, CFServiceBinding, CFTask } from '../../../src/lib/api/types.generated.ts';
import type { Stored } from '../../../src/lib/api/object.ts';
import type { Pod } from '../../../src/lib/api/pod-kind.ts';
import { asStored } from '../../support/stored.ts';

const created = '2026-11-22T10:00:00Z';
const now = Date.parse('2026-11-22T12:00:00Z');
const later = '2026-11-22T12:00:00Z';

const meta = (name: string, more: object = {}) => ({
  name,
  namespace: 'space',
  uid: `${name}-0000-0000`,
  creationTimestamp: created,
  ...more,
});
const by = (name: string): object => ({ annotations: { [annotations.changedBy]: name } });

function app(spec: Partial<CFApp['spec']> = {}, notes: Record<string, string> = {}, status: CFApp['status'] = {}) {
  return asStored<CFApp>({
    metadata: meta('app', { annotations: { [annotations.changedBy]: 'alice', ...notes } }),
    spec: { displayName: 'shop', desiredState: 'STARTED', lifecycle: { type: 'docker', data: { stack: '' } }, ...spec },
    status,
  });
}

const objects = (more: Partial<AppObjects> = {}): AppObjects => ({
  ...{ app: app(), processes: [], packages: [], builds: [], bindings: [], routes: [], tasks: [], pods: [] },
  ...more,
});

const canary: Partial<AppRollout> = { strategy: 'canary', instanceSteps: [10, 50] };

/** With a change of its own, and what is asked of it. */
const deploying = (rollout: Partial<AppRollout> = {}): AppObjects =>
  objects({ app: app({ rollout: { id: 'd2', ...rollout } }, { [annotations.deployId]: 'd2' }) });

/** What happened between two looks. */
const between = (before: AppObjects, after: AppObjects): AppEvent[] => compareApp(seenOf(before, created), after, now).events;
const lines = (events: readonly AppEvent[]): string[] => events.map(({ type, actor, description }) => `${type} ${actor} ${description}`);

const web = (spec: Partial<CFProcess['spec']> = {}, author = 'bob') =>
  asStored<CFProcess>({
    metadata: meta('web', by(author)),
    spec: {
      ...{ appRef: { name: 'app' }, processType: 'web', desiredInstances: 1, memoryMB: 64, diskQuotaMB: 128 },
      healthCheck: { type: 'port', data: { timeoutSeconds: 60, invocationTimeoutSeconds: 0 } },
      ...spec,
    },
  });

const pod = (status: NonNullable<Pod['status']>, more: object = {}) =>
  asStored<Pod>({ metadata: meta('web-0', { labels: { [labels.guid]: 'web', [labels.podIndex]: '3' }, ...more }), status });

const container = (state: object, lastState: object = {}): NonNullable<Pod['status']> => ({
  containerStatuses: [{ name: 'application', ready: false, restartCount: 1, image: '', imageID: '', state, lastState }],
});

describe('what happened to an app', () => {
  it('is nothing while nothing changes', () => {
    const present = objects({ processes: [web()], pods: [pod(container({ terminated: { exitCode: 1, finishedAt: later } }))] });
    expect(between(present, present)).toEqual([]);
  });

  it.each([
    [objects(), objects({ app: app({ desiredState: 'STOPPED' }) }), ['audit.app.stop alice state: STOPPED']],
    [objects({ app: app({ desiredState: 'STOPPED' }) }), objects(), ['audit.app.start alice state: STARTED']],
    [objects(), objects({ app: app({}, { [annotations.deployId]: 'd2' }) }), ['audit.app.restart alice ']],
    [
      objects(),
      objects({ app: app({}, { [annotations.deployId]: 'd2', [annotations.rolledBack]: '4/d2' }) }),
      ['audit.app.restart alice rolled back to revision: 4'],
    ],
    [objects(), deploying({ strategy: 'rolling' }), ['audit.app.deployment.create alice strategy: rolling']],
    [objects(), deploying({ strategy: 'recreate' }), ['audit.app.restart alice strategy: recreate']],
    [deploying(canary), deploying({ ...canary, step: 2 }), ['audit.app.deployment.continue alice step: 2 of 2']],
    [deploying({ ...canary, step: 2 }), deploying({ ...canary, step: 3 }), ['audit.app.deployment.continue alice ']],
    [deploying(canary), deploying({ ...canary, canceled: true }), ['audit.app.deployment.cancel alice ']],
    [deploying(), deploying({ canceled: true }), ['audit.app.deployment.cancel alice ']],
    [objects(), objects({ app: app({ currentDropletRef: { name: 'b' } }) }), ['audit.app.droplet.mapped alice guid: b']],
    [objects(), objects({ app: app({ displayName: 'till' }) }), ['audit.app.update alice name: till']],
    [
      objects(),
      objects({ app: app({}, {}, { revision: { change: '', version: 3, droplets: [] } }) }),
      ['audit.app.revision.create alice version: 3'],
    ],
  ])('%#: is told with who changed it', (before, after, expected) => {
    expect(lines(between(before, after))).toEqual(expected);
  });

  it('has no event for a deployment that was canceled before its state was recorded', () => {
    const before = { ...seenOf(deploying({ canceled: true }), created) };
    delete before.rollout;
    expect(compareApp(before, deploying({ canceled: true }), now).events).toEqual([]);
  });

  it('names who scaled a process where the cluster knows it', () => {
    const before = objects({ processes: [web()] });
    expect(lines(between(before, objects({ processes: [web({ memoryMB: 96, desiredInstances: 2 })] })))).toEqual([
      'audit.app.process.scale bob process: web, instances: 2, memory: 96',
    ]);
    expect(lines(between(before, objects({ processes: [web({ desiredInstances: 2 })] })))).toEqual([
      'audit.app.process.scale  process: web, instances: 2',
    ]);
  });

  it('names who scaled a process when its author wrote the number, and nobody when an autoscaler did', () => {
    const before = objects({ processes: [web()] });
    const signed = { 'f:metadata': { 'f:annotations': { [`f:${annotations.changedBy}`]: {} } } };
    const number = { 'f:spec': { 'f:desiredInstances': {} } };
    const scaled = (...writers: object[]): AppObjects => {
      const process = web({ desiredInstances: 2 });
      const managedFields = writers.map((fieldsV1) => ({ manager: 'kf', time: created, fieldsV1 }));
      return objects({ processes: [{ ...process, metadata: { ...process.metadata, managedFields } as typeof process.metadata }] });
    };
    const actorsOf = (after: AppObjects): string[] => between(before, after).map(({ type, actor }) => `${type} ${actor}`);
    expect(actorsOf(scaled({ ...signed, ...number }))).toEqual(['audit.app.process.scale bob']);
    expect(actorsOf(scaled(signed, number))).toEqual(['audit.app.process.scale ']);
  });

  it('has packages, builds, droplets and tasks with their own times', () => {
    const build = asStored<CFBuild>({
      metadata: meta('build', by('bob')),
      spec: {
        appRef: { name: 'app' },
        packageRef: { name: 'p' },
        lifecycle: { type: 'docker', data: { stack: '' } },
        stagingMemoryMB: 1,
        stagingDiskMB: 1,
      },
      status: {
        state: 'STAGED',
        conditions: [{ type: 'Succeeded', status: 'True', reason: 'x', message: '', lastTransitionTime: '2026-11-22T10:01:00Z' }],
      },
    });
    const source = asStored({ metadata: meta('source', by('bob')), spec: { type: 'bits' as const, appRef: { name: 'app' } } });
    const task = asStored<CFTask>({ metadata: meta('task', by('carol')), spec: { appRef: { name: 'app' }, displayName: 'migrate' } });
    const events = between(objects(), objects({ builds: [build], packages: [source], tasks: [task] }));
    expect(events).toEqual([
      { time: created, type: 'audit.app.package.create', actor: 'bob', description: 'guid: source' },
      { time: created, type: 'audit.app.build.create', actor: 'bob', description: 'guid: build' },
      { time: created, type: 'audit.app.task.create', actor: 'carol', description: 'name: migrate' },
      { time: '2026-11-22T10:01:00Z', type: 'audit.app.droplet.create', actor: 'bob', description: 'guid: build' },
    ]);
  });

  it('has a route when its address is known, with its domain', () => {
    const metadata = meta('route', by('carol'));
    const made = objects({ routes: [asStored<CFRoute>({ metadata, spec: { host: 'shop', domainRef: { name: 'd' } } })] });
    const known = { ...made, routes: made.routes.map((one) => ({ ...one, status: { uri: 'shop.example.com' } })) };
    expect(lines(between(objects(), made))).toEqual([]);
    expect(lines(between(made, known))).toEqual(['audit.app.map-route carol route: shop.example.com']);
  });

  it('has bindings and routes, also those that are gone', () => {
    const binding = asStored<CFServiceBinding>({
      metadata: meta('binding', by('bob')),
      spec: { type: 'app', service: { name: 'db' }, appRef: { name: 'app' }, parameters: { name: '' }, displayName: '' },
    });
    const route = asStored<CFRoute>({
      metadata: meta('route', by('carol')),
      spec: { host: 'shop', path: '/x', domainRef: { name: 'd' } },
      status: { uri: 'shop.example.com/x' },
    });
    const both = objects({ bindings: [binding], routes: [route] });
    expect(lines(between(objects(), both))).toEqual([
      'audit.service_binding.create bob service_instance: db',
      'audit.app.map-route carol route: shop.example.com/x',
    ]);
    expect(lines(between(both, objects()))).toEqual([
      'audit.service_binding.delete  service_instance: db',
      'audit.app.unmap-route  route: shop.example.com/x',
    ]);
  });

  it('has each crash once, with its time and exit code, and none of an instance that is stopped', () => {
    const ended = { exitCode: 137, reason: 'OOMKilled', finishedAt: '2026-11-22T11:59:00Z' };
    const crashed = objects({ processes: [web()], pods: [pod(container({ waiting: {} }, { terminated: ended }))] });
    const before = objects({ processes: [web()], pods: [pod(container({ running: {} }))] });
    const description =
      'index: 3, reason: CRASHED, instance: web-0, exit_description: APP/PROC/WEB: Exited with status 137 (out of memory), exit_status: 137';
    expect(between(before, crashed)).toEqual([{ time: '2026-11-22T11:59:00Z', type: 'app.crash', actor: 'web', description }]);
    expect(between(crashed, crashed)).toEqual([]);
    const stopped = objects({ processes: [web()], pods: [pod(container({ terminated: ended }), { deletionTimestamp: later })] });
    expect(between(before, stopped)).toEqual([]);
  });

  it('has an end of which the node does not know the time when it is seen, once, and the next one too', () => {
    const ended = { exitCode: 137, reason: 'ContainerStatusUnknown', message: 'It is gone.', startedAt: null, finishedAt: null };
    const at = (restartCount: number, state: object, lastState: object = {}): AppObjects => {
      const containerStatuses = container(state, lastState).containerStatuses?.map((status) => ({ ...status, restartCount }));
      return objects({ processes: [web()], pods: [pod({ containerStatuses: containerStatuses ?? [] })] });
    };
    const [before, over] = [at(0, { running: {} }), at(0, { terminated: ended })];
    const description =
      'index: 3, reason: CRASHED, instance: web-0, exit_description: APP/PROC/WEB: Exited with status 137 (its node does not know how), exit_status: 137';
    const event = { time: later, type: 'app.crash', actor: 'web', description };
    const { events, seen } = compareApp(seenOf(before, created), over, now);
    expect(events).toEqual([event]);
    const data = entriesFor(undefined, events, seen) as Record<string, string>;
    expect(readEvents({ data } as Parameters<typeof readEvents>[0])).toEqual([event]);
    expect(readSeen({ data } as Parameters<typeof readSeen>[0])).toEqual(seen);
    const again = at(1, { running: {} }, { terminated: ended });
    expect(between(over, again)).toEqual([]);
    expect(between(again, at(1, { terminated: ended }, { terminated: ended }))).toEqual([event]);
    expect(compareApp(seenOf(before, created), over, now, true).events).toEqual([]);
  });

  it('has instances that the cluster took from their node', () => {
    const evicted = pod({ phase: 'Failed', reason: 'Evicted', message: 'The node was low on resource: memory.' });
    expect(lines(between(objects({ processes: [web()] }), objects({ processes: [web()], pods: [evicted] })))).toEqual([
      'audit.app.process.rescheduling web index: 3, reason: EVICTED, instance: web-0, exit_description: The node was low on resource: memory.',
    ]);
  });

  it('has an eviction without a time when its last container ended, also after a crash, and otherwise when it is seen', () => {
    const evicted = { phase: 'Failed', reason: 'Evicted', message: 'Pod ephemeral local storage usage exceeds the total limit.' } as const;
    const ended = (finishedAt?: string): object => ({ terminated: { exitCode: 137, ...(finishedAt === undefined ? {} : { finishedAt }) } });
    const ending = (...at: (string | undefined)[]): AppObjects => {
      const containerStatuses = at.flatMap((time) => container(ended(time)).containerStatuses ?? []);
      return objects({ processes: [web()], pods: [pod({ ...evicted, containerStatuses })] });
    };
    const before = objects({ processes: [web()] });
    const last = ending('2026-11-22T11:58:00Z', '2026-11-22T11:59:00Z');
    expect(between(before, last)).toMatchObject([{ time: '2026-11-22T11:59:00Z', type: 'audit.app.process.rescheduling' }]);
    expect(between(before, ending(undefined))).toMatchObject([{ time: later }]);
    expect(between(before, ending())).toMatchObject([{ time: later }]);
    expect(between(ending(), last)).toEqual([]);
    const crashed = objects({ processes: [web()], pods: [pod(container(ended('2026-11-22T11:59:00Z')))] });
    expect(between(crashed, last)).toMatchObject([{ type: 'audit.app.process.rescheduling' }]);
  });

  it('has instances whose node is lost, and instances that were evicted', () => {
    const disrupted = (reason: string, message: string): Stored<Pod> => {
      const condition = { type: 'DisruptionTarget', status: 'True' as const, reason, message, lastTransitionTime: '2026-11-22T11:59:00Z' };
      return { ...pod({ conditions: [condition] }), spec: { containers: [], nodeName: 'node-1' } };
    };
    const after = (one: Stored<Pod>) => between(objects({ processes: [web()] }), objects({ processes: [web()], pods: [one] }));
    expect(after(disrupted('DeletionByTaintManager', 'Taint manager: deleting due to NoExecute taint'))).toEqual([
      {
        time: '2026-11-22T11:59:00Z',
        type: 'audit.app.process.rescheduling',
        actor: 'web',
        description: "index: 3, reason: NODE_LOST, instance: web-0, exit_description: Node 'node-1' does not answer.",
      },
    ]);
    expect(lines(after(disrupted('EvictionByEvictionAPI', 'Eviction API: evicting')))).toEqual([
      'audit.app.process.rescheduling web index: 3, reason: EVICTED, instance: web-0, exit_description: Eviction API: evicting',
    ]);
  });

  it('has one event for an eviction, and another one if the pod outlived it because its kubelet was started again', () => {
    const low = 'The node was low on resource: memory.';
    const conditions = [
      {
        type: 'DisruptionTarget',
        status: 'True' as const,
        reason: 'TerminationByKubelet',
        message: low,
        lastTransitionTime: '2026-11-22T11:59:00Z',
      },
    ];
    const at = (status: Pod['status']) => objects({ processes: [web()], pods: [pod({ ...status, conditions })] });
    const [running, ended] = [at({ phase: 'Running' }), at({ phase: 'Failed', reason: 'Evicted', message: low })];
    expect(lines(between(objects({ processes: [web()] }), running))).toEqual([
      `audit.app.process.rescheduling web index: 3, reason: EVICTED, instance: web-0, exit_description: ${low}`,
    ]);
    expect(between(running, ended)).toEqual([]);
    const rejected = at({ phase: 'Failed', reason: 'Evicted', message: 'Pod was rejected: The node had condition: [DiskPressure].' });
    expect(lines(between(running, rejected))).toEqual([
      'audit.app.process.rescheduling web index: 3, reason: EVICTED, instance: web-0, exit_description: Pod was rejected: The node had condition: [DiskPressure].',
    ]);
  });

  it('has what became of a change', () => {
    const at = (phase: 'Serving' | 'Failed' | 'Starting', more: object = {}) =>
      objects({ app: app({}, {}, { deployment: { id: 'd1', phase, since: created, ...more } }) });
    expect(lines(between(at('Starting'), at('Serving')))).toEqual(['audit.app.process.ready kf-controller The app serves.']);
    expect(lines(between(at('Serving'), at('Failed', { reason: 'Crashed', message: 'web: exit code 3' })))).toEqual([
      'audit.app.process.not-ready kf-controller Crashed: web: exit code 3',
    ]);
    expect(between(at('Serving'), at('Starting'))).toEqual([]);
    const empty = at('Serving', { message: 'The app has no instances.' });
    expect(lines(between(at('Starting'), empty))).toEqual(['audit.app.process.ready kf-controller The app has no instances.']);
  });

  describe('has the time', () => {
    const written = (time: string, fieldsV1: object) => ({ managedFields: [{ manager: 'kf', time, fieldsV1 }] });
    const noted = <T extends Stored>(object: T, time: string, fieldsV1: object): T => ({
      ...object,
      metadata: { ...object.metadata, ...written(time, fieldsV1) },
    });
    const at = '2026-11-22T11:30:00Z';
    const deployed = { 'f:metadata': { 'f:annotations': { [`f:${annotations.deployId}`]: {} } } };
    const rolledBack = (deployment?: object) =>
      app(
        {},
        { [annotations.deployId]: 'd2', [annotations.rolledBack]: '1/d2' },
        deployment === undefined ? {} : { deployment: { id: 'd2', phase: 'Serving', ...deployment } },
      );
    const timesOf = (after: AppObjects, before = objects({ processes: [web()] })) =>
      compareApp(seenOf(before, created), after, now, true).events.map(({ type, time }) => `${type} ${time}`);

    it('at which the API server says that the object was written, not that of who looks', () => {
      const after = objects({
        app: noted(rolledBack(), at, deployed),
        processes: [noted(web({ desiredInstances: 2 }), at, { 'f:spec': { 'f:desiredInstances': {} } })],
      });
      expect(timesOf(after)).toEqual([`audit.app.restart ${at}`, `audit.app.process.scale ${at}`]);
    });

    it('that is not after what became of it, and comes before that', () => {
      const after = objects({ app: noted(rolledBack({ since: '2026-11-22T11:20:00Z' }), at, deployed), processes: [web()] });
      expect(timesOf(after)).toEqual(['audit.app.restart 2026-11-22T11:20:00Z', 'audit.app.process.ready 2026-11-22T11:20:00Z']);
    });

    it('or is left out, where a reader looks: other fields, and what is gone, tell none', () => {
      const route = asStored<CFRoute>({ metadata: meta('route'), spec: { domainRef: { name: 'd' } }, status: { uri: 'shop.example.com' } });
      const after = objects({ app: noted(rolledBack(), at, { 'f:spec': {} }), processes: [web()] });
      expect(timesOf(after, objects({ routes: [route] }))).toEqual([]);
    });
  });

  it('of an app that is seen late is only what tells its own time', () => {
    const source = asStored({ metadata: meta('source', by('bob')), spec: { type: 'bits' as const, appRef: { name: 'app' } } });
    const found = compareApp(undefined, objects({ packages: [source], processes: [web()] }), now);
    expect(lines(found.events)).toEqual(['audit.app.create  guid: app', 'audit.app.package.create bob guid: source']);
    expect(found.seen.begun).toBe(later);
  });

  it('of a new app is everything', () => {
    const found = compareApp(undefined, objects(), Date.parse(created) + 2_000);
    expect(lines(found.events)).toEqual(['audit.app.create alice guid: app', 'audit.app.start alice state: STARTED']);
  });

  it('of one second is in the order of a push', () => {
    const source = asStored({ metadata: meta('source', by('bob')), spec: { type: 'bits' as const, appRef: { name: 'app' } } });
    const pushed = objects({ app: app({ currentDropletRef: { name: 'build' } }), packages: [source] });
    expect(compareApp(undefined, pushed, Date.parse(created) + 900).events.map(({ type }) => type)).toEqual([
      'audit.app.create',
      'audit.app.package.create',
      'audit.app.droplet.mapped',
      'audit.app.start',
    ]);
  });
});

describe('the record', () => {
  const event = (number: number): AppEvent => ({ time: created, type: 'audit.app.restart', actor: 'alice', description: String(number) });
  const seen: Seen = seenOf(objects(), created);
  const stored = (entries: Record<string, string | null>, before: Record<string, string> = {}) => {
    const data = Object.fromEntries(
      Object.entries({ ...before, ...entries }).filter((entry): entry is [string, string] => entry[1] !== null),
    );
    return { metadata: { name: eventsName('app') }, data };
  };

  it('gives back what was written, and keeps the newest', () => {
    const first = stored(entriesFor(undefined, [event(1), event(2)], seen));
    expect([readEvents(first), readSeen(first)]).toEqual([[event(1), event(2)], seen]);
    const many = Array.from({ length: mostEvents }, (_, at) => event(at + 3));
    const second = stored(entriesFor(first, many, seen), first.data);
    expect(readEvents(second)).toHaveLength(mostEvents);
    expect([readEvents(second)[0], readEvents(second).at(-1)]).toEqual([event(3), event(mostEvents + 2)]);
    expect(Object.keys(second.data)).toHaveLength(mostEvents + 1);
  });

  it('sends only what is new', () => {
    const first = stored(entriesFor(undefined, [event(1)], seen));
    expect(Object.keys(entriesFor(first, [event(2)], seen))).toEqual(['2', 'seen']);
  });

  it('ignores entries that are none', () => {
    const data = { seen: '{"begun":1}', 1: 'x', 2: '{"time":1}', '03': '', other: '' };
    expect([readEvents({ metadata: { name: 'x' }, data }), readSeen({ metadata: { name: 'x' }, data })]).toEqual([[], undefined]);
  });

  it('stays small, however large the objects of an app are', () => {
    const long = 'x'.repeat(10_000);
    const routes = Array.from({ length: 1_000 }, (_, at) =>
      asStored<CFRoute>({ metadata: meta(`r${at}`, { uid: `${at}`.padStart(12, '0') }), spec: { host: long, domainRef: { name: 'd' } } }),
    );
    const found = compareApp(seen, objects({ routes }), now);
    const size = Object.values(entriesFor(undefined, found.events, found.seen)).join('').length;
    expect(size).toBeLessThan(160 * 1024);
  });
});

// What gets requests of a route with several destinations: what fits in an HTTPRoute, and only what has ready instances.

import { describe, expect, test } from 'vitest';
import type { Backends, DestinationBackend } from '../../../src/controller/routes/backends.ts';
import { present } from '../../../src/controller/routes/presence.ts';
import { Memory } from '../../../src/controller/runtime/memory.ts';
import type { Context } from '../../../src/controller/runtime/reconciler.ts';
import type { HttpRoute } from '../../../src/lib/api/gateway.ts';
import type { Stored } from '../../../src/lib/api/object.ts';
import { mainOf, mostBackends, probedOf } from '../../../src/templates/route-room.ts';

const start = 1_700_000_000_000;

/** `app/generation=weight`, and what is not said: an instance is ready since long ago. */
function backend(text: string, ready: false | number = 0): DestinationBackend {
  const [, app = '', generation = '', weight] = /^(\w+)\/(\w+)=(\d+)$/.exec(text) ?? [];
  const readiness = ready === false ? { isReady: false } : { isReady: true, readySince: ready };
  const service = `s-d-${app}-${generation}`;
  return {
    service,
    port: 8080,
    destination: `d-${app}`,
    process: `p-${app}`,
    route: `r-${app}`,
    generation,
    weight: Number(weight),
    ...readiness,
  };
}

const print = (backends: readonly { destination: string; generation: string; weight: number }[]): string[] =>
  backends.map(({ destination, generation, weight }) => `${destination.slice(2)}/${generation}=${weight}`);
const apps = (count: number): DestinationBackend[] => Array.from({ length: count }, (_, at) => backend(`a${at}/old=1000`));

describe('the backends of plain requests', () => {
  test('are those with a weight', () => {
    expect(print(mainOf([backend('a/old=2'), backend('a/new=1'), backend('a/kept=0')]))).toEqual(['a/old=2', 'a/new=1']);
  });

  test('have the exact weights of two updates at the same time beside 12 other destinations', () => {
    const updates = ['b/old=750', 'b/new=250', 'c/old=500', 'c/new=500'].map((text) => backend(text));
    const main = mainOf([...apps(12), ...updates]);
    expect(main).toHaveLength(mostBackends);
    expect(print(main).slice(12)).toEqual(['b/old=750', 'b/new=250', 'c/old=500', 'c/new=500']);
  });

  test('have one version of an app whose update has no place, with the requests of both', () => {
    const beside = (...update: string[]): string[] => print(mainOf([...apps(15), ...update.map((text) => backend(text))])).slice(15);
    expect(beside('b/old=750', 'b/new=250')).toEqual(['b/old=1000']);
    expect(beside('b/old=250', 'b/new=750')).toEqual(['b/new=1000']);
    expect(beside('b/old=0', 'b/new=1000')).toEqual(['b/new=1000']);
  });

  test('are never more than the Gateway API takes, whatever else a client wrote', () => {
    const all = apps(20).flatMap((one) => [one, { ...one, generation: 'new' }]);
    expect([mainOf(all).length, mainOf(all.map((one) => ({ ...one, weight: 0 }))).length]).toEqual([16, 16]);
  });

  test('are all with the same weight if none has one, because the gateway would answer with an error of its own', () => {
    expect(print(mainOf([backend('a/old=0'), backend('b/old=0')]))).toEqual(['a/old=1', 'b/old=1']);
  });
});

test('a new version can be asked alone before it gets requests, whatever the number of destinations', () => {
  const many = [...apps(16), backend('b/failed=0', false), backend('b/new=0')];
  const probed = print(probedOf(many));
  expect(probed).toHaveLength(14);
  expect(probed).toContain('b/new=0');
  expect(probed).not.toContain('b/failed=0');
});

describe('requests', () => {
  const memory = new Memory();
  const at = (now: number): Context => ({ now: () => now, memory }) as unknown as Context;
  const route = (...named: string[]): Stored<HttpRoute> =>
    ({ spec: { rules: [{ backendRefs: named.map((name) => ({ name: `s-d-${name}`, port: 8080, weight: 1 })) }] } }) as Stored<HttpRoute>;
  const serving = { 'p-a': 'old=1', 'p-b': 'old=1' };
  const shares = (backends: DestinationBackend[], live?: Stored<HttpRoute>, now = start, answered?: Set<string>) => {
    const all: Backends = { backends, services: [], serving, serves: true };
    const found = present(at(now), all, live, answered);
    return { shares: print(found.backends), serving: Object.keys(found.serving), changesInMs: found.changesInMs };
  };
  const both = route('a-old', 'b-old');

  test('reach no app without ready instances while another has some, and its process does not see its weights', () => {
    expect(shares([backend('a/old=1000'), backend('b/old=1000', false)], both)).toEqual({
      shares: ['a/old=1000', 'b/old=0'],
      serving: ['p-a'],
      changesInMs: undefined,
    });
  });

  test('reach an app that comes back only when the gateway can know its address', () => {
    const back = [backend('a/old=1000'), backend('b/old=1000', start)];
    expect(shares(back, route('a-old'), start + 500)).toMatchObject({ shares: ['a/old=1000', 'b/old=0'], changesInMs: 1_500 });
    expect(shares(back, route('a-old'), start + 2_000)).toEqual({
      shares: ['a/old=1000', 'b/old=1000'],
      serving: ['p-a', 'p-b'],
      changesInMs: undefined,
    });
  });

  test('reach a half of a shared route, which is not taken over before', () => {
    const half = { 'r-b': '7' };
    const back = [backend('a/old=1000'), backend('b/old=1000', start)];
    const later = [backend('a/old=1000'), backend('b/old=1000', false)];
    const named = (backends: DestinationBackend[], now: number): string[] =>
      Object.keys(present(at(now), { backends, services: [], serving: half, serves: true }, route('a-old')).serving);
    expect([named(back, start + 500), named(back, start + 2_000), named(later, start)]).toEqual([[], ['r-b'], ['r-b']]);
  });

  test('reach an app not earlier because another space has a destination with the same GUID', () => {
    const ofSpace = (route: string, ready: number): DestinationBackend[] => [
      backend('a/old=1000'),
      { ...backend('f/old=1000', ready), route },
    ];
    shares(ofSpace('r-other', start - 60_000), route('a-old'), start - 60_000);
    expect(shares(ofSpace('r-own', start), route('a-old'), start)).toMatchObject({ changesInMs: 2_000 });
  });

  test('reach it after that time also if the clock of its node is wrong', () => {
    const back = [backend('a/old=1000'), backend('c/old=1000', start + 3_600_000)];
    expect(shares(back, route('a-old'), start)).toMatchObject({ shares: ['a/old=1000', 'c/old=0'], changesInMs: 2_000 });
    expect(shares(back, route('a-old'), start + 2_000).shares).toEqual(['a/old=1000', 'c/old=1000']);
  });

  test('reach an app at once that runs when it is mapped, and one that the gateway leads to already', () => {
    expect(shares([backend('a/old=1000'), backend('b/old=1000', start - 5_000)], route('a-old')).shares).toEqual([
      'a/old=1000',
      'b/old=1000',
    ]);
    expect(shares([backend('a/old=1000'), backend('b/new=1000', start)], route('a-old', 'b-new')).shares).toEqual([
      'a/old=1000',
      'b/new=1000',
    ]);
  });

  test('reach an app that runs when it is mapped only when it has answered through the gateway, which may not know its address', () => {
    const mapped = [backend('a/old=1000'), backend('g/old=1000', start - 5_000)];
    const answered = new Set<string>();
    const all: Backends = { backends: mapped, services: [], serving: { 'p-a': 'old=1', 'p-g': 'old=1' }, serves: true };
    const awaited = present(at(start), all, route('a-old'), answered);
    expect([print(awaited.backends), Object.keys(awaited.serving)]).toEqual([['a/old=1000', 'g/old=0'], ['p-a']]);
    expect(awaited.entering.map(({ service }) => service)).toEqual(['s-d-g-old']);
    answered.add('s-d-g-old');
    const reached = present(at(start + 300), all, route('a-old'), answered);
    expect([print(reached.backends), reached.entering, reached.changesInMs]).toEqual([['a/old=1000', 'g/old=1000'], [], undefined]);
  });

  test('reach an app that lost its instances only when it has answered again', () => {
    const answered = new Set(['s-d-h-old']);
    const away = [backend('a/old=1000'), backend('h/old=1000', false)];
    expect(shares(away, route('a-old', 'h-old'), start, answered).shares).toEqual(['a/old=1000', 'h/old=0']);
    const back = [backend('a/old=1000'), backend('h/old=1000', start)];
    expect(shares(back, route('a-old'), start + 2_000, answered).shares).toEqual(['a/old=1000', 'h/old=0']);
    answered.add('s-d-h-old');
    expect(shares(back, route('a-old'), start + 2_100, answered).shares).toEqual(['a/old=1000', 'h/old=1000']);
  });

  test('reach an app that never answers after the time in which a gateway learns everything', () => {
    const mapped = [backend('a/old=1000'), backend('i/old=1000', start - 5_000)];
    expect(shares(mapped, route('a-old'), start, new Set())).toMatchObject({ shares: ['a/old=1000', 'i/old=0'], changesInMs: 95_000 });
    expect(shares(mapped, route('a-old'), start + 95_000, new Set()).shares).toEqual(['a/old=1000', 'i/old=1000']);
  });

  test('move to the new version of an app that gets some already, without another answer', () => {
    const update = [backend('a/old=1000'), backend('b/old=0'), backend('b/new=1000', start - 5_000)];
    expect(shares(update, both, start, new Set()).shares).toEqual(['a/old=1000', 'b/old=0', 'b/new=1000']);
  });

  test('reach an app whose only other app lost its instances, without an answer', () => {
    const left = [backend('a/old=1000', false), backend('j/old=1000', start - 5_000)];
    expect(shares(left, route('a-old'), start, new Set()).shares).toEqual(['a/old=0', 'j/old=1000']);
  });

  test('of an app go to those of its versions that have ready instances, with its whole share', () => {
    const update = [backend('a/old=1000'), backend('b/old=750'), backend('b/new=250', false)];
    expect(shares(update, both).shares).toEqual(['a/old=1000', 'b/old=1000', 'b/new=0']);
    expect(shares([backend('a/old=3'), backend('a/new=1', false)], both).shares).toEqual(['a/old=3', 'a/new=0']);
  });

  test('go to a version that has all of them although another one still runs', () => {
    expect(shares([backend('a/old=0'), backend('a/new=1', false)], both)).toMatchObject({
      shares: ['a/old=0', 'a/new=1'],
      serving: ['p-a', 'p-b'],
    });
  });

  test('are not taken from a stopped app twice: its process sees its weights', () => {
    expect(shares([backend('a/old=1000'), backend('b/old=0', false)], both).serving).toEqual(['p-a', 'p-b']);
  });

  test('reach all apps if none has ready instances, and the one that is ready first', () => {
    expect(shares([backend('d/old=1000', false), backend('e/old=1000', false)]).shares).toEqual(['d/old=1000', 'e/old=1000']);
    expect(shares([backend('d/old=1000', start), backend('e/old=1000', false)], route('a-old')).shares).toEqual(['d/old=1000', 'e/old=0']);
  });
});

// The controller's statements about a route, with a server that answers as gateways do while they load a change.

import { afterEach, describe, expect, test } from 'vitest';
import type { DestinationBackend } from '../../../src/controller/routes/backends.ts';
import { Programming } from '../../../src/controller/routes/programming.ts';
import type { Statement } from '../../../src/controller/runtime/status.ts';
import { isSettled, Proofs } from '../../../src/controller/rollout/traffic-probe.ts';
import { revisionOf, type HttpRoute } from '../../../src/lib/api/gateway.ts';
import type { Stored } from '../../../src/lib/api/object.ts';
import type { CFRoute } from '../../../src/lib/api/types.generated.ts';
import { closeGateways, contextOf, gateway, generations, httpRoute, processOf, route, unresolved, type Scene } from './route-scene.ts';

afterEach(closeGateways);

/** Checks until there is a statement; the clock moves by the wait that each check requests. */
async function statementOf(programming: Pick<Programming, 'look'>, { context, pass }: Scene) {
  for (;;) {
    const { statement, requeueAfterMs = 0 } = programming.look(context, route);
    if (statement !== undefined) return statement;
    pass(requeueAfterMs);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

const withCondition = (statement: Statement): Stored<CFRoute> =>
  ({ ...route, status: { conditions: [statement] } }) as unknown as Stored<CFRoute>;

const said = (address: string, live: Stored<HttpRoute>) => statementOf(new Programming(), contextOf(address, live));

test('a 500 of a gateway that has loaded a route without its Services is not taken for the app', async () => {
  const live = httpRoute();
  const { asked, address } = await gateway(
    (_generation, count) => ({ status: count <= 2 ? 500 : 200 }),
    () => revisionOf(live),
  );
  expect(await said(address, live)).toMatchObject({ status: 'True', reason: 'Loaded', message: expect.stringContaining(`${revisionOf(live) ?? '?'}.`) as string });
  const [one, two] = generations.map((generation) => `a.example.com/Path/ ${generation}`);
  expect(asked).toEqual([one, one, one, two]);
}); // prettier-ignore

test('every app behind a route must answer, and an answer from another server does not count', async () => {
  const live = httpRoute();
  const { asked, address } = await gateway(
    (generation, count) => (generation === generations[1] && count <= 4 ? { status: 404, marked: false } : { status: 404 }),
    () => revisionOf(live),
  );
  expect((await said(address, live)).reason).toBe('Loaded');
  expect(asked.map((line) => line.split(' ')[1])).toEqual([generations[0], ...Array.from({ length: 4 }, () => generations[1])]);
});

test('an app that answers with 500 itself is accepted after some seconds, and is asked seldom until then', async () => {
  const live = httpRoute();
  const { asked, address } = await gateway(
    () => ({ status: 500 }),
    () => revisionOf(live),
  );
  expect((await said(address, live)).reason).toBe('Loaded');
  expect(asked.length).toBeLessThan(12);
});

test.each([502, 503, 504, 'cut'] as const)(
  'an app for which the gateway answers with %s is said not to answer, and stays so',
  async (given) => {
    const live = httpRoute();
    const { address } = await gateway(
      () => (given === 'cut' ? given : { status: given }),
      () => revisionOf(live),
    );
    const scene = contextOf(address, live);
    const programming = new Programming();
    const statement = await statementOf(programming, scene);
    expect(statement).toMatchObject({ status: 'True', reason: 'AppDoesNotAnswer' });
    expect(programming.look(scene.context, withCondition(statement)).statement).toEqual(statement);
  },
);

test('all replicas of a gateway that answer must name the revision of the route', async () => {
  const live = httpRoute();
  let last = 0;
  const { address } = await gateway(
    () => ({ status: 200 }),
    (count) => ((last = count) === 3 ? 'older' : revisionOf(live)),
  );
  expect((await said(address, live)).reason).toBe('Loaded');
  expect(last).toBe(8);
});

test('a gateway that loaded a route late gets its time even if it does not answer at first', async () => {
  const live = httpRoute();
  const { address } = await gateway(
    () => ({ status: 200 }),
    (count) => (count <= 4 ? 'cut' : revisionOf(live)),
  );
  const scene = contextOf(address, { ...live, status: { parents: [] } });
  const programming = new Programming();
  expect(programming.look(scene.context, route).statement).toBeUndefined();
  scene.pass(9_000);
  scene.put(live);
  expect((await statementOf(programming, scene)).reason).toBe('Loaded');
});

test('a gateway that does not know a Service or its addresses yet gets time, and then the report says so', async () => {
  const live = httpRoute();
  const { address } = await gateway(
    () => ({ status: 200 }),
    () => revisionOf(live),
  );
  const scene = contextOf(address, unresolved(live, 'BackendNotFound'));
  const programming = new Programming();
  const waited = scene.context.now();
  const statement = await statementOf(programming, scene);
  expect(statement).toMatchObject({ status: 'False', reason: 'NotAccepted', message: 'BackendNotFound: endpointslices not found' });
  expect(scene.context.now() - waited).toBeGreaterThan(90_000);
  scene.put(live);
  expect((await statementOf(programming, scene)).reason).toBe('Loaded');
});

test('a route that the gateway refuses is reported after 15 s, and later if the API server was away meanwhile', async () => {
  const live = unresolved(httpRoute(), 'RefNotPermitted');
  const scene = contextOf('http://127.0.0.1:9', live);
  const programming = new Programming();
  expect(programming.look(scene.context, route).statement).toBeUndefined();
  scene.pass(10_000);
  scene.reconnect();
  scene.pass(90_000);
  expect(programming.look(scene.context, route).statement).toBeUndefined();
  scene.pass(6_000);
  expect(programming.look(scene.context, route).statement?.reason).toBe('NotAccepted');
  const steady = contextOf('http://127.0.0.1:9', live);
  const other = new Programming();
  other.look(steady.context, route);
  steady.pass(16_000);
  expect(other.look(steady.context, route).statement?.reason).toBe('NotAccepted');
});

test('a gateway whose revision cannot be asked is reported as not verified', async () => {
  const live = httpRoute();
  const { address } = await gateway(
    () => ({ status: 200 }),
    () => 'cut',
  );
  expect((await said(address, live)).reason).toBe('NotVerified');
});

test('a gateway that never gets past an earlier revision is asked ever less often, at last every 10 s', async () => {
  const before = httpRoute();
  const live = httpRoute(before, true, generations.slice(1));
  const { address } = await gateway(
    () => ({ status: 200 }),
    () => revisionOf(before),
  );
  const programming = new Programming();
  const { context, pass } = contextOf(address, live);
  const pauses: number[] = [];
  while ((pauses.at(-1) ?? 0) < 10_000 && pauses.length < 100) {
    const { statement, requeueAfterMs = 0 } = programming.look(context, route);
    if (statement !== undefined) pauses.push(requeueAfterMs);
    pass(requeueAfterMs);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  expect(pauses[0]).toBeLessThan(2_000);
  expect(pauses).toEqual(pauses.toSorted((a, b) => a - b));
  expect(pauses.length).toBeLessThan(40);
});

test('a gateway with an earlier revision after 15 s has not loaded the present one, and is asked again soon', async () => {
  const before = httpRoute();
  const live = httpRoute(before, true, generations.slice(1));
  const { address } = await gateway(
    () => ({ status: 200 }),
    () => revisionOf(before),
  );
  const scene = contextOf(address, live);
  const statement = await statementOf(new Programming(), scene);
  expect(statement).toMatchObject({ status: 'False', reason: 'NotLoaded' });
  expect(isSettled(withCondition(statement), live)).toBe(false);
});

test('an answer from another server than the gateway proves nothing about the route, and ends the wait', async () => {
  const live = httpRoute();
  const { address } = await gateway(
    () => ({ status: 200 }),
    () => undefined,
  );
  const statement = await said(address, live);
  expect(statement).toMatchObject({ status: 'False', reason: 'NotAnswered' });
  expect(isSettled(withCondition(statement), live)).toBe(true);
  expect(isSettled(withCondition(statement), httpRoute(live, true, generations.slice(1)))).toBe(false);
});

test('a generation that was removed must answer again when it returns', async () => {
  const both = httpRoute();
  const second = httpRoute(both, true, generations.slice(1));
  const again = httpRoute(second);
  let live = both;
  const { asked, address } = await gateway(
    () => ({ status: 200 }),
    () => revisionOf(live),
  );
  const scene = contextOf(address, both);
  const programming = new Programming();
  for (live of [both, second, again]) {
    scene.put(live);
    expect((await statementOf(programming, scene)).reason).toBe('Loaded');
  }
  expect(asked.map((line) => line.split(' ')[1])).toEqual([...generations, generations[0]]);
});

describe('a backend that waits for its requests', () => {
  const [, second] = generations;
  const entering = [{ service: `s-d-two-${second}`, generation: second }] as unknown as DestinationBackend[];

  /** The route, whose destinations are not newly mapped, with what was said of a revision. */
  const provenBefore = (revision: string | undefined): Stored<CFRoute> => {
    const message = `The gateway has loaded revision ${revision ?? '?'}.`;
    const condition = { type: 'Programmed', status: 'True' as const, reason: 'Loaded', message, observedGeneration: 1 };
    return { ...route, status: { conditions: [condition] } } as unknown as Stored<CFRoute>;
  };

  /** Looks until the backend counts as reached. */
  async function reached(
    live: Stored<HttpRoute>,
    address: string,
    shown = live,
    { programming, scene } = { programming: new Programming(), scene: contextOf(address, shown) },
  ) {
    const [since, known] = [scene.context.now(), provenBefore(revisionOf(live))];
    for (;;) {
      const { requeueAfterMs = 0 } = programming.look(scene.context, known, entering);
      if (programming.answeredOf(known).has(`s-d-two-${second}`)) return { waitedMs: scene.context.now() - since, requeueAfterMs };
      scene.pass(requeueAfterMs);
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  }

  test('is asked until the gateway reaches it, and no other one is', async () => {
    const live = httpRoute();
    const { asked, address } = await gateway(
      (_generation, count) => ({ status: count <= 3 ? 500 : 200 }),
      () => revisionOf(live),
    );
    expect((await reached(live, address)).requeueAfterMs).toBe(1);
    expect(asked.map((line) => line.split(' ')[1])).toEqual([second, second, second, second]);
  });

  test('that lost its instances meanwhile gets its whole time again', async () => {
    const live = httpRoute();
    const { asked, address } = await gateway(
      () => ({ status: 503 }),
      () => revisionOf(live),
    );
    const scene = contextOf(address, live);
    const [programming, known] = [new Programming(), provenBefore(revisionOf(live))];
    while (asked.length < 2) {
      scene.pass(programming.look(scene.context, known, entering).requeueAfterMs ?? 0);
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    programming.look(scene.context, known);
    scene.pass(60_000);
    expect((await reached(live, address, live, { programming, scene })).waitedMs).toBeGreaterThan(5_000);
  });

  test('and gives no answer in time does not let in others that wait', async () => {
    const live = httpRoute();
    const { asked, address } = await gateway(
      (generation) => (generation === second ? 'cut' : { status: 200 }),
      () => revisionOf(live),
    );
    const scene = contextOf(address, live);
    const both = [...entering, { service: 's-other', generation: generations[0] }] as unknown as DestinationBackend[];
    const [programming, known] = [new Programming(), provenBefore(revisionOf(live))];
    const said = new Set<string | undefined>();
    while (!programming.answeredOf(known).has('s-other')) {
      const { statement, requeueAfterMs = 0 } = programming.look(scene.context, known, both);
      said.add(statement?.reason);
      scene.pass(requeueAfterMs);
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    expect([asked.at(-1)?.endsWith(generations[0]), [...said].includes('NotVerified')]).toEqual([true, false]);
  });

  test('delays no statement about a form of the route that the gateway has loaded', async () => {
    const live = httpRoute();
    const { address } = await gateway(
      () => ({ status: 503 }),
      () => revisionOf(live),
    );
    const scene = contextOf(address, live);
    const [programming, since, earlier] = [new Programming(), scene.context.now(), provenBefore('earlier')];
    const { reason } = await statementOf({ look: (context) => programming.look(context, earlier, entering) }, scene);
    expect([reason, scene.context.now() - since < 1_000, programming.answeredOf(earlier).size]).toEqual(['Loaded', true, 0]);
  });

  test.each([
    ['of another space does not change what is said of the route', 'half-uid', ['Loaded']],
    ['of the route itself is said not to answer', route.metadata.uid, ['Loaded', 'AppDoesNotAnswer']],
  ])('and whose app %s', async (_, uid, reasons) => {
    const live = httpRoute();
    const { address } = await gateway(
      () => ({ status: 503 }),
      () => revisionOf(live),
    );
    const scene = contextOf(address, live);
    const waiting = [{ service: `s-d-two-${second}`, generation: second, route: uid }] as unknown as DestinationBackend[];
    const [programming, known] = [new Programming(), provenBefore(revisionOf(live))];
    const said = new Set<string>();
    while (!programming.answeredOf(known).has(`s-d-two-${second}`)) {
      const { statement, requeueAfterMs = 0 } = programming.look(scene.context, known, waiting);
      if (statement !== undefined) said.add(statement.reason);
      scene.pass(requeueAfterMs);
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    expect([...said]).toEqual(reasons);
  });

  test('counts as reached after 5 s in which its app answers with 500', async () => {
    const live = httpRoute();
    const { address } = await gateway(
      () => ({ status: 500 }),
      () => revisionOf(live),
    );
    const { waitedMs, requeueAfterMs } = await reached(live, address);
    expect(waitedMs).toBeGreaterThan(5_000);
    expect([waitedMs < 10_000, requeueAfterMs]).toEqual([true, 1]);
  });

  test('is not asked while the gateway lacks its addresses, for at most 95 s', async () => {
    const live = httpRoute();
    const { asked, address } = await gateway(
      () => ({ status: 200 }),
      () => revisionOf(live),
    );
    const { waitedMs, requeueAfterMs } = await reached(live, address, unresolved(live, 'BackendNotFound'));
    expect([asked, waitedMs > 94_000, waitedMs < 100_000, requeueAfterMs]).toEqual([[], true, true, 1]);
  });

  test('counts as reached when the gateway cannot be asked for some seconds', async () => {
    const live = httpRoute();
    const { address } = await gateway(
      () => ({ status: 200 }),
      () => 'cut',
    );
    const { waitedMs } = await reached(live, address);
    expect([waitedMs > 3_000, waitedMs < 5_000]).toEqual([true, true]);
  });
});

test('a process is not proven by a 500 of the gateway either', async () => {
  const live = httpRoute();
  const { asked, address } = await gateway(
    (_generation, count) => ({ status: count <= 2 ? 500 : 200 }),
    () => revisionOf(live),
  );
  const { context, pass } = contextOf(address, live);
  const proofs = new Proofs();
  for (;;) {
    const proof = proofs.check(context, processOf('one'), { generation: generations[0], instances: [], port: 8080, isChecked: true });
    if (proof.state !== 'awaited') {
      expect(proof).toEqual({ state: 'proven', through: 'gateway' });
      break;
    }
    pass(proof.lookAgainMs ?? 0);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  expect(asked).toHaveLength(3);
});

test('a form of a route that returns has another revision, so that its first proof does not count again', () => {
  const first = httpRoute();
  const silent = httpRoute(first, false);
  const again = httpRoute(silent);
  const [a, b, c] = [first, silent, again].map(revisionOf);
  expect(new Set([a, b, c]).size).toBe(3);
  expect(revisionOf(httpRoute(again))).toBe(c);
  const knows = (message: string) =>
    ({
      ...route,
      status: { conditions: [{ type: 'Programmed', status: 'True', reason: 'Loaded', message }] },
    }) as unknown as Stored<CFRoute>;
  expect(isSettled(knows(`The gateway has loaded revision ${a ?? '?'}.`), again)).toBe(false);
  expect(isSettled(knows(`The gateway has loaded revision ${c ?? '?'}.`), again)).toBe(true);
  expect(isSettled(route, again)).toBe(false);
});

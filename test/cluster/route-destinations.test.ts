// Routes that lead to several apps: none of the requests is lost while one app is replaced, crashes or starts, however many apps there are.

import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { mostDestinations } from '../../src/lib/ops/routes/destinations.ts';
import { get } from '../support/http.ts';
import { Kf, kubectl, kubectlJson, ringEnv } from '../support/kf.ts';
import { until } from '../support/until.ts';

const image = `${ringEnv('KF_CLUSTER_NODE_REGISTRY')}/kf/sample:1`;
const domain = 'apps.localhost';
const host = `several-${randomUUID().slice(0, 6)}`;
/** Answers with the app's name and a text; ends with GET /exit; listens only after some time. */
const program = [
  'const { application_name: name } = JSON.parse(process.env.VCAP_APPLICATION);',
  'const end = (r) => r.end(name + (process.env.TEXT ?? ""));',
  'const server = require("http").createServer((q, r) => (q.url === "/exit" ? process.exit(1) : end(r)));',
  'setTimeout(() => server.listen(process.env.PORT), Number(process.env.LATE ?? "0"));',
].join(' ');
const command = `exec node -e '${program}'`;
const names = Array.from({ length: mostDestinations }, (_, at) => `${host}-${String(at).padStart(2, '0')}`);
const [first = '', second = '', third = ''] = names;
let kf: Kf;
let folder: string;

beforeAll(async () => {
  kf = await Kf.create();
  folder = await mkdtemp(path.join(tmpdir(), 'kf-several-'));
  const applications = names.map((name) => ({ name, docker: { image }, memory: '64M', command, routes: [{ route: `${name}.${domain}` }] }));
  await writeFile(path.join(folder, 'manifest.yml'), JSON.stringify({ applications }));
  await kf.ok('push', '-f', path.join(folder, 'manifest.yml'));
}, 600_000);

afterAll(async () => {
  for (const name of [...names, `${host}-one-more`]) await kf.run(['delete', name, '-r', '-f']);
  await kf.remove();
  await rm(folder, { recursive: true, force: true });
}, 600_000);

/** How many requests each app answered; anything else is counted by its status. */
async function answers(requests: number, at = host): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (let sent = 0; sent < requests; sent += 1) {
    const { status, body } = await get(`${at}.${domain}`);
    const who = status === 200 ? body : `status ${status} ${body.slice(0, 60)}`;
    counts[who] = (counts[who] ?? 0) + 1;
  }
  return counts;
}

/** What answers while a command runs; requests go on without a pause. */
async function answersDuring(work: () => Promise<unknown>, at = host): Promise<string[]> {
  const seen = new Set<string>();
  let ended = false;
  const asking = (async () => {
    while (!ended) for (const who of Object.keys(await answers(5, at))) seen.add(who);
  })();
  try {
    await work();
  } finally {
    ended = true;
    await asking;
  }
  return [...seen].toSorted();
}

/** Which apps answered that many requests for each of them, if none got less than half or more than twice its share. */
async function sharers(apps: number, each = 6): Promise<string[]> {
  const counts = Object.entries(await answers(apps * each));
  return counts.map(([who, count]) => (count >= each / 2 && count <= each * 2 ? who : `${who}: ${count} of ${apps * each}`)).toSorted();
}

/** Which apps answer now. */
const responders = async (at: string): Promise<string[]> => Object.keys(await answers(20, at)).toSorted();

/**
 * Waits until the apps get exactly these numbers of requests. Each change of a route makes the gateway begin its turns anew: the requests that
 * were counted across one differ by one or two.
 */
function shares(expected: Record<string, number>, at = host): Promise<true> {
  const requests = Object.values(expected).reduce((sum, count) => sum + count, 0);
  return until(`the shares ${JSON.stringify(expected)}`, async () => isDeepStrictEqual(await answers(requests, at), expected));
}

const failures = (seen: readonly string[]): string[] => seen.filter((who) => who.startsWith('status'));

describe('a route to two apps, of which one', () => {
  const pair = `${host}-pair`;
  const both = { [first]: 10, [second]: 10 };

  beforeAll(async () => {
    for (const name of [first, second]) await kf.ok('map-route', name, domain, '-n', pair);
    expect(await responders(pair)).toEqual([first, second]);
    await shares(both, pair);
  });

  test('is stopped and started, sends no request to it, and loses none', async () => {
    expect(failures(await answersDuring(() => kf.ok('stop', second), pair))).toEqual([]);
    expect(await answers(20, pair)).toEqual({ [first]: 20 });
    await kf.ok('set-env', second, 'LATE', '4000');
    expect(failures(await answersDuring(() => kf.ok('start', second), pair))).toEqual([]);
    expect(await responders(pair)).toEqual([first, second]);
    await shares(both, pair);
  });

  test('is unmapped and mapped again and again, loses no request', async () => {
    const clients = Array.from({ length: 4 }, () => Promise.withResolvers<undefined>());
    const seen = clients.map(({ promise }) => answersDuring(() => promise, pair));
    for (let round = 0; round < 12; round += 1) {
      await kf.ok('unmap-route', second, domain, '-n', pair);
      await kf.ok('map-route', second, domain, '-n', pair);
    }
    for (const { resolve } of clients) resolve(undefined);
    expect((await Promise.all(seen)).flatMap(failures)).toEqual([]);
  });

  test('has no instances, sends no request to it, and loses none', async () => {
    expect(failures(await answersDuring(() => kf.ok('scale', second, '-i', '0'), pair))).toEqual([]);
    // The command ends when the instance does; the gateway learns of it a moment later.
    await shares({ [first]: 20 }, pair);
    expect(failures(await answersDuring(() => kf.ok('scale', second, '-i', '1'), pair))).toEqual([]);
    await shares(both, pair);
  });

  test('crashes, sends no request to it until it runs again', async () => {
    await until('a pause before the next start of the app', async () => {
      await get(`${second}.${domain}`, '/exit').catch(() => undefined);
      const { stdout } = await kf.ok('app', second);
      return /crashed/.test(stdout) ? true : undefined;
    });
    await shares({ [first]: 10 }, pair);
    const seen = await answersDuring(() => shares(both, pair), pair);
    expect(seen).toEqual([first, second]);
  });
});

test('an app that was started a moment ago gets requests when map-route ends', async () => {
  const fresh = `${host}-fresh`;
  await kf.ok('map-route', first, domain, '-n', fresh);
  for (let round = 0; round < 3; round += 1) {
    await kf.ok('restart', second);
    await kf.ok('map-route', second, domain, '-n', fresh);
    expect(await responders(fresh)).toEqual([first, second]);
    await kf.ok('unmap-route', second, domain, '-n', fresh);
  }
  await kf.ok('delete-route', domain, '-n', fresh, '-f');
});

describe(`a route to ${mostDestinations} apps`, () => {
  beforeAll(async () => {
    for (const name of names) await kf.ok('map-route', name, domain, '-n', host);
  }, 300_000);

  test('leads to each of them with the same share', async () => {
    expect(await sharers(names.length)).toEqual(names);
  });

  test('takes no further app, and kf says so before it writes anything', async () => {
    await kf.ok('push', `${host}-one-more`, '-o', image, '-m', '64M', '--no-route', '--no-start');
    const mapped = await kf.run(['map-route', `${host}-one-more`, domain, '-n', host]);
    const sentence = `Route ${host}.${domain} leads to ${mostDestinations} apps already`;
    expect(mapped).toMatchObject({ code: 1, stderr: expect.stringContaining(sentence) as string });
    const manifest = path.join(folder, 'more.yml');
    const app = { name: `${host}-two-more`, docker: { image }, memory: '64M', routes: [{ route: `${host}.${domain}` }] };
    await writeFile(manifest, JSON.stringify({ applications: [app] }));
    expect(await kf.run(['push', '-f', manifest])).toMatchObject({ code: 1, stderr: expect.stringContaining(sentence) as string });
    expect((await kf.ok('apps')).stdout).not.toContain(`${host}-two-more`);
  });

  test('loses no request while two of them are replaced at the same time', async () => {
    for (const name of [first, third]) await kf.ok('set-env', name, 'TEXT', ' new');
    const seen = await answersDuring(() => Promise.all([first, third].map((name) => kf.ok('restart', name, '--strategy', 'rolling'))));
    expect(failures(seen)).toEqual([]);
    const now = names.map((name) => ([first, third].includes(name) ? `${name} new` : name));
    expect(await sharers(names.length)).toEqual(now.toSorted());
  });

  test('loses no request while one of 16 destinations is replaced that another client made', async () => {
    const space = ringEnv('KF_TEST_SPACE_GUID');
    interface Routes {
      items: { metadata: { name: string }; spec: { host?: string; destinations?: { guid: string; appRef: object; port?: number }[] } }[];
    }
    const { items } = await kubectlJson<Routes>('get', 'cfroutes', '-n', space);
    const route = items.find(({ spec }) => spec.host === host);
    const present = route?.spec.destinations ?? [];
    // The same apps a second time, as two ports of an app would be.
    const more = present.slice(4, 6).map((one) => ({ ...one, guid: randomUUID(), port: 8080 }));
    const patch = { spec: { destinations: [...present, ...more] } };
    await kubectl('patch', 'cfroute', '-n', space, route?.metadata.name ?? '', '--type=merge', '-p', JSON.stringify(patch));
    await until('the requests to reach all 16', async () => ((await answers(32))[names[4] ?? ''] === 4 ? true : undefined));
    await kf.ok('set-env', second, 'TEXT', ' new');
    const seen = await answersDuring(() => kf.ok('restart', second, '--strategy', 'rolling'));
    expect(failures(seen)).toEqual([]);
    await until('the share of the new version', async () => ((await answers(32))[`${second} new`] === 2 ? true : undefined));
  });
});

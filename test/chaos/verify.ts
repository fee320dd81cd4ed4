// What must hold after a chaos session: each app is as its commands declared it, and nothing exists that belongs to nothing.

import { get } from '../support/http.ts';
import { kubectl, kubectlJson, ringEnv, type Kf } from '../support/kf.ts';
import { until } from '../support/until.ts';
import { extraHostOf, serviceOf, type Declared } from './steps.ts';

interface AppSeen {
  state: string;
  processes: { type: string; instanceDetails: { state: string }[] }[];
}

interface Owned {
  kind: string;
  metadata: {
    name: string;
    namespace?: string;
    uid: string;
    labels?: Record<string, string>;
    ownerReferences?: { uid: string; kind: string; name: string }[];
  };
}

/** Compares one app with what was declared. @throws Error naming the first difference that stays */
export async function asDeclared(kf: Kf, name: string, declared: Declared | undefined): Promise<void> {
  if (declared === undefined) {
    const { code, stderr } = await kf.run(['app', name], { env: { KF_EXIT_CODES: 'class' } });
    if (code !== 3) throw new Error(`the deleted app ${name} is still there: ${stderr}`);
    return notFound(name);
  }
  await holds(`the instances of ${name}`, declared.started ? declared.instances : 0, () => runningOf(kf, name));
  if (!declared.started) return;
  for (const host of declared.extraRoute ? [name, extraHostOf(name)] : [name]) {
    const { version, env } = declared.running;
    const expected = { version: String(version), env, bound: declared.runningBound };
    await holds(`the answers of ${host}`, expected, () => answerOf(host, serviceOf(name)));
  }
  if (!declared.extraRoute) await notFound(extraHostOf(name));
}

/** Compares the bindings of the app's service with what was declared. @throws Error with both */
export const boundAsDeclared = (kf: Kf, name: string, declared: Declared): Promise<void> =>
  holds(`the bindings of ${serviceOf(name)}`, declared.bound ? [`${name}: create succeeded`] : [], async () => {
    const { boundApps } = await kf.json<{ boundApps: { name: string; status: string }[] }>('service', serviceOf(name));
    return boundApps.map((app) => `${app.name}: ${app.status}`);
  });

/** Waits until what is seen is as expected. @throws Error with both */
async function holds(what: string, expected: unknown, see: () => Promise<unknown>): Promise<void> {
  let seen: unknown;
  const wanted = JSON.stringify(expected);
  try {
    await until(what, async () => {
      seen = await see();
      return JSON.stringify(seen) === wanted;
    });
  } catch (cause) {
    throw new Error(`${what}: expected ${wanted}, seen ${JSON.stringify(seen)}`, { cause });
  }
}

const notFound = (host: string): Promise<void> =>
  holds(`the answer of ${host}`, 404, async () => (await get(`${host}.apps.localhost`)).status);

async function runningOf(kf: Kf, name: string): Promise<number> {
  const { processes } = await kf.json<AppSeen>('app', name);
  return processes.flatMap(({ instanceDetails }) => instanceDetails.filter(({ state }) => state === 'running')).length;
}

async function answerOf(host: string, service: string): Promise<unknown> {
  const { status, body } = await get(`${host}.apps.localhost`, '/env');
  if (status !== 200) return status;
  const env = JSON.parse(body) as Record<string, string>;
  return { version: env['SAMPLE_VERSION'], env: env['CHAOS'] ?? '', bound: env['VCAP_SERVICES']?.includes(`"${service}"`) === true };
}

/** Kinds that come and go by themselves. */
const fleeting = /^(events(\.|$)|.*\.metrics\.k8s\.io$)/;

/** Every object of the space. */
async function objects(): Promise<Owned[]> {
  const names = (await kubectl('api-resources', '--namespaced', '--verbs=list', '-o', 'name')).trim().split('\n');
  const kinds = names.filter((name) => !fleeting.test(name)).join(',');
  return (await kubectlJson<{ items: Owned[] }>('get', kinds, '-n', ringEnv('KF_TEST_SPACE_GUID'))).items;
}

const nameOf = ({ kind, metadata }: Owned): string => `${kind} ${metadata.name}`;

/** The names of all objects that exist before a session. */
export async function baseline(): Promise<Set<string>> {
  return new Set((await objects()).map(nameOf));
}

/** Waits until no object belongs to nothing: the garbage collector follows a deletion, later after a restart of the API server. @throws Error naming what stays */
export const noOrphans = (): Promise<void> => holds('what belongs to nothing', [], orphans);

/** Objects whose owner, or whose app, does not exist. */
async function orphans(): Promise<string[]> {
  const all = await objects();
  const [uids, apps] = [new Set(all.map(({ metadata }) => metadata.uid)), new Set<string>()];
  for (const { kind, metadata } of all) if (kind === 'CFApp') apps.add(metadata.name);
  return all
    .filter(({ metadata }) => {
      const owners = metadata.ownerReferences ?? [];
      const app = metadata.labels?.['korifi.cloudfoundry.org/app-guid'];
      // An owner of an object in the space is in the space, or it is the space itself, which is in the namespace of its org.
      const isLost = owners.length > 0 && owners.every(({ uid, kind }) => !uids.has(uid) && kind !== 'CFSpace');
      return isLost || (app !== undefined && !apps.has(app));
    })
    .map(nameOf);
}

/** Deletes what the session made, and waits until exactly the objects of before exist. @throws Error naming what is left */
export async function leavesNothing(kf: Kf, apps: Iterable<string>, before: ReadonlySet<string>): Promise<void> {
  for (const app of apps) {
    await kf.ok('delete', app, '-f', '-r');
    await kf.ok('delete-service', serviceOf(app), '-f');
  }
  // A route that was unmapped stays, as in cf, until somebody deletes it.
  await kf.ok('delete-orphaned-routes', '-f');
  await holds('what is left', [], async () => (await objects()).map(nameOf).filter((name) => !before.has(name)));
}

// How long after the first sign of a failure `kf why` names its cause. A sign is a state of a container or of a pod, or a Warning, as a watch of the
// API server shows it.

import { spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { reasons } from '../../src/lib/api/group.ts';
import type { Pod } from '../../src/lib/api/pod-kind.ts';
import { kubectlJson, ringEnv, type Kf } from '../support/kf.ts';
import { why } from '../support/why.ts';
import { failingApps, type FailingApp } from './failing-apps.ts';
import { failingObjects, type FailingObject } from './failing-objects.ts';
import type { Scene } from './scene.ts';
import { seconds, type Row } from './table.ts';

const giveUpMs = 60_000;
/** The limit is relative: to the first sign, which is measured beside it. */
const mostMs = 10_000;
const lookMs = 200;

const isBad = (reason = ''): boolean => !['', 'PodInitializing', 'ContainerCreating'].includes(reason);

type Seen = Pod & { type?: string; reason?: string; involvedObject?: { name: string } };

const nameOf = ({ kind, metadata, involvedObject }: Seen): string => (kind === 'Event' ? involvedObject?.name : metadata.name) ?? '';

/** Whether a pod, or an Event, shows that something fails. Every start has a Warning that not all instances are ready yet. */
function isSign(object: Seen): boolean {
  if (object.kind === 'Event') return object.type === 'Warning' && object.reason !== reasons.desiredStateNotReached;
  const { status } = object;
  if (status?.phase === 'Failed') return true;
  if (status?.conditions?.some(({ reason }) => reason === 'Unschedulable') === true) return true;
  const statuses = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])];
  return statuses.some(({ state, lastState }) => {
    const codes = [state?.terminated?.exitCode ?? 0, lastState?.terminated?.exitCode ?? 0];
    return codes.some((code) => code !== 0) || isBad(state?.waiting?.reason);
  });
}

interface Sign {
  at: number;
  what: string;
}

/** Watches the pods and Events of a space, and notes the first sign at an object that was not there before. */
class Signs {
  first: Sign | undefined;
  readonly #former: ReadonlySet<string>;
  readonly #children = ['pods', 'events'].map((kind) => {
    const env = { ...process.env, KUBECONFIG: ringEnv('KF_TEST_KUBECONFIG') };
    return spawn('kubectl', ['get', kind, '-n', ringEnv('KF_TEST_SPACE_GUID'), '--watch-only', '-o', 'json'], {
      env,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
  });

  constructor(former: readonly string[]) {
    this.#former = new Set(former);
    for (const { stdout } of this.#children) {
      let rest = '';
      stdout.setEncoding('utf8').on('data', (text: string) => {
        const documents = `${rest}${text}`.split(/(?<=^\})\n/m);
        rest = documents.pop() ?? '';
        for (const document of documents) this.#take(JSON.parse(document) as Seen);
      });
    }
  }

  /** Late Events of the app before count for nothing. */
  #take(object: Seen): void {
    const name = nameOf(object);
    if (!isSign(object) || this.#former.has(name)) return;
    const reason = object.kind === 'Event' ? object.reason : object.status?.phase;
    this.first ??= { at: performance.now(), what: `${object.kind ?? ''} ${reason ?? ''} of ${name}` };
  }

  end(): void {
    for (const child of this.#children) child.kill();
  }
}

/** What `kf why` said of a failure. */
export interface CauseSeen {
  cause: string;
  /** From the first sign until the cause was named; undefined when it was not. */
  ms: number | undefined;
  /** Other causes that were named before. */
  wrong: string[];
}

/** What was not named, named late, or named wrong. A failure that is still called unknown is not named. */
export const faultsOfCauses = (seen: readonly CauseSeen[]): string[] =>
  seen.flatMap(({ cause, ms, wrong }) => [
    ...(ms === undefined ? [`${cause} was not named`] : []),
    ...(ms !== undefined && ms > mostMs ? [`${cause} was named ${seconds([ms])} after its first sign`] : []),
    ...wrong.map((other) => `${cause} was called ${other}`),
  ]);

/** @param firstSign when something first showed it; undefined before that */
async function named(kf: Kf, about: readonly string[], cause: string, firstSign: () => number | undefined): Promise<CauseSeen> {
  const wrong = new Set<string>();
  for (const began = performance.now(); performance.now() - began < giveUpMs; await sleep(lookMs)) {
    const said = await why(kf, ...about).catch(() => undefined);
    const now = performance.now();
    if (said?.cause === cause) return { cause, ms: Math.max(0, now - (firstSign() ?? now)), wrong: [...wrong] };
    if (said?.state === 'failed' && said.cause !== undefined && said.cause !== 'unknown') wrong.add(said.cause);
  }
  return { cause, ms: undefined, wrong: [...wrong] };
}

/** The time without that which the app has to start. */
const withoutStart = ({ ms, ...seen }: CauseSeen, startMs: number): CauseSeen => ({
  ...seen,
  ms: ms === undefined ? undefined : Math.max(0, ms - startMs),
});

/** The objects of which pods and Events tell already. */
async function namesBefore(): Promise<string[]> {
  const { items } = await kubectlJson<{ items: Seen[] }>('get', 'pods,events', '-n', ringEnv('KF_TEST_SPACE_GUID'));
  return items.map(nameOf);
}

async function measure({ developer, auditor }: Scene, { cause, flags, startMs = 0, provoke }: FailingApp): Promise<CauseSeen> {
  const app = `bench-${cause}`;
  const stop = await provoke?.(app);
  const signs = new Signs(await namesBefore());
  // The watches begin first.
  await sleep(1_000);
  const pushed = developer.run(['push', app, ...flags]);
  try {
    const seen = await named(auditor, [app], cause, () => signs.first?.at);
    console.log(`first sign: ${signs.first?.what ?? 'none'}`);
    return withoutStart(seen, startMs);
  } finally {
    await pushed;
    signs.end();
    await developer.ok('delete', app, '-r', '-f').finally(() => stop?.());
  }
}

async function measureObject({ developer }: Scene, { cause, about, provoke }: FailingObject): Promise<CauseSeen> {
  const { since, undo } = await provoke();
  try {
    return await named(developer, about, cause, () => since);
  } finally {
    await undo();
  }
}

export async function benchCauses(scene: Scene): Promise<Row[]> {
  const all: CauseSeen[] = [];
  const note = (seen: CauseSeen): void => {
    console.log(`${seen.cause}: ${seen.ms === undefined ? 'not named' : seconds([seen.ms])}`);
    all.push(seen);
  };
  for (const one of await failingApps(scene)) note(await measure(scene, one));
  for (const one of failingObjects(scene)) note(await measureObject(scene, one));
  const times = all.flatMap(({ cause, ms }) => (ms === undefined ? [] : [{ cause, ms }]));
  const slowest = times.toSorted((a, b) => b.ms - a.ms)[0];
  return [
    {
      what: `from the first sign of a failure until \`kf why\` names the cause, ${String(times.length)} causes`,
      reach: '≤ 10 s each',
      measured: seconds(times.map(({ ms }) => ms)),
      beside: `slowest: ${slowest?.cause ?? 'none'}`,
      faults: faultsOfCauses(all),
    },
  ];
}

// How long after the first sign of a failure `kf why` names its cause. A sign is a state of a container or of a pod, or a Warning, as a watch of the
// API server shows it.

import { spawn } from 'node:child_process';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { reasons } from '../../src/lib/api/group.ts';
import type { Pod } from '../../src/lib/api/pod-kind.ts';
import { foreignImage, fullQueue } from '../support/cause-fixtures.ts';
import { kubectl, kubectlJson, ringEnv, type Kf } from '../support/kf.ts';
import { untilQuotaHolds } from '../support/quota.ts';
import { why } from '../support/why.ts';
import type { Scene } from './scene.ts';
import { seconds, type Row } from './table.ts';

const giveUpMs = 60_000;
const lookMs = 200;
const usualMemory = '16Gi';

interface Failing {
  cause: string;
  /** Flags of the push. */
  flags: string[];
  /** It fails when its time to start ends, and not with the first unanswered check, which is the first sign. */
  startMs?: number;
  /** The memory that the quota of the space allows meanwhile. */
  memory?: string;
}

const command = (text: string): string[] => ['-c', text, '--no-route', '-u', 'process', '-t', '30'];
const node = (program: string): string => `exec node -e '${program}'`;

function failing(sample: string): Failing[] {
  const registry = ringEnv('KF_CLUSTER_NODE_REGISTRY');
  const app = ['-o', sample, '-m', '64M'];
  return [
    { cause: 'exit-code', flags: [...app, ...command('exit 3')] },
    { cause: 'signal', flags: [...app, ...command("sh -c 'kill -SEGV $$'; exit $?")] },
    { cause: 'oom', flags: [...app, '-c', node('const a = []; for (;;) a.push(Buffer.alloc(8e6, 1))'), '--no-route'] },
    { cause: 'disk', flags: [...app, '-k', '20M', ...command('head -c 90M /dev/zero > /tmp/full; sleep 600')] },
    { cause: 'command-not-found', flags: [...app, ...command('no-such-command')] },
    { cause: 'image-not-found', flags: ['-o', `${registry}/kf/no-such-image:1`] },
    { cause: 'image-unauthorized', flags: ['-o', `${ringEnv('KF_CLUSTER_PRIVATE_REGISTRY')}/kf/sample:1`] },
    { cause: 'registry-unreachable', flags: ['-o', 'localhost:1/kf/none:1', '-m', '64M'] },
    { cause: 'registry-certificate', flags: ['-o', `${ringEnv('KF_CLUSTER_ADDRESS')}:443/kf/sample:1`] },
    { cause: 'wrong-architecture', flags: ['-o', foreignImage(), ...command('sleep 600')] },
    { cause: 'no-buildpack', flags: ['-p', path.resolve('test/fixtures/apps/no-match')] },
    { cause: 'build-failed', flags: ['-p', path.resolve('test/fixtures/apps/broken-build')] },
    { cause: 'image-user', flags: ['-o', `${registry}/kf/root:1`] },
    { cause: 'wrong-port', flags: ['-o', `${registry}/kf/wrongport:1`, '-t', '10'], startMs: 10_000 },
    { cause: 'not-listening', flags: ['-o', `${registry}/kf/silent:1`, '-t', '10'], startMs: 10_000 },
    { cause: 'health-http', flags: [...app, '-t', '10', '-u', 'http', '--endpoint', '/nowhere'], startMs: 10_000 },
    { cause: 'health-port', flags: [...app, '-c', fullQueue, '-t', '10'], startMs: 10_000 },
    { cause: 'no-room', flags: ['-o', sample, '-m', '900G'], memory: '2Ti' },
  ];
}

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

/** @returns milliseconds from the sign to the answer of `kf why`; undefined when it did not name the cause */
async function named(kf: Kf, app: string, cause: string, signs: Signs): Promise<number | undefined> {
  for (const began = performance.now(); performance.now() - began < giveUpMs; await sleep(lookMs)) {
    const said = await why(kf, app).catch(() => undefined);
    if (said?.cause === cause) return Math.max(0, performance.now() - (signs.first?.at ?? performance.now()));
  }
  return undefined;
}

/** The objects of which pods and Events tell already. */
async function namesBefore(): Promise<string[]> {
  const { items } = await kubectlJson<{ items: Seen[] }>('get', 'pods,events', '-n', ringEnv('KF_TEST_SPACE_GUID'));
  return items.map(nameOf);
}

/** Sets the memory that the quota of the space allows. */
async function allow(memory: string): Promise<void> {
  const space = ringEnv('KF_TEST_SPACE_GUID');
  const patch = JSON.stringify({ spec: { hard: { 'requests.memory': memory } } });
  await kubectl('patch', 'resourcequota', 'kf-limits', '-n', space, '--type=merge', '-p', patch);
  await untilQuotaHolds(space, 'kf-limits');
}

async function measure({ developer, auditor }: Scene, { cause, flags, memory, startMs = 0 }: Failing): Promise<number | undefined> {
  if (memory !== undefined) await allow(memory);
  const app = `bench-${cause}`;
  const signs = new Signs(await namesBefore());
  // The watches begin first.
  await sleep(1_000);
  const pushed = developer.run(['push', app, ...flags]);
  try {
    const ms = await named(auditor, app, cause, signs);
    console.log(`first sign: ${signs.first?.what ?? 'none'}`);
    return ms === undefined ? undefined : Math.max(0, ms - startMs);
  } finally {
    await pushed;
    signs.end();
    await developer.ok('delete', app, '-r', '-f');
    if (memory !== undefined) await allow(usualMemory);
  }
}

export async function benchCauses(scene: Scene): Promise<Row[]> {
  const times: { cause: string; ms: number }[] = [];
  const missed: string[] = [];
  for (const one of failing(scene.sample(1))) {
    const ms = await measure(scene, one);
    console.log(`${one.cause}: ${ms === undefined ? 'not named' : seconds([ms])}`);
    if (ms === undefined) missed.push(one.cause);
    else times.push({ cause: one.cause, ms });
  }
  const slowest = times.toSorted((a, b) => b.ms - a.ms)[0];
  return [
    {
      what: `from the first sign of a failure until \`kf why\` names the cause, ${String(times.length)} causes`,
      reach: '≤ 10 s each',
      measured: seconds(times.map(({ ms }) => ms)),
      beside: [`slowest: ${slowest?.cause ?? 'none'}`, ...missed.map((cause) => `${cause} was not named`)].join('; '),
    },
  ];
}

// Apps that fail, one for each cause that a pod, an Event or the registry shows. Those of names, routes and services are in failing-objects.ts; those
// of nodes, the gateway and the controller are provoked by the cluster ring.

import path from 'node:path';
import { foreignImage, fullQueue } from '../support/cause-fixtures.ts';
import { CausePolicies } from '../support/cause-policies.ts';
import { installingApp } from '../support/installing-app.ts';
import { kubectl, ringEnv } from '../support/kf.ts';
import { untilQuotaHolds } from '../support/quota.ts';
import type { Scene } from './scene.ts';

export interface FailingApp {
  cause: string;
  /** Flags of the push. */
  flags: string[];
  /** It fails when its time to start ends, and not with the first unanswered check, which is the first sign. */
  startMs?: number;
  /** Prepares the push of the app. @returns what undoes that */
  provoke?: (app: string) => Promise<() => Promise<unknown>>;
}

const usualMemory = '16Gi';
const worker = ['--no-route', '-u', 'process', '-t', '30'];
const command = (text: string): string[] => ['-c', text, ...worker];
const node = (program: string): string => `exec node -e '${program}'`;

/** Sets the memory that the quota of the space allows. */
async function allow(space: string, memory: string): Promise<void> {
  const patch = JSON.stringify({ spec: { hard: { 'requests.memory': memory } } });
  await kubectl('patch', 'resourcequota', 'kf-limits', '-n', space, '--type=merge', '-p', patch);
  await untilQuotaHolds(space, 'kf-limits');
}

const withMemory = (space: string, memory: string) => async () => {
  await allow(space, memory);
  return () => allow(space, usualMemory);
};

const withPolicies = (policies: CausePolicies) => async () => {
  await policies.apply();
  return () => policies.remove();
};

/** The space has no room for another pod when the app, which is there already, is started. */
const withoutRoom =
  ({ developer, space }: Scene, flags: string[]) =>
  async (app: string) => {
    await developer.ok('push', app, ...flags, '--no-start');
    await kubectl('create', 'quota', app, '-n', space, '--hard=pods=0');
    await untilQuotaHolds(space, app);
    return () => kubectl('delete', 'quota', app, '-n', space);
  };

function failingImages(scene: Scene): FailingApp[] {
  const registry = ringEnv('KF_CLUSTER_NODE_REGISTRY');
  return [
    { cause: 'image-not-found', flags: ['-o', `${registry}/kf/no-such-image:1`] },
    { cause: 'image-unauthorized', flags: ['-o', `${ringEnv('KF_CLUSTER_PRIVATE_REGISTRY')}/kf/sample:1`] },
    { cause: 'registry-unreachable', flags: ['-o', 'localhost:1/kf/none:1', '-m', '64M'] },
    { cause: 'registry-certificate', flags: ['-o', `${ringEnv('KF_CLUSTER_ADDRESS')}:443/kf/sample:1`] },
    { cause: 'wrong-architecture', flags: ['-o', foreignImage(), ...command('sleep 600')] },
    { cause: 'image-user', flags: ['-o', `${registry}/kf/root:1`] },
    { cause: 'wrong-port', flags: ['-o', `${registry}/kf/wrongport:1`, '-t', '10'], startMs: 10_000 },
    { cause: 'not-listening', flags: ['-o', `${registry}/kf/silent:1`, '-t', '10'], startMs: 10_000 },
    {
      cause: 'no-room',
      flags: ['-o', scene.sample(1), '-m', '900G'],
      provoke: withMemory(scene.space, '2Ti'),
    },
  ];
}

function failingCommands(sample: string): FailingApp[] {
  const app = ['-o', sample, '-m', '64M'];
  return [
    { cause: 'exit-code', flags: [...app, ...command('exit 3')] },
    { cause: 'signal', flags: [...app, ...command("sh -c 'kill -SEGV $$'; exit $?")] },
    { cause: 'oom', flags: [...app, '-c', node('const a = []; for (;;) a.push(Buffer.alloc(8e6, 1))'), '--no-route'] },
    { cause: 'disk', flags: [...app, '-k', '20M', ...command('head -c 90M /dev/zero > /tmp/full; sleep 600')] },
    { cause: 'command-not-found', flags: [...app, ...command('no-such-command')] },
    { cause: 'health-http', flags: [...app, '-t', '10', '-u', 'http', '--endpoint', '/nowhere'], startMs: 10_000 },
    { cause: 'health-port', flags: [...app, '-c', fullQueue, '-t', '10'], startMs: 10_000 },
  ];
}

async function failingBuilds({ folder, space }: Scene): Promise<FailingApp[]> {
  const greedy = await installingApp(folder, 'greedy', 'node -e "const a=[];for(;;)a.push(Buffer.alloc(5e7,1))"');
  return [
    { cause: 'no-buildpack', flags: ['-p', path.resolve('test/fixtures/apps/no-match')] },
    { cause: 'build-failed', flags: ['-p', path.resolve('test/fixtures/apps/broken-build')] },
    { cause: 'build-oom', flags: ['-p', greedy] },
    {
      cause: 'build-timeout',
      flags: ['-p', await installingApp(folder, 'late', 'sleep 60')],
      provoke: withPolicies(new CausePolicies(space).shortensBuilds(2)),
    },
  ];
}

/** What the operator of the space refuses, or adds. */
function failingPolicies(scene: Scene): FailingApp[] {
  const { space } = scene;
  const app = ['-o', scene.sample(1), ...command('sleep 600')];
  const size = ['-m', '66M'];
  return [
    {
      cause: 'admission',
      flags: [...app, ...size],
      provoke: withPolicies(new CausePolicies(space).refusesPods('66M', 'pods of that size are not wanted here')),
    },
    { cause: 'volume', flags: [...app, ...size], provoke: withPolicies(new CausePolicies(space).addsMissingVolume('66M', 'not-there')) },
    {
      cause: 'start-timeout',
      flags: ['-o', scene.sample(1), '-m', '67M', '-t', '5', '-c', 'sleep 600'],
      // Without these Events, the end of its container is the first that shows it.
      provoke: withPolicies(new CausePolicies(space).losesEvents('Unhealthy')),
    },
    { cause: 'quota', flags: app, provoke: withoutRoom(scene, app) },
  ];
}

export const failingApps = async (scene: Scene): Promise<FailingApp[]> => [
  ...failingCommands(scene.sample(1)),
  ...failingImages(scene),
  ...(await failingBuilds(scene)),
  ...failingPolicies(scene),
];

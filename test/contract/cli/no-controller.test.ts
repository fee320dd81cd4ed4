import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { statefulSetType } from '../../../src/lib/api/core.ts';
import { podType, type Pod } from '../../../src/lib/api/pod-kind.ts';
import { annotations, kinds, labels, places } from '../../../src/lib/api/group.ts';
import { sha224 } from '../../../src/lib/api/names.ts';
import { bundleForTests, Cli } from '../../support/cli.ts';
import { ServedCluster } from '../../support/served-cluster.ts';

const bundle = bundleForTests();
const ns = 'space-guid';
let cluster: ServedCluster;
let cli: Cli;

beforeEach(async () => {
  cluster = await (await ServedCluster.start()).installed();
  cli = new Cli(bundle.program, { KUBECONFIG: cluster.server.kubeconfig(), KF_ORG: 'example-org', KF_SPACE: 'example-space' });
});

afterEach(async () => {
  await cluster.stop();
  cli.remove();
});

afterAll(() => bundle.remove());

/** An app with two generations of its web process; no controller reconciles it. */
async function addApp(desiredState: 'STARTED' | 'STOPPED'): Promise<void> {
  const spec = {
    displayName: 'my-app',
    desiredState,
    lifecycle: { type: 'buildpack' as const, data: { stack: '' } },
    currentDropletRef: { name: 'd' },
  };
  const marks = { [labels.displayName]: sha224('my-app') };
  await cluster.add(kinds.app, {
    metadata: { name: 'app', namespace: ns, labels: marks, annotations: { [annotations.appRev]: '1' } },
    spec,
  });
  const healthCheck = { type: 'port' as const, data: { invocationTimeoutSeconds: 1, timeoutSeconds: 60 } };
  await cluster.add(kinds.process, {
    metadata: { name: 'web', namespace: ns, labels: { [labels.appGuid]: 'app' } },
    spec: { appRef: { name: 'app' }, processType: 'web', desiredInstances: 2, memoryMB: 256, diskQuotaMB: 1024, healthCheck },
  });
  const generations = [{ process: 'web', hash: 'new', state: 'Current' as const, instances: 2, ready: 2 }];
  await cluster.memory.mergePatch(
    kinds.process,
    ns,
    'web',
    { status: { rollout: { id: 'x', phase: 'Serving', generations } } },
    { subresource: 'status' },
  );
  for (const hash of ['old', 'new']) {
    const marks = { [labels.appGuid]: 'app', [labels.guid]: 'web', [labels.generation]: hash };
    const replicas = desiredState === 'STARTED' && hash === 'new' ? 2 : 0;
    await cluster.add(statefulSetType, {
      metadata: { name: `set-${hash}`, namespace: ns, labels: marks },
      spec: { replicas, selector: {}, template: { spec: { containers: [] } } },
    });
  }
}

/** Acts as the StatefulSet controller and the kubelet. */
function runPods(): void {
  cluster.memory.intercept = (verb, type) => {
    if (verb !== 'watch' || type.plural !== 'statefulsets') return;
    setTimeout(() => {
      for (const set of cluster.memory.all(statefulSetType)) {
        const replicas = set.spec?.replicas ?? 0;
        void cluster.memory.mergePatch(
          statefulSetType,
          ns,
          set.metadata.name ?? '',
          { status: { replicas, readyReplicas: replicas } },
          { subresource: 'status' },
        );
      }
    }, 20);
  };
}

/** The automatic return of a failed change to the version before: its status, and which set runs. @param failed more of the version that failed */
async function returnToOld(isRunning: boolean, failed: { served?: true } = {}): Promise<void> {
  const generations = [
    { process: 'web', hash: 'old', state: 'Old' as const, instances: 2, ready: 2, served: true },
    { process: 'web', hash: 'new', state: 'Failed' as const, instances: 0, ready: 0, ...failed },
  ];
  const status = { rollout: { id: 'x', phase: 'Failed' as const, generations } };
  await cluster.memory.mergePatch(kinds.process, ns, 'web', { status }, { subresource: 'status' });
  const made = { old: '2026-01-01T00:00:00Z', new: '2026-01-02T00:00:00Z' };
  for (const [hash, creationTimestamp] of Object.entries(made)) {
    const replicas = isRunning && hash === 'old' ? 2 : 0;
    await cluster.memory.mergePatch(statefulSetType, ns, `set-${hash}`, { metadata: { creationTimestamp }, spec: { replicas } });
  }
}

/** What happened to pods that start again when they are deleted. */
interface PodsSeen {
  before: (string | undefined)[];
  started: () => number;
  /** Each pod that was deleted, with the number of pods that were ready then. */
  ended: string[];
}

const isReady = ({ status }: Pod): boolean => status?.conditions?.[0]?.status === 'True';

/** Ready pods of a set; each one that is deleted starts again after a while. */
async function addPods(set: string, count = 2): Promise<PodsSeen> {
  const status = { replicas: count, readyReplicas: count };
  await cluster.memory.mergePatch(statefulSetType, ns, set, { spec: { replicas: count } });
  await cluster.memory.mergePatch(statefulSetType, ns, set, { status }, { subresource: 'status' });
  const pod = (name: string) => ({ metadata: { name, namespace: ns, labels: { [labels.appGuid]: 'app', [labels.guid]: 'web' } } });
  const ready: Pick<Pod, 'status'> = { status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] } };
  for (let index = 0; index < count; index += 1) await cluster.add(podType, { ...pod(`${set}-${index}`), ...ready });
  const before = cluster.memory.all(podType).map(({ metadata }) => metadata.uid);
  let started = 0;
  const ended: string[] = [];
  // A pod may start after its test has ended, when the next one has another cluster.
  const own = cluster;
  const startAgain = async (name: string): Promise<void> => {
    await own.add(podType, pod(name));
    started += 1;
    await own.memory.mergePatch(podType, ns, name, ready, { subresource: 'status' });
  };
  cluster.memory.intercept = (verb, type, name) => {
    if (verb !== 'delete' || type.plural !== 'pods') return;
    ended.push(`${name} of ${String(cluster.memory.all(podType).filter(isReady).length)}`);
    setTimeout(() => void startAgain(name), 300 * Number(name.at(-1)) + 300);
  };
  return { before, started: () => started, ended };
}

const replicasOf = (name: string): number | undefined => cluster.memory.peek(statefulSetType, ns, name)?.spec?.replicas;

describe('with the controller down', () => {
  it('stop scales every StatefulSet to 0 and says that kf did so itself', async () => {
    await addApp('STARTED');
    const run = await cli.run(['stop', 'my-app']);
    expect(run.code).toBe(0);
    expect(run.stderr).toContain('The controller does not answer: the instances were stopped directly.');
    expect([replicasOf('set-new'), replicasOf('set-old')]).toEqual([0, 0]);
    expect(cluster.memory.peek(kinds.app, ns, 'app')?.spec.desiredState).toBe('STOPPED');
  });

  it('start scales the last version up again', async () => {
    await addApp('STOPPED');
    runPods();
    const run = await cli.run(['start', 'my-app', '--json']);
    expect(run.code).toBe(0);
    expect((JSON.parse(run.stdout) as { warnings: string[] }).warnings[0]).toContain('the last version was started directly.');
    expect([replicasOf('set-new'), replicasOf('set-old')]).toEqual([2, 0]);
  });

  it('start of an app that a controller had stopped says that no request reaches it yet', async () => {
    await addApp('STOPPED');
    runPods();
    const stopped = { status: { deployment: { id: 'x', phase: 'Stopped' as const } } };
    await cluster.memory.mergePatch(kinds.app, ns, 'app', stopped, { subresource: 'status' });
    const unrouted = "The routes of app 'my-app' lead to it only when the controller works again";
    const alone = await cli.run(['start', 'my-app']);
    expect([alone.code, alone.stderr]).toEqual([0, expect.not.stringContaining(unrouted)]);
    await cluster.add(kinds.route, {
      metadata: { name: 'route', namespace: ns },
      spec: { domainRef: { name: 'd' }, destinations: [{ guid: 'g', appRef: { name: 'app' }, processType: 'web' }] },
    });
    await cluster.memory.mergePatch(kinds.app, ns, 'app', { spec: { desiredState: 'STOPPED' } });
    const routed = await cli.run(['start', 'my-app']);
    expect([routed.code, routed.stderr]).toEqual([0, expect.stringContaining(unrouted)]);
  }, 60_000);

  it('start leaves the rest to a controller that comes back meanwhile and starts another set', async () => {
    await addApp('STOPPED');
    cluster.memory.intercept = (verb, type) => {
      if (verb !== 'patch' || type.plural !== 'statefulsets') return;
      const id = cluster.memory.peek(kinds.app, ns, 'app')?.metadata.annotations?.[annotations.deployId] ?? '';
      const tell = (phase: 'Starting' | 'Serving') =>
        cluster.memory.mergePatch(kinds.app, ns, 'app', { status: { deployment: { id, phase } } }, { subresource: 'status' });
      setTimeout(() => void tell('Starting'), 300);
      setTimeout(() => void tell('Serving'), 900);
    };
    const run = await cli.run(['start', 'my-app']);
    expect([run.code, run.stderr]).toEqual([0, expect.not.stringContaining('started directly')]);
  }, 60_000);

  it('scale changes the StatefulSet that serves', async () => {
    await addApp('STARTED');
    runPods();
    const run = await cli.run(['scale', 'my-app', '-i', '5']);
    expect(run).toMatchObject({ code: 0 });
    expect(run.stderr).toContain('the instances were scaled directly.');
    expect([replicasOf('set-new'), replicasOf('set-old')]).toEqual([5, 0]);
    expect(cluster.memory.peek(kinds.process, ns, 'web')?.spec.desiredInstances).toBe(5);
  });

  it('after a return to the version before, start and scale take that one', async () => {
    await addApp('STOPPED');
    await returnToOld(false);
    runPods();
    const replicas = () => ({ new: replicasOf('set-new'), old: replicasOf('set-old') });
    expect([(await cli.run(['start', 'my-app'])).code, replicas()]).toEqual([0, { new: 0, old: 2 }]);
    expect([(await cli.run(['scale', 'my-app', '-i', '3'])).code, replicas()]).toEqual([0, { new: 0, old: 3 }]);
  }, 60_000);

  it('after a return to the version before, restart takes that one, although the one that failed had served too', async () => {
    await addApp('STARTED');
    await returnToOld(true, { served: true });
    const pods = await addPods('set-old');
    expect((await cli.run(['restart', 'my-app'])).code).toBe(0);
    expect([replicasOf('set-new'), replicasOf('set-old'), pods.started()]).toEqual([0, 2, 2]);
  }, 60_000);

  it('restart deletes the pods of the app and waits for the new ones, whatever the status of the set still counts', async () => {
    await addApp('STARTED');
    const pods = await addPods('set-new');
    const run = await cli.run(['restart', 'my-app']);
    expect(run.code).toBe(0);
    expect(run.stderr).toContain('the instances were restarted directly, as the version that ran.');
    expect(pods.started()).toBe(2);
    expect(pods.ended).toEqual(['set-new-1 of 2', 'set-new-0 of 2']);
    expect(run.stderr).not.toContain('has one instance');
    expect(cluster.memory.all(podType).filter(({ metadata }) => pods.before.includes(metadata.uid))).toEqual([]);
  });

  it('restart of an only instance says first that the app does not answer meanwhile', async () => {
    await addApp('STARTED');
    const pods = await addPods('set-new', 1);
    const run = await cli.run(['restart', 'my-app']);
    expect(run).toMatchObject({ code: 0 });
    expect(pods.ended).toEqual(['set-new-0 of 1']);
    const said =
      "The controller does not answer, and app 'my-app' has one instance: it does not answer until that instance is ready again.";
    expect(run.stderr).toContain(said);
    expect(run.stderr.indexOf(said)).toBeLessThan(run.stderr.indexOf('Instances starting'));
  }, 60_000);

  it('restart ends no other instance after Ctrl-C, and says so', async () => {
    await addApp('STARTED');
    const pods = await addPods('set-new');
    const run = await cli.run(['restart', 'my-app'], { kill: { after: 'Instances starting', signal: 'SIGINT' } });
    expect(run).toMatchObject({ code: 130, signal: null });
    expect(run.stderr).toContain(
      "Interrupted.\n\nTIP:\n   The other instances of app 'my-app' run on, and what has changed waits for the controller:\n   kf app my-app\n",
    );
    expect(run.stderr).not.toContain('Run the same command again');
    expect(pods.ended).toEqual(['set-new-1 of 2']);
  }, 60_000);

  it('restart leaves the other instances to a controller that comes back meanwhile', async () => {
    await addApp('STARTED');
    const pods = await addPods('set-new');
    const { intercept } = cluster.memory;
    cluster.memory.intercept = (verb, type, name) => {
      void intercept(verb, type, name);
      if (verb !== 'delete' || type.plural !== 'pods') return;
      const id = cluster.memory.peek(kinds.app, ns, 'app')?.metadata.annotations?.[annotations.deployId] ?? '';
      const tell = (phase: 'Starting' | 'Serving') =>
        cluster.memory.mergePatch(kinds.app, ns, 'app', { status: { deployment: { id, phase } } }, { subresource: 'status' });
      void tell('Starting');
      setTimeout(() => void tell('Serving'), 1_500);
    };
    const run = await cli.run(['restart', 'my-app']);
    expect(run).toMatchObject({ code: 0 });
    expect(pods.ended).toEqual(['set-new-1 of 2']);
    expect(run.stderr).not.toContain('restarted directly');
  }, 60_000);

  it('app shows the existing pods, whatever the status says about instances', async () => {
    await addApp('STARTED');
    const instancesStatus = {
      '0': { state: 'RUNNING' as const, ready: true, pod: 'set-new-0' },
      '1': { state: 'RUNNING' as const, ready: true, pod: 'set-new-1' },
      '2': { state: 'RUNNING' as const, ready: true, pod: 'set-new-2' },
    };
    await cluster.memory.mergePatch(kinds.process, ns, 'web', { status: { instancesStatus } }, { subresource: 'status' });
    const marks = { [labels.appGuid]: 'app', [labels.guid]: 'web', [labels.podIndex]: '0' };
    await cluster.add(podType, { metadata: { name: 'set-new-0', namespace: ns, labels: marks } });
    const shown = await cli.run(['app', 'my-app', '--json']);
    const { processes } = (JSON.parse(shown.stdout) as { result: { processes: { running: number; instanceDetails: object[] }[] } }).result;
    expect(processes[0]?.running).toBe(1);
    expect(processes[0]?.instanceDetails).toMatchObject([
      { index: 0, state: 'running', ready: true },
      { index: 1, state: 'down' },
    ]);
  });

  /** The app's last change is `present`; its status is about that one, or about one before. The leader's last word is so many seconds old. */
  async function addDeployment(id: 'present' | 'before', phase: 'Starting' | 'Failed', silentSeconds: number): Promise<void> {
    await addApp('STARTED');
    await cluster.memory.mergePatch(kinds.app, ns, 'app', { metadata: { annotations: { [annotations.deployId]: 'present' } } });
    const deployment = { id, phase, since: '2026-01-01T00:00:00Z', message: 'It exited with code 1.' };
    await cluster.memory.mergePatch(kinds.app, ns, 'app', { status: { deployment } }, { subresource: 'status' });
    const renewed = new Date(Date.now() - silentSeconds * 1_000).toISOString();
    const record = { name: places.leaderRecord, namespace: places.systemNamespace, annotations: { [annotations.leaderRenewed]: renewed } };
    await cluster.add(kinds.runnerInfo, { metadata: record, spec: { runnerName: places.leaderRecord } });
  }
  const still = 'The controller does not answer: the deployment stands still until it runs again.';

  it('app says that the deployment stands still, and nothing of the one before', async () => {
    await addDeployment('before', 'Failed', 90);
    const shown = await cli.run(['app', 'my-app']);
    expect(shown).toMatchObject({ code: 0, stderr: '' });
    expect(shown.stdout).toMatch(
      new RegExp(`\n\nActive deployment with status DEPLOYING\nstrategy: +rolling\nmax-in-flight: +1\n\n${still}\n$`),
    );
    expect(shown.stdout).not.toMatch(/last deployment|It exited/);
    const { deployment } = (JSON.parse((await cli.run(['app', 'my-app', '--json'])).stdout) as { result: { deployment: object } }).result;
    expect(deployment).toEqual({
      id: 'present',
      phase: 'Accepted',
      status: 'DEPLOYING',
      strategy: 'rolling',
      maxInFlight: 1,
      standsStill: true,
    });
  });

  it('app says the same of a deployment that the controller had begun, and nothing while one leads', async () => {
    await addDeployment('present', 'Starting', 90);
    const shown = await cli.run(['app', 'my-app']);
    expect(shown.stdout).toMatch(new RegExp(`waiting for: +It exited with code 1\n\n${still}\n$`));
    const renewed = { [annotations.leaderRenewed]: new Date().toISOString() };
    const { leaderRecord, systemNamespace } = places;
    await cluster.memory.mergePatch(kinds.runnerInfo, systemNamespace, leaderRecord, { metadata: { annotations: renewed } });
    expect((await cli.run(['app', 'my-app'])).stdout).not.toContain(still);
  });

  it('app shows since when instances run that nobody has looked at', async () => {
    await addApp('STARTED');
    const told = { state: 'RUNNING' as const, ready: true, pod: 'set-new-0', timestamp: '2026-01-01T00:00:00Z' };
    await cluster.memory.mergePatch(kinds.process, ns, 'web', { status: { instancesStatus: { '0': told } } }, { subresource: 'status' });
    const marks = { [labels.appGuid]: 'app', [labels.guid]: 'web', [labels.podIndex]: '0' };
    const conditions = [{ type: 'Ready', status: 'True' as const, lastTransitionTime: '2026-01-02T00:00:09Z' }];
    await cluster.add(podType, { metadata: { name: 'set-new-0', namespace: ns, labels: marks }, status: { conditions } });
    expect((await cli.run(['app', 'my-app'])).stdout).toMatch(/^#0 +running +2026-01-02T00:00:09Z /m);
  });

  it('a push whose build no controller processes is accepted, and does not change the app', async () => {
    await addApp('STARTED');
    await cluster.memory.mergePatch(kinds.app, ns, 'app', { spec: { lifecycle: { type: 'docker' } } });
    const conditions = [
      { type: 'Claimed', status: 'True' as const, reason: 'Claimed', message: '', lastTransitionTime: '2026-01-01T00:00:00Z' },
    ];
    await cluster.memory.mergePatch(kinds.app, ns, 'app', { status: { conditions } }, { subresource: 'status' });
    const run = await cli.run(['push', 'my-app', '-o', 'example.com/image:2'], { env: { KF_EXIT_CODES: 'class' } });
    expect([run.code, run.stderr]).toEqual([
      12,
      expect.stringContaining("The build of app 'my-app' is asked for, but no controller has taken it up"),
    ]);
    expect(cluster.memory.peek(kinds.app, ns, 'app')?.spec.currentDropletRef?.name).toBe('d');
  }, 40_000);

  it('a start of an app that never ran is accepted and waits', async () => {
    await addApp('STOPPED');
    for (const set of cluster.memory.all(statefulSetType)) await cluster.memory.delete(statefulSetType, ns, set.metadata.name ?? '');
    const run = await cli.run(['start', 'my-app'], { env: { KF_EXIT_CODES: 'class' } });
    expect(run.code).toBe(12);
    expect(run.stderr).toContain("The change of app 'my-app' is accepted, but no controller has taken it up");
  });
});

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { secretType } from '../../../src/lib/api/core.ts';
import { podType } from '../../../src/lib/api/pod-kind.ts';
import { annotations, kinds } from '../../../src/lib/api/group.ts';
import { resource } from '../../../src/lib/api/object.ts';
import type { AppDetails } from '../../../src/lib/api/results.ts';
import type { CFApp, CFProcess, DeploymentStatus } from '../../../src/lib/api/types.generated.ts';
import { bundleForTests, Cli } from '../../support/cli.ts';
import { ServedCluster } from '../../support/served-cluster.ts';

const bundle = bundleForTests();
const place = { KF_ORG: 'example-org', KF_SPACE: 'example-space' };
const ns = 'space-guid';
let cluster: ServedCluster;
let cli: Cli;

beforeEach(async () => {
  cluster = await (await ServedCluster.start()).installed();
  cli = new Cli(bundle.program, { KUBECONFIG: cluster.server.kubeconfig(), ...place });
});

afterEach(async () => {
  await cluster.stop();
  cli.remove();
});

beforeAll(() => undefined);
afterAll(() => bundle.remove());

async function addApp(name = 'my-app', desiredState: 'STARTED' | 'STOPPED' = 'STARTED'): Promise<CFApp> {
  const guid = `${name}-guid`;
  const app = await cluster.add(kinds.app, {
    metadata: { name: guid, namespace: ns, annotations: { [annotations.appRev]: '3' } },
    spec: {
      displayName: name,
      desiredState,
      lifecycle: { type: 'buildpack', data: { stack: '' } },
      currentDropletRef: { name: 'droplet' },
      envSecretName: `${guid}-env`,
    },
  });
  await cluster.add(secretType, { metadata: { name: `${guid}-env`, namespace: ns }, data: {} });
  const spec = { appRef: { name: guid }, processType: 'web', desiredInstances: 1, memoryMB: 256, diskQuotaMB: 1024 };
  const healthCheck = { type: 'port' as const, data: { invocationTimeoutSeconds: 1, timeoutSeconds: 60 } };
  const labels = { 'korifi.cloudfoundry.org/app-guid': guid };
  await cluster.add(kinds.process, { metadata: { name: `${guid}-web`, namespace: ns, labels }, spec: { ...spec, healthCheck } });
  return app;
}

const appNow = (name = 'my-app'): CFApp | undefined => cluster.memory.peek(kinds.app, ns, `${name}-guid`);

/** Acts as the controller: answers every new deploy-id with these statuses, one after the other. */
function judge(...statuses: Omit<DeploymentStatus, 'id'>[]): void {
  let seen: string | undefined;
  cluster.memory.intercept = (verb) => {
    if (verb !== 'watch') return;
    const id = appNow()?.metadata.annotations?.[annotations.deployId];
    if (id === undefined || id === seen) return;
    seen = id;
    setTimeout(() => {
      void (async () => {
        for (const status of statuses) {
          await cluster.memory.mergePatch(
            kinds.app,
            ns,
            'my-app-guid',
            { status: { deployment: { ...status, id } } },
            { subresource: 'status' },
          );
        }
      })();
    }, 20);
  };
}

async function setInstances(process: string, states: ('RUNNING' | 'STARTING' | 'CRASHED')[]): Promise<void> {
  const instancesStatus = Object.fromEntries(states.map((state, index) => [String(index), { state, timestamp: '2026-08-07T10:16:20Z' }]));
  await cluster.memory.mergePatch(kinds.process, ns, process, { status: { instancesStatus } }, { subresource: 'status' });
}

describe('start, stop and restart', () => {
  it('start waits for the rollout, says what it waits for on stderr and ends with the app', async () => {
    await addApp('my-app', 'STOPPED');
    judge({ phase: 'Starting', message: 'instance 0 to listen on port 8080' }, { phase: 'Serving' });
    const run = await cli.run(['start', 'my-app']);
    expect(run).toMatchObject({ code: 0 });
    expect(run.stderr).toBe('Waiting: instance 0 to listen on port 8080\n');
    expect(run.stdout).toMatch(
      /^Starting app my-app in org example-org \/ space example-space as alice\.\.\.\n\nWaiting for app to start\.\.\.\n\nname: +my-app\n/,
    );
    expect(appNow()?.spec.desiredState).toBe('STARTED');
  });

  it('start of a started app succeeds', async () => {
    await addApp();
    const run = await cli.run(['start', 'my-app']);
    expect(run).toMatchObject({ code: 0, stderr: '' });
    expect(run.stdout).toContain("App 'my-app' is already started.\nOK\n");
    expect(cluster.memory.writes.filter(({ verb }) => verb === 'patch')).toEqual([]);
  });

  it('a start that fails prints the cause, the last lines and the next step, and exits with 1', async () => {
    await addApp('my-app', 'STOPPED');
    judge({
      phase: 'Failed',
      reason: 'Crashed',
      message: 'Instance 0 of web exited with code 7.',
      pod: 'p-0',
      exitCode: 7,
      logTail: ['boom at line 3'],
    });
    const run = await cli.run(['start', 'my-app']);
    expect(run.code).toBe(1);
    expect(run.stderr).toContain('Start unsuccessful: Instance 0 of web exited with code 7.\n   boom at line 3\n');
    expect(run.stderr).toContain('kf logs my-app --recent');
    expect(run.stdout).toMatch(/FAILED\n$/);
  });

  it('a start that ran out of memory names the command that gives twice as much', async () => {
    await addApp('my-app', 'STOPPED');
    judge({ phase: 'Failed', reason: 'OutOfMemory', process: 'web', message: 'It used more memory than it may.' });
    expect((await cli.run(['start', 'my-app'])).stderr).toContain('\nTIP:\n   kf scale my-app -m 512M\n');
  });

  it('a start that a quota refuses names the quota of the org', async () => {
    await addApp('my-app', 'STOPPED');
    const org = { guid: 'q', generation: 1, name: 'tight', limits: { totalMemoryMB: 512 } };
    await cluster.add(resource('', 'v1', 'ResourceQuota', 'resourcequotas'), {
      metadata: { name: 'kf-limits', namespace: ns, annotations: { 'kf.cloudfoundry.org/quotas': JSON.stringify({ org }) } },
    });
    const refusal =
      'exceeded quota: kf-limits, requested: requests.memory=96Mi, used: requests.memory=512Mi, limited: requests.memory=512Mi';
    judge({ phase: 'Failed', reason: 'QuotaExceeded', message: `The quota of the space is used up: pods "x-0" is forbidden: ${refusal}` });
    const run = await cli.run(['start', 'my-app'], { env: { KF_EXIT_CODES: 'class' } });
    expect(run.code).toBe(10);
    expect(run.stderr).toContain(
      "\nTIP:\n   The org quota 'tight' allows 512M of memory; used: 512M, asked: 96M.\n   kf org-quota tight\n",
    );
  });

  it('a start whose newest version fails succeeds as soon as the last working version runs, and says so', async () => {
    await addApp('my-app', 'STOPPED');
    const failed = { process: 'web', hash: 'new', state: 'Failed' as const, instances: 0, ready: 0 };
    const served = { process: 'web', hash: 'old', state: 'Old' as const, instances: 1, ready: 0, served: true };
    const failure = { phase: 'Failed' as const, reason: 'Crashed', message: 'The app ended with exit code 7.', pod: 'p-0', exitCode: 7 };
    judge({ ...failure, generations: [failed, served] }, { ...failure, generations: [failed, { ...served, ready: 1 }] });
    const run = await cli.run(['start', 'my-app']);
    expect(run.code).toBe(0);
    expect(run.stderr).toContain("The newest version of app 'my-app' failed: The app ended with exit code 7.\n");
    expect(run.stderr).toContain("App 'my-app' runs as the version that served last.");
    expect(run.stdout).toMatch(/^name: +my-app$/m);
  });

  it('a failure has its details in --json, with the last lines of the container', async () => {
    await addApp('my-app', 'STOPPED');
    cluster.memory.logTexts.set(`${ns}/p-0`, 'from the container\n');
    judge({ phase: 'Failed', reason: 'Crashed', message: 'It crashed.', pod: 'p-0', container: 'application', exitCode: 7 });
    const run = await cli.run(['start', 'my-app', '--json']);
    expect(run.code).toBe(1);
    const { error } = JSON.parse(run.stdout) as { error: { code: string; details: Record<string, unknown> } };
    expect(error).toMatchObject({ code: 'start', details: { reason: 'Crashed', exitCode: 7, pod: 'p-0' } });
    expect(error.details['logTail']).toContain('from the container');
  });

  it('stop increases the revision, and a second one changes nothing', async () => {
    await addApp();
    judge({ phase: 'Stopped' });
    expect(await cli.run(['stop', 'my-app'])).toMatchObject({ code: 0, stderr: '' });
    expect(appNow()?.spec.desiredState).toBe('STOPPED');
    expect(appNow()?.metadata.annotations).toMatchObject({
      [annotations.appRev]: '4',
      [annotations.lastStopAppRev]: '4',
      [annotations.changedBy]: 'alice',
    });
    expect((await cli.run(['stop', 'my-app'])).stdout).toContain('App my-app is already stopped.\nOK\n');
    expect(appNow()?.metadata.annotations?.[annotations.appRev]).toBe('4');
  });

  it('restart --no-wait ends with the first new instance that serves, as in cf', async () => {
    await addApp();
    const web = { process: 'web', hash: 'new', state: 'Current' as const, instances: 1 };
    const starting = { phase: 'Starting' as const, process: 'web', reason: 'Instances', message: '0 of 3 instances are ready.' };
    judge({ ...starting, generations: [{ ...web, ready: 0 }] }, { ...starting, generations: [{ ...web, ready: 1, verified: true }] });
    const run = await cli.run(['restart', 'my-app', '--no-wait']);
    expect(run).toMatchObject({ code: 0, stderr: 'Waiting: 0 of 3 instances are ready\n' });
    expect(run.stdout).toContain('\nWaiting for app to start...\n');
    expect(run.stdout).toContain('\nFirst instance restarted correctly, restarting remaining in the background\n\nname: ');
  });

  it('restart --no-wait of a version that crashes fails, and says why', async () => {
    await addApp();
    judge({ phase: 'Failed', reason: 'Crashed', process: 'web', message: 'The app ended with exit code 7.' });
    const run = await cli.run(['restart', 'my-app', '--no-wait']);
    expect(run.code).toBe(1);
    expect(run.stderr).toContain('Start unsuccessful: The app ended with exit code 7.\n');
    expect(run.stdout).toMatch(/FAILED\n$/);
  });

  it('restart makes a new generation and never stops the app', async () => {
    await addApp();
    judge({ phase: 'Serving' });
    expect((await cli.run(['restart', 'my-app'])).code).toBe(0);
    expect(appNow()?.metadata.annotations?.[annotations.appRev]).toBe('4');
    expect(JSON.stringify(cluster.memory.writes)).not.toContain('STOPPED');
  });

  it('a change that is replaced by a later one ends and names it', async () => {
    await addApp();
    const running = cli.run(['restart', 'my-app']);
    await expect.poll(() => appNow()?.metadata.annotations?.[annotations.deployId]).toBeDefined();
    const later = { metadata: { annotations: { [annotations.deployId]: 'later', [annotations.changedBy]: 'bob' } } };
    await cluster.memory.mergePatch(kinds.app, ns, 'my-app-guid', later);
    const run = await running;
    expect(run.code).toBe(1);
    expect(run.stderr).toMatch(/A later change of app 'my-app' \(by bob\) has overtaken this one\.\n[^]*\n {3}kf app my-app\n/);
  });

  it.each(['SIGINT', 'SIGTERM'] as const)('%s ends a wait with 130', async (signal) => {
    await addApp();
    judge({ phase: 'Starting', message: 'something that never comes' });
    const run = await cli.run(['restart', 'my-app'], { kill: { after: 'never comes', signal } });
    expect(run).toMatchObject({ code: 130, signal: null });
    expect(run.stderr).toContain('Interrupted.');
  });

  it('start without a droplet is refused', async () => {
    await addApp('my-app', 'STOPPED');
    await cluster.memory.mergePatch(kinds.app, ns, 'my-app-guid', { spec: { currentDropletRef: null } });
    expect((await cli.run(['start', 'my-app'])).stderr).toContain("App 'my-app' has nothing to run yet");
  });
});

describe('scale', () => {
  it('changes only the instances of the process, with who did it, and waits until they run', async () => {
    await addApp();
    await setInstances('my-app-guid-web', ['RUNNING']);
    const running = cli.run(['scale', 'my-app', '-i', '3']);
    const processNow = (): CFProcess | undefined => cluster.memory.peek(kinds.process, ns, 'my-app-guid-web');
    await expect.poll(() => processNow()?.spec.desiredInstances).toBe(3);
    await setInstances('my-app-guid-web', ['RUNNING', 'STARTING', 'STARTING']);
    await setInstances('my-app-guid-web', ['RUNNING', 'RUNNING', 'RUNNING']);
    const run = await running;
    expect(run.code).toBe(0);
    expect(run.stdout).toContain('instances:      3/3');
    const patches = cluster.server.callsOf('PATCH .*');
    const patch = {
      metadata: { uid: expect.any(String) as string, annotations: { [annotations.changedBy]: 'alice' } },
      spec: { desiredInstances: 3 },
    };
    expect(patches.map((call) => [call.path.split('/').pop(), JSON.parse(call.body)])).toEqual([['my-app-guid-web', patch]]);
  });

  it('of a process that never ran ends when its first version keeps running', async () => {
    await addApp();
    await cluster.memory.mergePatch(kinds.app, ns, 'my-app-guid', { metadata: { annotations: { [annotations.deployId]: 'pushed' } } });
    const worker = 'my-app-guid-worker';
    const healthCheck = { type: 'process' as const, data: { invocationTimeoutSeconds: 1, timeoutSeconds: 60 } };
    const spec = {
      appRef: { name: 'my-app-guid' },
      processType: 'worker',
      desiredInstances: 0,
      memoryMB: 64,
      diskQuotaMB: 64,
      healthCheck,
    };
    const marks = { 'korifi.cloudfoundry.org/app-guid': 'my-app-guid' };
    await cluster.add(kinds.process, { metadata: { name: worker, namespace: ns, labels: marks }, spec });
    const awaited = {
      id: 'pushed',
      phase: 'Starting' as const,
      reason: 'Serving',
      message: 'The new version runs; waiting to see if it keeps running.',
      process: 'worker',
    };
    const tell = async (deployment: DeploymentStatus): Promise<void> => {
      const rollout = { status: { rollout: deployment } };
      await cluster.memory.mergePatch(kinds.process, ns, worker, rollout, { subresource: 'status' });
    };
    const tellApp = async (deployment: DeploymentStatus): Promise<void> => {
      await cluster.memory.mergePatch(kinds.app, ns, 'my-app-guid', { status: { deployment } }, { subresource: 'status' });
    };
    await setInstances(worker, ['RUNNING']);
    await tell(awaited);
    await tellApp(awaited);
    // The app's status follows that of its processes.
    cluster.memory.intercept = (verb, { plural }) => {
      if (verb !== 'watch') return;
      if (plural === kinds.process.plural) setTimeout(() => void tell({ ...awaited, phase: 'Serving' }), 5);
      if (plural === kinds.app.plural) setTimeout(() => void tellApp({ ...awaited, phase: 'Serving' }), 5);
    };
    const run = await cli.run(['scale', 'my-app', '--process', 'worker', '-i', '1']);
    expect(run.code).toBe(0);
    expect(run.stderr).toContain('Waiting: the new version runs; waiting to see if it keeps running\n');
    expect(run.stdout).toContain('\ntype:           worker\nsidecars:       \ninstances:      1/1\n');
    expect(run.stdout).not.toContain('Active deployment');
  });

  it('of memory asks first, and without a terminal names the flag', async () => {
    await addApp();
    const run = await cli.run(['scale', 'my-app', '-m', '512M']);
    expect(run.code).toBe(1);
    expect(run.stderr).toContain(
      'This will cause the app to restart. Are you sure you want to scale my-app? There is no terminal to ask on: add -f to say yes.',
    );
    expect(cluster.server.callsOf('PATCH .*')).toHaveLength(0);
  });

  it('of memory changes the process, then starts a rollout', async () => {
    await addApp();
    judge({ phase: 'Serving' });
    expect((await cli.run(['scale', 'my-app', '-m', '512M', '-f'])).code).toBe(0);
    expect(cluster.memory.peek(kinds.process, ns, 'my-app-guid-web')?.spec.memoryMB).toBe(512);
  });

  it('of disk changes the process, then rolls', async () => {
    await addApp();
    judge({ phase: 'Serving' });
    expect((await cli.run(['scale', 'my-app', '-k', '300M', '-f'])).code).toBe(0);
    expect(cluster.memory.peek(kinds.process, ns, 'my-app-guid-web')?.spec.diskQuotaMB).toBe(300);
  });

  it('of memory that fails leaves the instances unchanged, and kf app says so', async () => {
    await addApp();
    await setInstances('my-app-guid-web', ['RUNNING']);
    await cluster.memory.mergePatch(
      kinds.process,
      ns,
      'my-app-guid-web',
      { status: { instancesStatus: { '0': { pod: 'web-0' } } } },
      { subresource: 'status' },
    );
    const limits = { memory: '256Mi', 'ephemeral-storage': '1024Mi' };
    const marks = { 'korifi.cloudfoundry.org/app-guid': 'my-app-guid', 'korifi.cloudfoundry.org/guid': 'my-app-guid-web' };
    await cluster.add(podType, {
      metadata: { name: 'web-0', namespace: ns, labels: { ...marks, 'apps.kubernetes.io/pod-index': '0' } },
      spec: { containers: [{ name: 'application', resources: { limits } }] },
      status: { conditions: [{ type: 'Ready', status: 'True' }] },
    });
    judge({ phase: 'Failed', reason: 'Crashed', message: 'The app ended with exit code 7.' });
    expect((await cli.run(['scale', 'my-app', '-m', '96M', '-f'])).code).toBe(1);
    const { stdout } = await cli.run(['app', 'my-app']);
    expect(stdout).toContain('\nmemory usage:   96M\n');
    expect(stdout).toContain('- of 256M');
    expect(stdout).toContain('\n#0:   running with 256M of memory until it is restarted\n');
    const { result } = JSON.parse((await cli.run(['app', 'my-app', '--json'])).stdout) as { result: AppDetails };
    expect(result.processes[0]).toMatchObject({ memoryMB: 96, instanceDetails: [{ memoryMB: 256, diskMB: 1024 }] });
  });

  it('without flags shows the present size and writes nothing', async () => {
    await addApp();
    const run = await cli.run(['scale', 'my-app']);
    expect(run.stdout).toMatch(/^Showing current scale of app my-app in org/);
    expect(cluster.memory.writes.filter(({ verb }) => verb !== 'create')).toEqual([]);
  });

  it('of an unknown process names the existing ones', async () => {
    await addApp();
    expect((await cli.run(['scale', 'my-app', '-i', '1', '--process', 'wroker'])).stderr).toContain(
      "Processes of app 'my-app': web\n   kf app my-app\n",
    );
  });
});

describe('set-env', () => {
  it.each([
    ['A B', "'A B' cannot be the name of a variable: it takes letters, digits, '_', '-' and '.'"],
    ['', 'A variable needs a name.'],
    ['VCAP_X', "'VCAP_X' is set by the platform and cannot be set by an app."],
    ['grüße', "'grüße' cannot be the name of a variable"],
  ])('of %j is refused with a sentence before anything is sent', async (name, message) => {
    const run = await cli.run(['set-env', 'my-app', name, 'x']);
    expect(run).toMatchObject({ code: 1, stdout: 'FAILED\n' });
    expect(run.stderr).toContain(message);
    expect(cluster.server.calls).toHaveLength(0);
  });
});

describe('apps', () => {
  it('lists names, states, instances and URLs by name, and reads table rows instead of objects', async () => {
    await addApp('zebra');
    await addApp('ant', 'STOPPED');
    await cluster.memory.mergePatch(kinds.process, ns, 'zebra-guid-web', { status: { actualInstances: 1 } }, { subresource: 'status' });
    const spec = { appRef: { name: 'zebra-guid' }, processType: 'cron', desiredInstances: 2, memoryMB: 64, diskQuotaMB: 64 };
    const healthCheck = { type: 'process' as const, data: { invocationTimeoutSeconds: 1, timeoutSeconds: 60 } };
    await cluster.add(kinds.process, { metadata: { name: 'cron', namespace: ns }, spec: { ...spec, healthCheck } });
    const route = { metadata: { name: 'r', namespace: ns, annotations: { [annotations.appGuids]: 'other\nzebra-guid' } } };
    await cluster.add(kinds.route, { ...route, spec: { host: 'z', domainRef: { name: 'default-domain' } } });
    await cluster.memory.mergePatch(kinds.route, ns, 'r', { status: { uri: 'z.apps.localhost/x' } }, { subresource: 'status' });
    const run = await cli.run(['apps']);
    expect(run.stdout.split('\n').slice(2)).toEqual([
      'name    requested state   processes           routes',
      'ant     stopped           web:0/1             ',
      'zebra   started           web:1/1, cron:0/2   z.apps.localhost/x',
      '',
    ]);
    expect(cluster.server.callsOf('GET .*cf(apps|processes|routes)').every((call) => call.query.get('includeObject') === 'None')).toBe(
      true,
    );
  });

  it('of a cluster with older kinds says that setup updates them', async () => {
    cluster.server.on('GET .*/cfprocesses', (call) =>
      call.json({ kind: 'Table', metadata: {}, columnDefinitions: [{ name: 'Name', type: 'string', priority: 0 }], rows: [] }),
    );
    const run = await cli.run(['apps']);
    expect(run).toMatchObject({ code: 1 });
    expect(run.stderr).toContain("has no column 'AppGUID': its kinds are older than this kf.\n\nTIP:\n   kf setup");
  });
});

describe('environment', () => {
  it('is set, shown and unset', async () => {
    await addApp();
    expect((await cli.run(['set-env', 'my-app', 'OPTS', '-Xss512k'])).stdout).toMatch(/OK\n\nTIP: Use 'kf restage my-app' to ensure/);
    expect((await cli.run(['env', 'my-app'])).stdout).toContain('User-Provided:\nOPTS: -Xss512k\n');
    expect((await cli.run(['unset-env', 'my-app', 'OPTS'])).code).toBe(0);
    expect(await cli.run(['unset-env', 'my-app', 'OPTS'])).toMatchObject({ code: 0, stderr: 'Env variable OPTS was not set.\n' });
  });

  it('whose Secret is gone is shown as missing, not as empty', async () => {
    await addApp();
    await cluster.memory.delete(secretType, ns, 'my-app-guid-env');
    const { stdout } = await cli.run(['env', 'my-app']);
    expect(stdout).toContain("User-provided env variables are missing: the Secret 'my-app-guid-env' is gone.");
    expect(stdout).not.toContain('No user-provided env variables have been set');
  });

  it.each(['VCAP_X', 'VMC_X', 'PORT'])('refuses the platform name %s', async (name) => {
    await addApp();
    expect(await cli.run(['set-env', 'my-app', name, '1'])).toMatchObject({ code: 1, stdout: expect.stringContaining('FAILED') as string });
  });
});

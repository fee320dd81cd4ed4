import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { httpRouteType, revisionRule } from '../../../src/lib/api/gateway.ts';
import { annotations, kinds } from '../../../src/lib/api/group.ts';
import type { CFApp } from '../../../src/lib/api/types.generated.ts';
import { KubeError } from '../../../src/lib/kube/errors.ts';
import { bundleForTests, Cli } from '../../support/cli.ts';
import { ServedCluster } from '../../support/served-cluster.ts';
import { until } from '../../support/until.ts';

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

const appNow = (): CFApp | undefined => cluster.memory.peek(kinds.app, ns, 'my-app-guid');

async function addApp(desiredState: 'STARTED' | 'STOPPED' = 'STARTED'): Promise<void> {
  const spec = { displayName: 'my-app', desiredState, lifecycle: { type: 'buildpack' as const, data: { stack: '' } } };
  await cluster.add(kinds.app, { metadata: { name: 'my-app-guid', namespace: ns }, spec });
}

/** Acts as the controller: takes up each stop. */
function takeUpStops(): void {
  const { memory } = cluster;
  let seen: string | undefined;
  memory.intercept = (verb) => {
    const id = appNow()?.metadata.annotations?.[annotations.deployId];
    if (verb !== 'watch' || id === undefined || id === seen) return;
    seen = id;
    const status = { deployment: { id, phase: 'Stopped' } };
    setTimeout(() => void memory.mergePatch(kinds.app, ns, 'my-app-guid', { status }, { subresource: 'status' }), 20);
  };
}

describe('delete', () => {
  const destination = (name: string) => ({ guid: `d-${name}`, appRef: { name }, processType: 'web' });
  const addRoute = (host = 'own', apps = ['my-app-guid']) => {
    const spec = { host, domainRef: { name: 'default-domain' }, destinations: apps.map(destination) };
    return cluster.add(kinds.route, { metadata: { name: 'r', namespace: ns }, spec });
  };

  describe('of an app with a route', () => {
    const revision = 'r2';
    /** Says in the name of the controller which form of the route the gateway has. */
    const report = (loaded: boolean) => {
      const message = loaded ? `The gateway has loaded revision ${revision}.` : `It should have revision ${revision}.`;
      const condition = { type: 'Programmed', status: loaded ? 'True' : 'False', reason: loaded ? 'Loaded' : 'NotLoaded', message };
      const conditions = [{ ...condition, lastTransitionTime: '2026-01-01T00:00:00Z' }];
      return cluster.memory.mergePatch(kinds.route, ns, 'r', { status: { conditions } }, { subresource: 'status' });
    };
    const addLoadedRoute = async () => {
      await addRoute();
      await cluster.add(httpRouteType, { metadata: { name: 'r', namespace: ns }, spec: { rules: [revisionRule(revision, [])] } });
    };

    /** The command has looked at the route, not found what it waits for, and looked again. */
    const untilLookedTwice = async () => {
      const looks = () => cluster.server.callsOf('^GET .*/httproutes/r$').length;
      const before = looks();
      await until('two looks at the route', () => Promise.resolve(looks() >= before + 2));
    };

    it('stops it, and deletes it when the gateway sends it no more requests', async () => {
      await addApp();
      await addLoadedRoute();
      await report(false);
      takeUpStops();
      const running = cli.run(['delete', 'my-app', '-f']);
      await until('the app to be stopped', () => Promise.resolve(appNow()?.spec.desiredState === 'STOPPED'));
      await untilLookedTwice();
      expect(appNow()).toBeDefined();
      await report(true);
      const run = await running;
      expect([run.code, run.stderr]).toEqual([0, 'Waiting for the gateway to send no more requests\n']);
      expect(appNow()).toBeUndefined();
    });

    it('waits for the gateway also if an interrupted deletion has stopped it', async () => {
      await addApp();
      await addLoadedRoute();
      await report(false);
      takeUpStops();
      const kill = { after: 'Waiting for the gateway', signal: 'SIGINT' } as const;
      expect((await cli.run(['delete', 'my-app', '-f'], { kill })).code).toBe(130);
      expect(appNow()?.spec.desiredState).toBe('STOPPED');
      const running = cli.run(['delete', 'my-app', '-f']);
      await untilLookedTwice();
      expect(appNow()).toBeDefined();
      await report(true);
      expect((await running).code).toBe(0);
      expect(appNow()).toBeUndefined();
    });
  });

  it('says OK also if there is nothing to delete', async () => {
    const run = await cli.run(['delete', 'nothing', '-f']);
    expect(run).toMatchObject({ code: 0, stderr: "App 'nothing' does not exist.\n" });
    expect(run.stdout).toBe('Deleting app nothing in org example-org / space example-space as alice...\nOK\n\n');
  });

  it('-r refuses a route that another app uses, and deletes nothing', async () => {
    await addApp('STOPPED');
    await addRoute('shared', ['my-app-guid', 'other-guid']);
    const run = await cli.run(['delete', '-f', '-r', 'my-app']);
    expect(run.code).toBe(1);
    expect(run.stderr).toContain("App 'my-app' was not deleted because route 'shared' is mapped to more than one app.");
    expect(appNow()).toBeDefined();
  });

  it('-r deletes the routes of the app too', async () => {
    await addApp('STOPPED');
    await addRoute();
    expect((await cli.run(['delete', 'my-app', '-fr'])).code).toBe(0);
    expect([appNow(), cluster.memory.peek(kinds.route, ns, 'r')]).toEqual([undefined, undefined]);
  });

  it('-r that could not delete a route deletes both when it is run again', async () => {
    await addApp('STOPPED');
    await addRoute();
    const refusal = new KubeError('forbidden', 'not now', { status: 403, reason: 'Forbidden' });
    let refusals = 0;
    cluster.memory.intercept = (verb, type) => {
      if (verb === 'delete' && type.kind === 'CFRoute' && refusals++ === 0) throw refusal;
    };
    expect((await cli.run(['delete', 'my-app', '-fr'])).code).toBe(1);
    expect((await cli.run(['delete', 'my-app', '-fr'])).code).toBe(0);
    expect([appNow(), cluster.memory.peek(kinds.route, ns, 'r')]).toEqual([undefined, undefined]);
  });

  it('-r keeps a route that is mapped to another app while the command runs', async () => {
    await addApp('STOPPED');
    await addRoute();
    let deletions = 0;
    cluster.memory.intercept = async (verb, type) => {
      if (verb !== 'delete' || type.kind !== 'CFRoute' || deletions++ > 0) return;
      await cluster.memory.mergePatch(kinds.route, ns, 'r', { spec: { destinations: ['my-app-guid', 'other-guid'].map(destination) } });
    };
    const run = await cli.run(['delete', 'my-app', '-fr']);
    expect(run.stderr).toContain("App 'my-app' was not deleted because route 'own' is mapped to more than one app.");
    expect(appNow()).toBeDefined();
    expect(cluster.memory.peek(kinds.route, ns, 'r')?.spec.destinations).toHaveLength(2);
  });
});

describe('the question of delete, without a terminal', () => {
  const asks = 'Really delete the app my-app? [yN]: ';
  const deleting = 'Deleting app my-app in org example-org / space example-space as alice...\nOK\n\n';

  it.each([
    ['echo y', 'echo y | "$@"'],
    ['yes', 'yes | "$@"'],
    ['a file', '"$@" <<< y'],
  ])('is answered by %s', async (_, script) => {
    await addApp();
    expect(await cli.run(['delete', 'my-app'], { script })).toMatchObject({ code: 0, stdout: `${asks}y\n${deleting}` });
    expect(appNow()).toBeUndefined();
  });

  it('is answered with no by an empty line', async () => {
    await addApp();
    const declined = `${asks}\nApp 'my-app' has not been deleted.\n`;
    expect(await cli.run(['delete', 'my-app'], { stdin: '\ny\n' })).toMatchObject({ code: 0, stdout: declined });
    expect(appNow()).toBeDefined();
  });

  it.each(['"$@" </dev/null', '"$@" <&-'])('fails at once with %s, and names the flag', async (script) => {
    await addApp();
    const stderr = 'Really delete the app my-app? There is no terminal to ask on: add -f to say yes.\n';
    expect(await cli.run(['delete', 'my-app'], { script })).toMatchObject({ code: 1, stdout: 'FAILED\n', stderr });
    expect(appNow()).toBeDefined();
  });

  it('takes one line of the script that runs it, and fails if that is no answer', async () => {
    await addApp();
    const script = `printf '%s; echo code $?\\necho taken\\necho goes on\\n' "$*" | bash -s`;
    const run = await cli.run(['delete', 'my-app'], { script });
    expect(run.stdout).toBe(`${asks}\nFAILED\ncode 1\ngoes on\n`);
    expect(run.stderr).toContain('The line on stdin is no answer (not y, n, yes, or no): add -f to say yes.');
    expect(appNow()).toBeDefined();
  });

  it('is on stderr with --json', async () => {
    await addApp();
    const run = await cli.run(['delete', 'my-app', '--json'], { stdin: 'y\n' });
    expect([run.code, run.stderr]).toEqual([0, `${asks}y\n`]);
    expect(JSON.parse(run.stdout)).toMatchObject({ status: 0, result: { name: 'my-app', deleted: true } });
  });

  it('ends with 130 on Ctrl-C, also if the pipe stays open', async () => {
    await addApp();
    const script = 'mkfifo pipe; exec "$@" <> pipe';
    const run = await cli.run(['delete', 'my-app'], { script, kill: { after: '[yN]: ', signal: 'SIGINT' } });
    expect(run).toMatchObject({ code: 130, stdout: `${asks}\nFAILED\n`, stderr: 'Interrupted.\n' });
    expect(appNow()).toBeDefined();
  });
});

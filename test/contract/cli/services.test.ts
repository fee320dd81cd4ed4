import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createLogger } from '../../../src/controller/runtime/log.ts';
import { Manager } from '../../../src/controller/runtime/manager.ts';
import { serviceBindingReconciler } from '../../../src/controller/services/binding.ts';
import { serviceInstanceReconciler } from '../../../src/controller/services/instance.ts';
import { sources } from '../../../src/controller/sources.ts';
import { secretType } from '../../../src/lib/api/core.ts';
import { kinds, labels } from '../../../src/lib/api/group.ts';
import { sha224 } from '../../../src/lib/api/names.ts';
import { bundleForTests, Cli } from '../../support/cli.ts';
import { ServedCluster } from '../../support/served-cluster.ts';
import { patienceMs } from '../../support/until.ts';

const bundle = bundleForTests();
const ns = 'space-guid';
const ready = {
  type: 'Ready',
  status: 'True' as const,
  reason: 'x',
  message: '',
  lastTransitionTime: '2026-01-01T00:00:00Z',
  observedGeneration: 1,
};
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

async function addApp(): Promise<void> {
  await cluster.add(kinds.app, {
    metadata: { name: 'my-app-guid', namespace: ns },
    spec: { displayName: 'my-app', desiredState: 'STOPPED', lifecycle: { type: 'buildpack', data: { stack: '' } } },
  });
}

describe('bind-service', () => {
  const setStatus = (name: string, status: object): Promise<unknown> =>
    cluster.memory.mergePatch(kinds.serviceBinding, ns, name, { status }, { subresource: 'status' });
  async function addService(name: string): Promise<void> {
    const spec = { displayName: name, secretName: `${name}-secret`, type: 'user-provided' as const, planGuid: '' };
    await cluster.add(kinds.serviceInstance, { metadata: { name: `${name}-guid`, namespace: ns }, spec });
  }

  it('refuses a second binding with one name before anything is written, and names the service that has it', async () => {
    await addApp();
    for (const name of ['db', 'other']) await addService(name);
    const labels = { 'korifi.cloudfoundry.org/app-guid': 'my-app-guid' };
    const spec = { type: 'app' as const, appRef: { name: 'my-app-guid' }, service: { name: 'db-guid' }, parameters: { name: '' } };
    await cluster.add(kinds.serviceBinding, { metadata: { name: 'b-1', namespace: ns, labels }, spec });
    await setStatus('b-1', { conditions: [ready] });
    const run = await cli.run(['bind-service', 'my-app', 'other', '--binding-name', 'db']);
    expect(run).toMatchObject({ code: 1, stdout: expect.stringContaining('FAILED') as string });
    expect(run.stderr).toContain("App 'my-app' already has a binding named 'db', to service instance 'db'.");
    expect(run.stderr).toContain('bind-service my-app SERVICE_INSTANCE --binding-name OTHER_NAME');
    expect(cluster.memory.all(kinds.serviceBinding)).toHaveLength(1);
    expect((await cli.run(['bind-service', 'my-app', 'db'])).stdout).toContain('App my-app is already bound to service instance db.');
  });

  describe('when a binding is there that an earlier command made', () => {
    const labels = { 'korifi.cloudfoundry.org/app-guid': 'my-app-guid' };
    const spec = { type: 'app' as const, appRef: { name: 'my-app-guid' }, service: { name: 'db-guid' }, parameters: { name: '' } };
    const fresh = (): string[] =>
      cluster.memory.all(kinds.serviceBinding).flatMap(({ metadata: { name } }) => (name === 'b-1' ? [] : [name]));

    beforeEach(async () => {
      await addApp();
      await addService('db');
    });

    it('and that is not ready, it waits for it', async () => {
      await cluster.add(kinds.serviceBinding, { metadata: { name: 'b-1', namespace: ns, labels }, spec });
      const running = cli.run(['bind-service', 'my-app', 'db']);
      const isWatched = (): boolean => cluster.server.callsOf('GET .*/cfservicebindings').some(({ query }) => query.has('watch'));
      await vi.waitFor(() => expect(isWatched()).toBe(true), patienceMs);
      await setStatus('b-1', { conditions: [ready] });
      expect(await running).toMatchObject({
        code: 0,
        stdout: expect.stringContaining('is already bound to service instance db') as string,
      });
      expect(fresh()).toEqual([]);
    });

    it('and whose name was refused, it makes another one', async () => {
      const claimed = { ...ready, type: 'Claimed', status: 'False' as const };
      await cluster.add(kinds.serviceBinding, { metadata: { name: 'b-1', namespace: ns, labels }, spec });
      await setStatus('b-1', { conditions: [claimed] });
      const running = cli.run(['bind-service', 'my-app', 'db']);
      await vi.waitFor(() => expect(fresh()).toHaveLength(1), patienceMs);
      await setStatus(fresh()[0] ?? '', { conditions: [ready] });
      const run = await running;
      expect(run).toMatchObject({ code: 0, stdout: expect.stringContaining('OK') as string });
      expect(run.stdout).not.toContain('already bound');
    });
  });

  it('leaves no binding to a service instance that was deleted meanwhile', { timeout: 90_000 }, async () => {
    await addApp();
    await addService('db');
    const running = cli.run(['bind-service', 'my-app', 'db']);
    await vi.waitFor(() => expect(cluster.memory.all(kinds.serviceBinding)).toHaveLength(1), patienceMs);
    await cluster.memory.delete(kinds.serviceInstance, ns, 'db-guid');
    expect(await running).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("Service instance 'db' was deleted meanwhile.\n\nTIP:\n   kf services\n") as string,
    });
    expect(cluster.memory.all(kinds.serviceBinding)).toEqual([]);
  });
});

const place = 'in org example-org / space example-space as alice...';
const instance = (name: string) => cluster.memory.all(kinds.serviceInstance).find(({ spec }) => spec.displayName === name);
const decoded = (text = ''): unknown => JSON.parse(Buffer.from(text, 'base64').toString('utf8'));
const credentials = (name: string): unknown =>
  decoded(cluster.memory.peek(secretType, ns, instance(name)?.spec.secretName ?? '')?.data?.['credentials']);
const ok = async (...args: string[]): Promise<string> => {
  const run = await cli.run(args);
  expect(run.code, run.stderr).toBe(0);
  return run.stdout;
};

describe('create-user-provided-service', () => {
  const cups = (password: string): Promise<string> => ok('create-user-provided-service', 'db', '-p', JSON.stringify({ password }));

  it('changes nothing when there is an instance of that name with credentials', async () => {
    expect(await cups('first')).not.toContain('already exists');
    expect(await cups('second')).toContain('Service instance db already exists');
    expect(credentials('db')).toEqual({ password: 'first' });
  });

  it.each([
    ['loses its name to one made at the same moment deletes its own', 'False', 'already exists', { password: 'theirs' }],
    ['gets its name before one made at the same moment keeps it', 'True', 'OK', { password: 'mine' }],
  ] as const)('that %s', async (_, status, told, kept) => {
    const { memory } = cluster;
    const data = { credentials: Buffer.from('{"password":"theirs"}').toString('base64') };
    const theirs = { displayName: 'db', secretName: 'their-secret', type: 'user-provided' as const, planGuid: '' };
    const judge = (name: string): void => {
      const conditions = [{ ...ready, type: 'Claimed', status }];
      void memory.mergePatch(kinds.serviceInstance, ns, name, { status: { conditions } }, { subresource: 'status' });
    };
    memory.intercept = async (verb, type, name) => {
      if (verb !== 'create' || type.plural !== kinds.serviceInstance.plural || name === 'theirs') return;
      await cluster.add(secretType, { metadata: { name: 'their-secret', namespace: ns }, data });
      await cluster.add(kinds.serviceInstance, {
        metadata: { name: 'theirs', namespace: ns, labels: { [labels.displayName]: sha224('db') } },
        spec: theirs,
      });
      setTimeout(() => judge(name), 50);
    };
    expect(await cups('mine')).toContain(told);
    const own = memory.all(kinds.serviceInstance).filter(({ metadata }) => metadata.name !== 'theirs');
    expect(own).toHaveLength(status === 'True' ? 1 : 0);
    const secret = own[0]?.spec.secretName ?? 'their-secret';
    expect(decoded(memory.peek(secretType, ns, secret)?.data?.['credentials'])).toEqual(kept);
  });

  it('ends well when another one of that name writes the Secret of its instance', async () => {
    const { memory } = cluster;
    const { intercept } = memory;
    memory.intercept = async (verb, type, name) => {
      if (verb !== 'create' || type.plural !== secretType.plural) return;
      memory.intercept = intercept;
      await cluster.add(secretType, { metadata: { name, namespace: ns }, data: { credentials: 'e30=' } });
    };
    expect(await cups('mine')).not.toContain('already exists');
    expect(credentials('db')).toEqual({ password: 'mine' });
  });
});

describe('one service, with the controller that claims names and fills bindings', () => {
  let stopController: () => Promise<void>;

  beforeEach(async () => {
    const aborter = new AbortController();
    const running = new Manager({
      cluster: cluster.memory,
      sources: sources('cf'),
      reconcilers: [serviceInstanceReconciler, serviceBindingReconciler],
      leader: { ns: 'kf-system', name: 'kf-controller', identity: 'one', followMs: 20 },
      rootNamespace: 'cf',
      log: createLogger('error', () => undefined),
    }).run(aborter.signal);
    stopController = async () => {
      aborter.abort();
      await running;
    };
    await addApp();
    await ok('cups', 'db', '-p', '{"uri":"postgres://one"}', '-t', 'sql, big');
    // A change before this would count as a part of the creation.
    await vi.waitFor(() => expect(instance('db')?.status?.lastOperation).toBeDefined(), patienceMs);
  });
  afterEach(() => stopController());

  /** Binds the app, as a command does; the app's status never lists the binding, because no reconciler of apps runs. */
  async function bind(displayName?: string): Promise<void> {
    const labels = {
      'korifi.cloudfoundry.org/app-guid': 'my-app-guid',
      'korifi.cloudfoundry.org/service-instance-guid': instance('db')?.metadata.name ?? '',
    };
    const service = { name: instance('db')?.metadata.name ?? '', namespace: ns };
    const spec = { type: 'app' as const, appRef: { name: 'my-app-guid' }, service, parameters: { name: '' } };
    const named = displayName === undefined ? spec : { ...spec, displayName };
    await cluster.add(kinds.serviceBinding, { metadata: { name: 'binding', namespace: ns, labels }, spec: named });
    await vi.waitFor(() => expect(cluster.memory.peek(secretType, ns, 'binding')).toBeDefined(), patienceMs);
  }

  it('shows properties, last operation and bound apps', async () => {
    const { name: guid = '', creationTimestamp: time = '' } = instance('db')?.metadata ?? {};
    const shown = (...bound: string[]): string =>
      [
        `Showing info of service db ${place}`,
        '',
        'name:                db',
        `guid:                ${guid}`,
        'type:                user-provided',
        'tags:                sql, big',
        'route service url:   ',
        'syslog drain url:    ',
        '',
        'Showing status of last operation:',
        '   status:    create succeeded',
        '   message:   ',
        `   started:   ${time}`,
        `   updated:   ${time}`,
        '',
        'Showing bound apps:',
        ...bound.map((line) => `   ${line}`),
        '',
        '',
      ].join('\n');
    expect(await ok('service', 'db')).toBe(shown('There are no bound apps for this service instance.'));
    await bind('main');
    expect(await ok('service', 'db')).toBe(
      shown('name     binding name   status             message', 'my-app   main           create succeeded   '),
    );
    expect(JSON.parse(await ok('service', 'db', '--json'))).toMatchObject({
      result: { name: 'db', guid, tags: ['sql', 'big'], boundApps: [{ name: 'my-app', bindingName: 'main', status: 'create succeeded' }] },
    });
  });

  it('service --guid prints the GUID alone', async () => {
    expect(await ok('service', 'db', '--guid')).toBe(`${instance('db')?.metadata.name ?? ''}\n`);
  });

  it('replaces the parts that are given, and the bindings follow', async () => {
    await bind();
    const out = await ok('uups', 'db', '-p', '{"host":"two","port":5}');
    expect(out).toBe(
      [
        `Updating user provided service db ${place}`,
        'OK',
        '',
        "TIP: Use 'kf restage' for any bound apps to ensure your env variable changes take effect",
        '',
      ].join('\n'),
    );
    expect([credentials('db'), instance('db')?.spec.tags]).toEqual([{ host: 'two', port: 5 }, ['sql', 'big']]);
    const bound = cluster.memory.peek(secretType, ns, 'binding')?.data ?? {};
    expect(Buffer.from(bound['host'] ?? '', 'base64').toString()).toBe('two');
    expect(bound['uri']).toBeUndefined();
    await ok('update-user-provided-service', 'db', '-t', 'new');
    expect([credentials('db'), instance('db')?.spec.tags]).toEqual([{ host: 'two', port: 5 }, ['new']]);
    expect(instance('db')?.metadata.annotations).toMatchObject({ 'kf.cloudfoundry.org/changed-by': 'alice' });
    await vi.waitFor(async () => expect(await ok('service', 'db')).toContain('status:    update succeeded'), patienceMs);
    await ok('uups', 'db', '-t', '');
    expect(instance('db')?.spec.tags).toEqual([]);
  });

  it('keeps URLs with a warning, and removes what is given empty', async () => {
    const run = await cli.run(['uups', 'db', '-l', 'syslog://logs.example.com', '-r', 'https://waf.example.com']);
    expect([run.code, instance('db')?.spec.syslogDrainUrl]).toEqual([0, 'syslog://logs.example.com']);
    expect(run.stderr).toContain("Nothing is sent to the syslog drain of 'db': kf does not support syslog drains yet.\n");
    expect(run.stderr).toContain("No request goes through the route service of 'db': kf does not support route services yet.\n");
    expect(await ok('service', 'db')).toContain('route service url:   https://waf.example.com\nsyslog drain url:    syslog://logs');
    expect(await cli.run(['uups', 'db', '-l', '', '-r', ''])).toMatchObject({ code: 0 });
    expect(instance('db')?.spec).not.toHaveProperty('syslogDrainUrl');
    expect(instance('db')?.spec).not.toHaveProperty('routeServiceUrl');
    expect(credentials('db')).toEqual({ uri: 'postgres://one' });
  });

  it('takes credentials from a file, and changes nothing without a flag', async () => {
    const file = path.join(cli.home, 'credentials.json');
    writeFileSync(file, '{"user":"bob"}');
    await ok('uups', 'db', '-p', file);
    expect(credentials('db')).toEqual({ user: 'bob' });
    const version = instance('db')?.metadata.resourceVersion;
    expect(await ok('uups', 'db')).toBe(`Updating user provided service db ${place}\nNo flags specified. No changes were made.\nOK\n\n`);
    expect(instance('db')?.metadata.resourceVersion).toBe(version);
  });

  it('makes the Secret of the credentials again when it is gone', async () => {
    await cluster.memory.delete(secretType, ns, instance('db')?.spec.secretName ?? '');
    await ok('uups', 'db', '-p', '{"uri":"postgres://again"}');
    expect(credentials('db')).toEqual({ uri: 'postgres://again' });
  });

  it('says that the credentials are changed when the rest is refused', async () => {
    cluster.server.on('PATCH .*/cfserviceinstances/.*', (call) => call.fail(422, 'Invalid', 'spec.tags is not valid'));
    const run = await cli.run(['uups', 'db', '-p', '{"a":"b"}', '-t', 'x']);
    expect(run.code).toBe(1);
    expect(run.stderr).toContain("The credentials of 'db' are changed.");
    expect(credentials('db')).toEqual({ a: 'b' });
  });

  it('gives the instance its new name, which the controller claims', async () => {
    const { guid } = (JSON.parse(await ok('service', 'db', '--json')) as { result: { guid: string } }).result;
    expect(await ok('rename-service', 'db', 'postgres')).toBe(`Renaming service db to postgres ${place}\nOK\n\n`);
    expect(await ok('service', 'postgres', '--guid')).toBe(`${guid}\n`);
    expect((await cli.run(['service', 'db'])).stderr).toContain("Service instance 'db' not found\n");
    await ok('cups', 'db');
    expect(instance('db')?.metadata.name).not.toBe(guid);
    expect(await ok('rename-service', 'db', 'db')).toContain('OK\n');
  });

  it('keeps its name when another instance or another binding of an app has the new one', async () => {
    await ok('cups', 'other');
    expect(await cli.run(['rename-service', 'db', 'other'])).toMatchObject({
      code: 1,
      stderr: 'The service instance name is taken: other\n\nTIP:\n   kf service other\n',
    });
    await bind();
    const service = { name: instance('other')?.metadata.name ?? '', namespace: ns };
    const spec = { type: 'app' as const, appRef: { name: 'my-app-guid' }, service, parameters: { name: '' }, displayName: 'main' };
    await cluster.add(kinds.serviceBinding, { metadata: { name: 'second', namespace: ns }, spec });
    const run = await cli.run(['rename-service', 'db', 'main']);
    expect([run.code, run.stderr]).toEqual([1, expect.stringContaining("App 'my-app' has another binding named 'main'.")]);
    expect(instance('db')).toBeDefined();
  });

  it('has its old name again when somebody else was faster', async () => {
    await stopController();
    cluster.memory.intercept = (verb, type) => {
      const renamed = instance('fast');
      if (verb !== 'watch' || type.plural !== kinds.serviceInstance.plural || renamed === undefined) return;
      const refused = { type: 'Claimed', status: 'False', reason: 'DuplicateName', message: 'taken' };
      const told = { ...refused, observedGeneration: renamed.metadata.generation, lastTransitionTime: '2026-08-07T10:16:20Z' };
      const patch = { status: { conditions: [told] } };
      setTimeout(
        () => void cluster.memory.mergePatch(kinds.serviceInstance, ns, renamed.metadata.name, patch, { subresource: 'status' }),
        20,
      );
    };
    const run = await cli.run(['rename-service', 'db', 'fast']);
    expect([run.code, run.stderr]).toEqual([1, expect.stringContaining('The service instance name is taken: fast\n')]);
    expect([instance('db') === undefined, instance('fast')]).toEqual([false, undefined]);
  });

  it.each([
    [['service', 'bd'], "Service instance 'bd' not found\n", "Did you mean 'db'?"],
    [['uups', 'bd', '-t', 'x'], "Service instance 'bd' not found\n", 'kf services'],
    [['rename-service', 'bd', 'x'], "Service instance 'bd' not found\n", 'kf services'],
    [['rename-service', 'db'], 'the required argument `NEW_SERVICE_INSTANCE` was not provided', 'kf help rename-service'],
    [['service', 'db', '--params'], "'--params' of 'service' has no effect in kf", 'kf env APP'],
    [['uups', 'db', '-p', '{broken'], 'Invalid configuration provided for -p flag.', 'kf help update-user-provided-service'],
    [['uups', 'db', '-p', 'user,password'], "-p '{...}' or -p FILE", ''],
  ])('%j is refused with %s', async (argv, message, hint) => {
    const run = await cli.run(argv);
    expect(run.code).toBe(1);
    expect(run.stderr).toContain(message);
    expect(run.stderr).toContain(hint);
    expect([credentials('db'), instance('db')?.spec.tags]).toEqual([{ uri: 'postgres://one' }, ['sql', 'big']]);
  });

  it.each([
    [['uups', 'db', '-t', 'x'], 'PATCH .*/cfserviceinstances/.*'],
    [['rename-service', 'db', 'x'], 'PATCH .*/cfserviceinstances/.*'],
    [['service', 'db'], 'GET .*/cfserviceinstances'],
  ])('%j without the right says whose right lacks', async (argv, pattern) => {
    const message = 'cfserviceinstances.korifi.cloudfoundry.org is forbidden: User "alice" cannot patch resource "cfserviceinstances"';
    cluster.server.on(pattern, (call) => call.fail(403, 'Forbidden', message));
    const run = await cli.run(argv);
    expect([run.code, run.stderr]).toEqual([1, expect.stringContaining('alice')]);
  });
});

it.each([
  ['service', 'db'],
  ['uups', 'db', '-t', 'x'],
  ['rename-service', 'db', 'x'],
  ['uups', 'db', '-p', 'user,password'],
  ['cups', 'other', '-p', 'user,password'],
])('%s without a targeted space is refused', async (...argv) => {
  const run = await cli.run(argv, { env: { KF_SPACE: '' }, stdin: 'bob\nsecret\n' });
  expect([run.code, run.stdout, run.stderr]).toEqual([1, 'FAILED\n', "No space targeted, use 'kf target -s SPACE' to target a space.\n"]);
});

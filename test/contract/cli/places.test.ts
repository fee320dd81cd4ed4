import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { configMapType, secretType } from '../../../src/lib/api/core.ts';
import { annotations, kinds, places } from '../../../src/lib/api/group.ts';
import type { KubeObject, ResourceType } from '../../../src/lib/api/object.ts';
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

const condition = (type: string, status: 'True' | 'False', message = '') => ({
  type,
  status,
  reason: status === 'True' ? type : 'DuplicateName',
  message,
  lastTransitionTime: '2026-08-07T10:16:20Z',
  observedGeneration: 1,
});

/** Acts as the controller: every object of the kind that is created gets these conditions. */
function answerCreated(type: ResourceType, ...conditions: ReturnType<typeof condition>[]): void {
  cluster.memory.intercept = (verb, seen) => {
    if (verb !== 'watch') return;
    if (seen.plural === kinds.app.plural) setTimeout(tellBindings, 20);
    if (seen.plural !== type.plural) return;
    setTimeout(() => {
      for (const object of cluster.memory.all<KubeObject>(type)) {
        void cluster.memory.mergePatch(
          type,
          object.metadata.namespace,
          object.metadata.name ?? '',
          { metadata: { generation: 1 }, status: { conditions } },
          { subresource: 'status' },
        );
      }
    }, 20);
  };
}

/** Acts as the controller: the app's status names its bindings. */
function tellBindings(): void {
  const serviceBindings = cluster.memory
    .all(kinds.serviceBinding)
    .map(({ metadata: { name = '' } }) => ({ guid: name, name, secret: name }));
  const patch = { status: { serviceBindings } };
  void cluster.memory.mergePatch(kinds.app, ns, 'my-app-guid', patch, { subresource: 'status' }).catch(() => undefined);
}

async function addApp(): Promise<void> {
  const spec = { displayName: 'my-app', desiredState: 'STARTED' as const, lifecycle: { type: 'buildpack' as const, data: { stack: '' } } };
  await cluster.add(kinds.app, { metadata: { name: 'my-app-guid', namespace: ns }, spec });
}

describe('routes', () => {
  it('map-route creates the route with its destination in one request, and changes nothing a second time', async () => {
    await addApp();
    answerCreated(kinds.route, condition('Claimed', 'True'), condition('Programmed', 'True'));
    const run = await cli.run(['map-route', 'my-app', 'apps.localhost', '--hostname', 'shop', '--path', 'cart']);
    expect(run.code).toBe(0);
    expect(run.stdout).toBe(
      [
        'Creating route shop.apps.localhost/cart for org example-org / space example-space as alice...',
        'OK',
        '',
        'Mapping route shop.apps.localhost/cart to app my-app in org example-org / space example-space as alice...',
        'OK',
        '',
        '',
      ].join('\n'),
    );
    expect(cluster.server.callsOf('(POST|PATCH) .*cfroutes.*')).toHaveLength(1);
    const again = await cli.run(['map-route', 'my-app', 'apps.localhost', '-n', 'shop', '--path', '/cart']);
    expect(again.stdout).toContain("App 'my-app' is already mapped to route 'shop.apps.localhost/cart'. Nothing has been updated.\nOK\n");
    const routes = await cli.run(['routes']);
    expect(routes.stdout).toContain('example-space   shop   apps.localhost          /cart   http       http1                     my-app');
  });

  it('map-route stores the host in lower case, as it shows it', async () => {
    await addApp();
    answerCreated(kinds.route, condition('Claimed', 'True'), condition('Programmed', 'True'));
    const run = await cli.run(['map-route', 'my-app', 'apps.localhost', '-n', 'Shop']);
    expect([run.code, cluster.memory.all(kinds.route).map(({ spec }) => spec.host)]).toEqual([0, ['shop']]);
    expect((await cli.run(['routes'])).stdout).toContain('example-space   shop   apps.localhost ');
  });

  it('map-route of an address that another object has fails and leaves nothing behind', async () => {
    await addApp();
    answerCreated(kinds.route, condition('Claimed', 'False', "Route already exists with host 'shop' for domain 'apps.localhost'."));
    const run = await cli.run(['map-route', 'my-app', 'apps.localhost', '-n', 'shop', '--json']);
    expect(run.code).toBe(1);
    expect(JSON.parse(run.stdout)).toMatchObject({
      error: { code: 'conflict', message: "Route already exists with host 'shop' for domain 'apps.localhost'." },
    });
    expect(cluster.memory.all(kinds.route)).toEqual([]);
  });

  it('map-route says OK only when the gateway has loaded the route, and says what it waits for', async () => {
    await addApp();
    const seen = [condition('Claimed', 'True'), condition('Ready', 'True')];
    const answers = [seen, [...seen, condition('Programmed', 'True')]];
    cluster.memory.intercept = (verb, { plural }) => {
      const conditions = verb === 'watch' && plural === kinds.route.plural ? answers.shift() : undefined;
      if (conditions === undefined) return;
      setTimeout(() => {
        for (const { metadata } of cluster.memory.all(kinds.route))
          void cluster.memory.mergePatch(kinds.route, ns, metadata.name ?? '', { status: { conditions } }, { subresource: 'status' });
      }, 20);
    };
    const run = await cli.run(['map-route', 'my-app', 'apps.localhost', '-n', 'shop']);
    expect(run.stderr).toContain('Waiting for the gateway to load shop.apps.localhost');
    expect([run.code, run.stdout.endsWith('...\nOK\n\n')]).toEqual([0, true]);
  });

  it('map-route says why the gateway does not accept a route', async () => {
    await addApp();
    const refused = { ...condition('Programmed', 'False', 'No gateway controller has looked at the route.'), reason: 'NotAccepted' };
    answerCreated(kinds.route, condition('Claimed', 'True'), refused);
    const run = await cli.run(['map-route', 'my-app', 'apps.localhost', '-n', 'shop']);
    expect(run.code).toBe(1);
    expect(run.stderr).toContain('The gateway does not take the route shop.apps.localhost: No gateway controller has looked at the route.');
  });

  it('map-route --app-protocol of an unknown protocol is refused before anything is read', async () => {
    const run = await cli.run(['map-route', 'my-app', 'apps.localhost', '-n', 'shop', '--app-protocol', 'htpp']);
    expect(run.code).toBe(1);
    expect(run.stderr).toContain('--app-protocol must be "http1" or "http2"');
    expect(cluster.server.callsOf('(POST|PATCH) .*')).toEqual([]);
  });

  it('map-route replaces a refused route of its space, as its owner must', async () => {
    await addApp();
    await cluster.add(kinds.route, {
      metadata: { name: 'refused', namespace: ns, labels: { 'korifi.cloudfoundry.org/domain-guid': 'default-domain' } },
      spec: { host: 'shop', domainRef: { name: 'default-domain', namespace: 'cf' }, destinations: [] },
    });
    await cluster.memory.mergePatch(
      kinds.route,
      ns,
      'refused',
      { status: { conditions: [condition('Claimed', 'False', 'taken')] } },
      { subresource: 'status' },
    );
    answerCreated(kinds.route, condition('Claimed', 'True'), condition('Programmed', 'True'));
    expect((await cli.run(['map-route', 'my-app', 'apps.localhost', '-n', 'shop'])).code).toBe(0);
    const [route, ...others] = cluster.memory.all(kinds.route);
    expect([route?.metadata.name === 'refused', others]).toEqual([false, []]);
  });

  it.each([
    ['map-route', 14, 1],
    ['map-route', 13, 0],
  ])(
    '%s to a route that leads to %i other apps ends with %i, and a refusal comes before anything is written',
    async (command, count, code) => {
      await addApp();
      answerCreated(kinds.route, { ...condition('Programmed', 'True'), observedGeneration: 2 });
      const destinations = Array.from({ length: count }, (_, at) => ({ guid: `d-${at}`, appRef: { name: `a-${at}` }, processType: 'web' }));
      await cluster.add(kinds.route, {
        metadata: { name: 'r', namespace: ns, labels: { 'korifi.cloudfoundry.org/domain-guid': 'default-domain' } },
        spec: { host: 'shop', domainRef: { name: 'default-domain', namespace: 'cf' }, destinations },
      });
      const run = await cli.run([command, 'my-app', 'apps.localhost', '-n', 'shop']);
      expect(run.code).toBe(code);
      expect(run.stderr.includes('Route shop.apps.localhost leads to 14 apps already')).toBe(code === 1);
      expect(cluster.server.callsOf('(POST|PATCH|PUT) .*/cfroutes.*')).toHaveLength(1 - code);
    },
  );

  it('unmap-route removes the app and keeps the route, and succeeds without a route', async () => {
    await addApp();
    answerCreated(kinds.route, { ...condition('Programmed', 'True'), observedGeneration: 2 });
    const destinations = ['my-app-guid', 'other'].map((name) => ({ guid: name, appRef: { name }, processType: 'web' }));
    await cluster.add(kinds.route, {
      metadata: { name: 'r', namespace: ns, labels: { 'korifi.cloudfoundry.org/domain-guid': 'default-domain' } },
      spec: { host: 'shop', domainRef: { name: 'default-domain', namespace: 'cf' }, destinations },
    });
    expect((await cli.run(['unmap-route', 'my-app', 'apps.localhost', '-n', 'shop'])).code).toBe(0);
    expect(cluster.memory.peek(kinds.route, ns, 'r')?.spec.destinations?.map(({ appRef }) => appRef.name)).toEqual(['other']);
    const again = await cli.run(['unmap-route', 'my-app', 'apps.localhost', '-n', 'shop']);
    expect(again.stdout).toContain('Route to be unmapped is not currently mapped to the application.\nOK\n');
  });

  it.each([
    [['unmap-route', 'my-app', 'apps.localhost', '-n', 'none'], "Route with host 'none' and domain 'apps.localhost' not found."],
    [['map-route', 'my-app', 'apps.localhorst', '-n', 'x'], "Domain 'apps.localhorst' not found."],
    [['map-route', 'my-app', 'apps.localhost'], "Missing host. Routes on domain 'apps.localhost' must have a host."],
    [['map-route', 'my-app', 'apps.localhost', '-n', 'x', '--path', '/'], "The path '/' of a route is the same as no path; leave it out."],
    [['map-route', 'my-app', 'apps.localhost', '-n', 'x', '--path', 'a b'], "The path '/a b' of a route contains characters"],
  ])('%j prints %s', async (argv, message) => {
    await addApp();
    expect((await cli.run(argv)).stderr).toContain(message);
  });

  it('domains lists the existing domains', async () => {
    expect((await cli.run(['domains'])).stdout).toContain(
      'name             availability   internal   protocols\napps.localhost   shared                    http\n',
    );
  });
});

describe('services', () => {
  it('are made of credentials, bound, listed, unbound and deleted, and a second time nothing fails', async () => {
    await addApp();
    answerCreated(kinds.serviceBinding, condition('Ready', 'True'));
    const credentials = '{"uri":"postgres://db"}';
    expect((await cli.run(['cups', 'db', '-p', credentials, '-t', 'sql, big'])).code).toBe(0);
    const [instance] = cluster.memory.all(kinds.serviceInstance);
    expect(instance?.spec).toMatchObject({ displayName: 'db', type: 'user-provided', tags: ['sql', 'big'] });
    const secret = cluster.memory.peek(secretType, ns, instance?.spec.secretName ?? '');
    expect(Buffer.from(secret?.data?.['credentials'] ?? '', 'base64').toString()).toBe(credentials);
    expect((await cli.run(['cups', 'db'])).stdout).toContain('Service instance db already exists\nOK\n');

    expect((await cli.run(['bind-service', 'my-app', 'db'])).code).toBe(0);
    expect((await cli.run(['bs', 'my-app', 'db'])).stdout).toContain('App my-app is already bound to service instance db.\nOK\n');
    expect((await cli.run(['services'])).stdout).toMatch(/^db {5}user-provided {10}my-app {7}/m);

    expect((await cli.run(['unbind-service', 'my-app', 'db'])).code).toBe(0);
    expect((await cli.run(['us', 'my-app', 'db'])).stdout).toContain('Binding between db and my-app does not exist\nOK\n');
    expect((await cli.run(['delete-service', 'db', '-f'])).code).toBe(0);
    expect((await cli.run(['ds', 'db', '-f'])).stdout).toContain('Service instance db did not exist.\nOK\n');
  });

  it.each([
    ['', 200],
    [', also when the note is refused', 403],
  ])('are unbound after a note of who does it%s', async (_, status) => {
    await addApp();
    answerCreated(kinds.serviceBinding, condition('Ready', 'True'));
    expect((await cli.run(['cups', 'db', '-p', '{}'])).code).toBe(0);
    expect((await cli.run(['bind-service', 'my-app', 'db'])).code).toBe(0);
    if (status !== 200) cluster.server.on('PATCH .*/cfservicebindings/.*', (call) => call.fail(status, 'Forbidden', 'not now'));
    expect((await cli.run(['unbind-service', 'my-app', 'db'])).code).toBe(0);
    const calls = cluster.server.calls.filter(({ method, path }) => method !== 'GET' && path.includes('/cfservicebindings/'));
    expect(calls.map(({ method }) => method)).toEqual(['PATCH', 'DELETE']);
    const notes = { [annotations.changedBy]: 'alice', [annotations.unbinding]: expect.stringMatching(/^\d{4}-.*Z$/) as string };
    expect(JSON.parse(calls[0]?.body ?? '')).toEqual({ metadata: { uid: expect.any(String) as string, annotations: notes } });
    expect(cluster.memory.all(kinds.serviceBinding)).toEqual([]);
  });

  it('with a syslog drain or a route service are made and bound, with a warning that kf has neither', async () => {
    await addApp();
    answerCreated(kinds.serviceBinding, condition('Ready', 'True'));
    const drain = "Nothing is sent to the syslog drain of 'drain': kf does not support syslog drains yet.\n";
    expect(await cli.run(['cups', 'drain', '-l', 'syslog-tls://logs.example.com:6514'])).toMatchObject({ code: 0, stderr: drain });
    const bound = await cli.run(['bind-service', 'my-app', 'drain']);
    expect(bound.code).toBe(0);
    expect(bound.stderr).toContain(drain);
    const run = await cli.run(['cups', 'waf', '-r', 'https://waf.example.com', '--json']);
    expect(JSON.parse(run.stdout)).toMatchObject({
      warnings: ["No request goes through the route service of 'waf': kf does not support route services yet."],
    });
    expect(cluster.memory.all(kinds.serviceInstance).map(({ spec }) => spec.syslogDrainUrl ?? spec.routeServiceUrl)).toEqual([
      'syslog-tls://logs.example.com:6514',
      'https://waf.example.com',
    ]);
  });

  it('asks for credentials on a terminal, or takes one line of a pipe for each', async () => {
    const none = await cli.run(['cups', 'db', '-p', 'user,password'], { stdin: '' });
    expect(none.code).toBe(1);
    expect(none.stderr).toContain("'user' is asked for, but there is no terminal to ask on");
    const run = await cli.run(['cups', 'db', '-p', 'user,password'], { stdin: 'x\ns3cret\n' });
    expect([run.code, run.stdout.includes('s3cret')]).toEqual([0, false]);
    const secret = cluster.memory.peek(secretType, ns, cluster.memory.all(kinds.serviceInstance)[0]?.spec.secretName ?? '');
    const stored = Buffer.from(secret?.data?.['credentials'] ?? '', 'base64').toString();
    expect(JSON.parse(stored)).toEqual({ user: 'x', password: 's3cret' });
  });

  it('bind-service names the nearest service', async () => {
    await addApp();
    await cli.run(['cups', 'database']);
    expect((await cli.run(['bind-service', 'my-app', 'databse'])).stderr).toContain(
      "Service instance 'databse' not found\n\nTIP:\n   Did you mean 'database'?",
    );
  });
});

describe('without a target', () => {
  const nowhere = { KF_ORG: '', KF_SPACE: '' };

  /** Writes the org and space that setup created into kf-info. */
  async function tellDefaults(org: { name: string; guid: string }, space: { name: string; guid: string }): Promise<void> {
    const map = await cluster.memory.get(configMapType, 'cf', places.info);
    const info = { ...(JSON.parse(map?.data?.[places.infoKey] ?? '{}') as object), defaults: { org, space } };
    await cluster.memory.mergePatch(configMapType, 'cf', places.info, { data: { [places.infoKey]: JSON.stringify(info) } });
  }

  it('the default org and space are used without a lookup', async () => {
    await tellDefaults({ name: 'example-org', guid: 'org-guid' }, { name: 'example-space', guid: ns });
    const run = await cli.run(['services'], { env: nowhere });
    expect(run.stdout).toContain('Getting service instances in org example-org / space example-space');
    const asked = cluster.server.calls.map(({ path }) => path);
    expect(asked.filter((path) => /cforgs|cfspaces/.test(path))).toEqual([]);
  });

  it('the same holds for its names, and not for others', async () => {
    await tellDefaults({ name: 'first', guid: 'none' }, { name: 'first', guid: 'none' });
    const run = await cli.run(['services']);
    expect(run.stdout).toContain('in org example-org / space example-space');
  });

  it('a default space that no longer exists is named', async () => {
    await tellDefaults({ name: 'default', guid: 'org-guid' }, { name: 'default', guid: 'gone' });
    const run = await cli.run(['app', 'my-app'], { env: nowhere });
    expect([run.code, run.stderr]).toEqual([
      1,
      expect.stringContaining("The space 'default' that setup made in org 'default' does not exist any more."),
    ]);
  });
});

describe('orgs and spaces', () => {
  it('create-org waits until the org is ready, and succeeds if the org exists', async () => {
    answerCreated(kinds.org, condition('Claimed', 'True'), condition('Ready', 'True'));
    const run = await cli.run(['create-org', 'second-org']);
    expect(run.code).toBe(0);
    expect(run.stdout).toContain(`TIP: Use 'kf target -o "second-org"' to target new org`);
    expect((await cli.run(['orgs'])).stdout).toContain('name\nexample-org\nsecond-org\n');
    expect(await cli.run(['create-org', 'Second-Org'])).toMatchObject({ code: 0, stderr: "Organization 'Second-Org' already exists.\n" });
  });

  it('create-space gives its creator two roles', async () => {
    answerCreated(kinds.space, condition('Claimed', 'True'), condition('Ready', 'True'));
    const run = await cli.run(['create-space', 'dev', '-o', 'example-org']);
    expect(run.code).toBe(0);
    expect(run.stdout.match(/^Assigning role \w+/gm)).toEqual(['Assigning role SpaceManager', 'Assigning role SpaceDeveloper']);
    expect((await cli.run(['spaces'])).stdout).toContain('name\ndev\nexample-space\n');
  });

  it('create-space -o makes the space in that org', async () => {
    answerCreated(kinds.org, condition('Claimed', 'True'), condition('Ready', 'True'));
    await cli.run(['create-org', 'second-org']);
    answerCreated(kinds.space, condition('Claimed', 'True'), condition('Ready', 'True'));
    expect((await cli.run(['create-space', 'dev', '-o', 'second-org'])).code).toBe(0);
    expect((await cli.run(['spaces', '--org', 'second-org'])).stdout).toContain('name\ndev\n');
    expect((await cli.run(['spaces'])).stdout).not.toContain('dev\n');
  });

  it.each([
    ['create-org', kinds.org, 'cf', "Organization 'dev' already exists.\n", 'orgs'],
    ['create-space', kinds.space, 'org-guid', "Space 'dev' already exists.\n", 'spaces'],
  ])('%s that loses the name to one made at the same moment deletes its own, and succeeds', async (command, type, home, told, list) => {
    let own = '';
    const refuseOwn = async (): Promise<void> => {
      await cluster.add<KubeObject>(type, { metadata: { name: 'winner', namespace: home }, spec: { displayName: 'dev' } } as KubeObject);
      for (const [name, status] of [['winner', 'True'] as const, [own, 'False'] as const]) {
        const conditions = [condition('Claimed', status, "'dev' already exists.")];
        await cluster.memory.mergePatch(type, home, name, { status: { conditions } }, { subresource: 'status' });
      }
    };
    cluster.memory.intercept = (verb, seen, name) => {
      if (seen.plural !== type.plural || name === 'winner') return;
      if (verb === 'create') {
        own = name;
        setTimeout(() => void refuseOwn(), 20);
      }
      if (verb === 'delete') setTimeout(() => void cluster.memory.mergePatch(type, home, name, { metadata: { finalizers: null } }), 0);
    };
    const run = await cli.run([command, 'dev']);
    expect([run.code, run.stderr]).toEqual([0, expect.stringContaining(told)]);
    expect(run.stdout).not.toContain('Assigning role');
    await expect.poll(() => cluster.memory.all<KubeObject>(type).map(({ metadata }) => metadata.name)).not.toContain(own);
    expect((await cli.run([list])).stdout.match(/^dev$/gm)).toEqual(['dev']);
  });

  it('create-space waits while a space of that name is being deleted', async () => {
    answerCreated(kinds.space, condition('Claimed', 'True'), condition('Ready', 'True'));
    await cli.run(['create-space', 'dev', '-o', 'example-org']);
    const [old] = (await cluster.memory.list(kinds.space, { ns: 'org-guid' })).items.filter(({ spec }) => spec.displayName === 'dev');
    const { name = '' } = old?.metadata ?? {};
    await cluster.memory.mergePatch(kinds.space, 'org-guid', name, { metadata: { finalizers: ['kf.test/slow'] } });
    await cluster.memory.delete(kinds.space, 'org-guid', name);
    const reads = () => cluster.server.callsOf('GET .*org-guid/cfspaces').length;
    const before = reads();
    const again = cli.run(['create-space', 'dev', '-o', 'example-org']);
    // The list, and the watch after it.
    await expect.poll(reads).toBe(before + 2);
    expect((await cli.run(['target', '-o', 'example-org', '-s', 'dev'])).stderr).toContain("Space 'dev' not found.");
    await cluster.memory.mergePatch(kinds.space, 'org-guid', name, { metadata: { finalizers: null } });
    expect(await again).toMatchObject({ code: 0, stdout: expect.stringContaining('Assigning role SpaceDeveloper') });
    const now = (await cluster.memory.list(kinds.space, { ns: 'org-guid' })).items.filter(({ spec }) => spec.displayName === 'dev');
    expect(now.map(({ metadata }) => metadata.name === name)).toEqual([false]);
  });
});

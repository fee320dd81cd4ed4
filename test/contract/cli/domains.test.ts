// The commands about domains, as an operator types them.

import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { configMapType, namespaceType, roleBindingType, serviceType } from '../../../src/lib/api/core.ts';
import { kinds, labels } from '../../../src/lib/api/group.ts';
import { bundleForTests, Cli } from '../../support/cli.ts';
import { ServedCluster } from '../../support/served-cluster.ts';

const bundle = bundleForTests();
let cluster: ServedCluster;
let cli: Cli;

beforeEach(async () => {
  cluster = await (await ServedCluster.start()).installed();
  cli = new Cli(bundle.program, { KUBECONFIG: cluster.server.kubeconfig() });
});

afterEach(async () => {
  await cluster.stop();
  cli.remove();
});

afterAll(() => bundle.remove());

/** Acts as the controller: says of the newest domain whether it is ready. */
function answerDomains(status: 'True' | 'False', message = ''): void {
  cluster.memory.intercept = (verb, seen) => {
    if (verb !== 'watch' || seen.plural !== kinds.domain.plural) return;
    setTimeout(() => {
      const { name = '', generation: observedGeneration = 1 } = cluster.memory.all(kinds.domain).at(-1)?.metadata ?? {};
      const reason = status === 'True' ? 'Ready' : 'DuplicateDomain';
      const ready = { type: 'Ready', status, reason, message, observedGeneration, lastTransitionTime: '2026-08-07T10:16:20Z' };
      const patch = { metadata: { generation: observedGeneration }, status: { conditions: [ready] } };
      void cluster.memory.mergePatch(kinds.domain, 'cf', name, patch, { subresource: 'status' });
    }, 20);
  };
}

/** Changes what setup wrote about the https of the gateway. */
async function setHttps(https: object | undefined): Promise<void> {
  const text = cluster.memory.peek(configMapType, 'cf', 'kf-info')?.data?.['info.json'] ?? '';
  const info = JSON.parse(text) as { gateway: object };
  const gateway = { ...info.gateway, https };
  await cluster.memory.mergePatch(configMapType, 'cf', 'kf-info', { data: { 'info.json': JSON.stringify({ ...info, gateway }) } });
}

const domains = (): string[] => cluster.memory.all(kinds.domain).map(({ spec }) => spec.name);

async function addDomain(name: string): Promise<void> {
  await cluster.add(kinds.domain, { metadata: { name: `${name}-guid`, namespace: 'cf' }, spec: { name } });
}

async function addRoute(name: string, space: string, domain: string): Promise<void> {
  await cluster.add(kinds.route, {
    metadata: { name, namespace: space, labels: { [labels.domainGuid]: domain } },
    spec: { host: name, domainRef: { name: domain, namespace: 'cf' }, destinations: [] },
  });
}

describe('create-shared-domain', () => {
  it('makes a domain that all orgs share, and waits until the controller has checked it', async () => {
    answerDomains('True');
    const run = await cli.run(['create-shared-domain', 'Shop.Example.com']);
    expect(run.code).toBe(0);
    expect(run.stdout).toBe(
      [
        'Creating shared domain Shop.Example.com as alice...',
        'OK',
        '',
        "TIP: Domain 'shop.example.com' is shared with all orgs. Run 'kf domains' to view available domains.",
        '',
      ].join('\n'),
    );
    expect(run.stderr).toBe('Waiting for the controller\n');
    expect((await cli.run(['domains', '--org', 'example-org'])).stdout).toMatch(/^shop\.example\.com +shared +http$/m);
    expect(cluster.memory.all(kinds.domain).map(({ metadata }) => metadata.namespace)).toEqual(['cf', 'cf']);
  });

  it('--internal makes apps.internal, its namespace, its Service and the right of the controller', async () => {
    answerDomains('True');
    const create = ['create-shared-domain', 'apps.internal', '--internal'];
    expect((await cli.run(create)).code).toBe(0);
    expect((await cli.run(['domains', '--org', 'example-org'])).stdout).toMatch(/^apps\.internal +shared +true +http$/m);
    expect(await cli.run(create)).toMatchObject({ code: 0, stderr: expect.stringContaining('exists already') as string });
    expect(cluster.memory.peek(namespaceType, undefined, 'internal')?.metadata.labels?.[labels.managedBy]).toBe('kf');
    expect(cluster.memory.peek(serviceType, 'internal', 'apps')?.spec).toMatchObject({ clusterIP: 'None' });
    expect(cluster.memory.all(roleBindingType).at(-1)).toMatchObject({
      metadata: { namespace: 'internal' },
      roleRef: { name: 'kf-controller-internal' },
      subjects: [{ namespace: 'kf-system', name: 'kf-controller' }],
    });
    for (const [flag, text] of [
      [['--hostname', '*'], 'Wildcard hosts are not supported'],
      [['-n', 'shop', '--path', '/cart'], 'Paths are not supported'],
    ] as const)
      expect(
        (await cli.run(['create-route', 'apps.internal', ...flag, '--org', 'example-org', '--space', 'example-space'])).stderr,
      ).toContain(text);
    expect((await cli.run(['delete-shared-domain', 'apps.internal', '-f'])).code).toBe(0);
    expect(cluster.memory.peek(namespaceType, undefined, 'internal')).toBeUndefined();
  });

  it('--internal takes no other name, and no namespace of somebody else', async () => {
    const other = await cli.run(['create-shared-domain', 'shop.internal', '--internal']);
    expect(other).toMatchObject({ code: 1, stderr: expect.stringContaining("The internal domain of kf is 'apps.internal'") as string });
    const outer = await cli.run(['create-shared-domain', 'apps.internal']);
    expect(outer).toMatchObject({ code: 1, stderr: expect.stringContaining('kf create-shared-domain apps.internal --internal') as string });
    await cluster.add(namespaceType, { metadata: { name: 'internal' } });
    const foreign = await cli.run(['create-shared-domain', 'apps.internal', '--internal']);
    expect(foreign).toMatchObject({ code: 1, stderr: expect.stringContaining("exists and is not kf's") as string });
    expect(domains()).toEqual(['apps.localhost']);
    const place = ['--org', 'example-org', '--space', 'example-space'];
    const missing = await cli.run(['create-route', 'apps.internal', '-n', 'shop', ...place]);
    expect(missing.stderr).toContain('kf create-shared-domain apps.internal --internal');
  });

  it('--http-redirect is a setting of the domain, also of one that exists, and domains shows it', async () => {
    await setHttps({ port: 443, secrets: [] });
    answerDomains('True');
    const create = ['create-shared-domain', 'shop.example.com', '--http-redirect'];
    const made = await cli.run([...create, 'on', '--json']);
    expect(JSON.parse(made.stdout)).toMatchObject({ result: { name: 'shop.example.com', created: true } });
    const spec = () => cluster.memory.all(kinds.domain).find(({ spec: { name } }) => name === 'shop.example.com')?.spec;
    expect(spec()).toEqual({ name: 'shop.example.com', httpRedirect: true });
    const listed = await cli.run(['domains', '--org', 'example-org']);
    expect(listed.stderr).toContain('Requests to shop.example.com with http are redirected to https\n');
    const changed = await cli.run([...create, 'off']);
    expect(changed).toMatchObject({ code: 0, stdout: expect.stringContaining('OK\n') as string });
    expect(changed.stderr).toContain("Domain 'shop.example.com' exists already, and has the settings that were given.");
    expect(spec()).toEqual({ name: 'shop.example.com', httpRedirect: false });
    expect((await cli.run(['domains', '--org', 'example-org'])).stderr).not.toContain('redirected');
    expect(domains()).toEqual(['apps.localhost', 'shop.example.com']);
  });

  it.each<[string, object | undefined, string[], string, string]>([
    ['without https', undefined, [], 'kf manages no https of the gateway', 'kf setup --https on'],
    [
      'when all requests are redirected',
      { port: 443, redirect: true, secrets: [] },
      [],
      'the requests for all domains',
      'kf setup --http-redirect off',
    ],
    ['for an internal domain', { port: 443, secrets: [] }, ['--internal'], 'the gateway gets no requests for an internal domain', ''],
    ['with another word', { port: 443, secrets: [] }, ['--http-redirect', 'maybe'], '--http-redirect must be "on" or "off"', ''],
  ])('--http-redirect %s is refused before anything is written', async (_when, https, more, message, hint) => {
    await setHttps(https);
    const run = await cli.run(['create-shared-domain', 'apps.internal', '--http-redirect', 'on', ...more]);
    expect(run.code).toBe(1);
    expect(run.stderr).toContain(message);
    expect(run.stderr).toContain(hint);
    expect(domains()).toEqual(['apps.localhost']);
  });

  it.each([
    ['apps.localhost', "The domain name 'apps.localhost' is already in use."],
    ['shop.apps.localhost', "The domain 'shop.apps.localhost' overlaps with the domain 'apps.localhost', which was there first."],
    ['localhost', "The domain 'localhost' is not a valid name: write it in full"],
    ['a_b.example.com', "The domain 'a_b.example.com' is not a valid name"],
    ['*.example.com', "The domain '*.example.com' is not a valid name"],
  ])('%s is refused before anything is written: %s', async (name, message) => {
    const run = await cli.run(['create-shared-domain', name]);
    expect(run).toMatchObject({ code: 1, stdout: expect.stringContaining('FAILED\n') as string });
    expect(run.stderr).toContain(message);
    expect(domains()).toEqual(['apps.localhost']);
  });

  it('leaves nothing behind when the controller refuses the domain', async () => {
    answerDomains('False', "The domain overlaps with the domain 'example.com', which was there first.");
    const run = await cli.run(['create-shared-domain', 'shop.example.com', '--json']);
    expect(JSON.parse(run.stdout)).toMatchObject({ error: { code: 'conflict', message: expect.stringContaining('overlaps') as string } });
    expect(domains()).toEqual(['apps.localhost']);
  });

  it('names the right that a user without it needs', async () => {
    cluster.server.on('POST .*cfdomains', (call) =>
      call.fail(403, 'Forbidden', 'cfdomains.korifi.cloudfoundry.org is forbidden: User "alice" cannot create resource "cfdomains"'),
    );
    const run = await cli.run(['create-shared-domain', 'shop.example.com']);
    expect(run.code).toBe(1);
    expect(run.stderr).toContain('cfdomains');
  });

  it('ends at Ctrl-C while it waits for the controller', async () => {
    const kill = { after: 'Waiting for the controller', signal: 'SIGINT' as const };
    expect((await cli.run(['create-shared-domain', 'shop.example.com'], { kill })).code).toBe(130);
  });

  it.each([['--router-group=tcp']])('%s is refused with an alternative', async (flag) => {
    const run = await cli.run(['create-shared-domain', 'shop.example.com', flag]);
    expect(run.code).toBe(1);
    expect(run.stderr).toMatch(/^kf does not support '--.+' of 'create-shared-domain' yet\.\n\nTIP:\n {3}For now: .+\n$/);
  });
});

describe('delete-shared-domain', () => {
  it('deletes the domain with its routes of all spaces, and no others', async () => {
    await addDomain('example.com');
    await cluster.add(kinds.space, { metadata: { name: 'other-guid', namespace: 'org-guid' }, spec: { displayName: 'other' } });
    await addRoute('kept', 'space-guid', 'default-domain');
    await addRoute('a', 'space-guid', 'example.com-guid');
    await addRoute('b', 'other-guid', 'example.com-guid');
    const run = await cli.run(['delete-shared-domain', 'Example.com', '-f']);
    expect(run).toMatchObject({ code: 0, stderr: '' });
    expect(run.stdout).toBe(
      [
        'This action impacts all orgs using this domain.',
        'Deleting the domain will remove associated routes which will make apps with this domain, in any org, unreachable.',
        'Deleting domain Example.com as alice...',
        'OK',
        '',
        '',
      ].join('\n'),
    );
    expect([domains(), cluster.memory.all(kinds.route).map(({ metadata }) => metadata.name)]).toEqual([['apps.localhost'], ['kept']]);
  });

  it('says that there is no such domain, with OK', async () => {
    const run = await cli.run(['delete-shared-domain', 'example.com', '-f']);
    expect(run).toMatchObject({ code: 0, stderr: "Domain 'example.com' does not exist.\n" });
    expect(run.stdout).toMatch(/\.\.\.\nOK\n\n$/);
  });

  it('does not delete the default domain', async () => {
    const run = await cli.run(['delete-shared-domain', 'apps.localhost', '-f']);
    expect(run.code).toBe(1);
    expect(run.stderr).toContain("The domain 'apps.localhost' is the default domain of this installation: new apps get their route on it.");
    expect(domains()).toEqual(['apps.localhost']);
  });

  it('deletes nothing when the caller may not read a space, and asks only on a terminal', async () => {
    await addDomain('example.com');
    await addRoute('a', 'space-guid', 'example.com-guid');
    expect((await cli.run(['delete-shared-domain', 'example.com'], { stdin: '' })).code).toBe(1);
    cluster.server.on('GET .*/space-guid/cfroutes', (call) =>
      call.fail(403, 'Forbidden', 'cfroutes.korifi.cloudfoundry.org is forbidden: User "alice" cannot list resource "cfroutes"'),
    );
    expect((await cli.run(['delete-shared-domain', 'example.com', '-f'])).code).toBe(1);
    expect([domains(), cluster.memory.all(kinds.route).length]).toEqual([['apps.localhost', 'example.com'], 1]);
  });
});

describe('domains', () => {
  const certificate = (notAfter: string) => ({ status: { certificate: { issuer: 'kf CA 1a2b3c4d', notAfter } } });
  const inDays = (days: number): string => new Date(Date.now() + days * 24 * 3_600_000).toISOString();

  async function withCertificates(): Promise<void> {
    const add = async (name: string, status: object): Promise<void> => {
      await addDomain(name);
      await cluster.memory.mergePatch(kinds.domain, 'cf', `${name}-guid`, { metadata: {}, ...status }, { subresource: 'status' });
    };
    await add('long.example', certificate('2099-02-03T04:05:06Z'));
    await add('short.example', certificate(inDays(20)));
  }

  it('prints cf’s table on stdout, and on stderr the certificates and which of them end soon', async () => {
    await withCertificates();
    const { code, stdout, stderr } = await cli.run(['domains', '--org', 'example-org']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^name +availability +internal +protocols$/m);
    expect(stdout).toMatch(/^long\.example +shared +http$/m);
    expect(stdout).not.toContain('kf CA');
    expect(stderr).toContain('Certificate of long.example: by kf CA 1a2b3c4d, valid until 2099-02-03\n');
    const end = inDays(20).slice(0, 10);
    expect(stderr).toContain(`Certificate of short.example: by kf CA 1a2b3c4d, valid until ${end}\n`);
    expect(stderr).toContain(`The certificate of short.example ends on ${end} and was not renewed.`);
    expect(stderr).not.toContain('apps.localhost');
  });

  it('says which certificate cert-manager has not issued, on stderr and with --json', async () => {
    await addDomain('new.example');
    const message = 'cert-manager has not issued the certificate of new.example (Certificate kf-node/kf-domain-x): Waiting.';
    const issued = { type: 'CertificateIssued', status: 'False', reason: 'NotIssued', message, lastTransitionTime: '' } as const;
    const status = { status: { conditions: [issued] } };
    await cluster.memory.mergePatch(kinds.domain, 'cf', 'new.example-guid', { metadata: {}, ...status }, { subresource: 'status' });
    const { stderr } = await cli.run(['domains', '--org', 'example-org']);
    expect(stderr).toContain(`${message} Meanwhile the gateway shows a certificate of kf.`);
    const { result } = JSON.parse((await cli.run(['domains', '--org', 'example-org', '--json'])).stdout) as { result: object[] };
    expect(result).toContainEqual(expect.objectContaining({ name: 'new.example', certificateProblem: message }));
  });

  it('names issuer and end with --json, and nothing for a domain without a certificate', async () => {
    await withCertificates();
    const { result } = JSON.parse((await cli.run(['domains', '--org', 'example-org', '--json'])).stdout) as { result: object[] };
    expect(result).toContainEqual(
      expect.objectContaining({ name: 'long.example', certificate: { issuer: 'kf CA 1a2b3c4d', notAfter: '2099-02-03T04:05:06Z' } }),
    );
    expect(result.find((one) => 'name' in one && one.name === 'apps.localhost')).not.toHaveProperty('certificate');
  });
});

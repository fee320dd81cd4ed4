import { beforeAll, describe, expect, test } from 'vitest';
import { ask, installKinds, kubectl, makeSpaceLike } from './kubectl.ts';

const ns = `rules-${Date.now().toString(36)}`;
const healthCheck = { type: '', data: { invocationTimeoutSeconds: 0, timeoutSeconds: 0 } };
const lifecycle = (type: string) => ({ type, data: { stack: '' } });
const domainRef = { name: 'd', namespace: 'cf' };
const service = { kind: 'CFServiceInstance', name: 'i', namespace: 'n' };

const old = `old-${ns}`;
const homeOf = (kind: string): string => (['CFOrg', 'CFDomain'].includes(kind) ? 'cf' : ns);

const object = (kind: string, name: string, spec: object) => ({
  apiVersion: 'korifi.cloudfoundry.org/v1alpha1',
  kind,
  metadata: { name, namespace: homeOf(kind) },
  spec,
});

/** One valid object of each kind that has rules. */
const valid: Record<string, object> = {
  CFOrg: { displayName: 'o' },
  CFApp: { displayName: 'a', desiredState: 'STOPPED', lifecycle: lifecycle('buildpack') },
  CFPackage: { type: 'bits', appRef: { name: 'a' } },
  CFProcess: { appRef: { name: 'a' }, processType: 'web', memoryMB: 1, diskQuotaMB: 1, healthCheck },
  CFRoute: { host: 'h', path: '/p', protocol: 'http', domainRef },
  CFDomain: { name: 'example.com' },
  CFTask: { appRef: { name: 'a' }, command: 'c' },
  CFServiceInstance: { displayName: 'i', type: 'user-provided', secretName: '', planGuid: '' },
  CFServiceBinding: { type: 'app', appRef: { name: 'a' }, parameters: {}, service },
  CFSecurityGroup: { displayName: 'g', rules: [{ protocol: 'tcp', destination: '10.0.0.1', ports: '443' }] },
};

beforeAll(async () => {
  await installKinds();
  await makeSpaceLike(ns);
  const objects = Object.entries(valid).map(([kind, spec]) => object(kind, old, spec));
  await kubectl(['apply', '--server-side', '-f', '-'], { input: objects });
});

async function create(kind: string, spec: object, name = 'new'): Promise<string> {
  const { code, stderr } = await ask(['create', '--dry-run=server', '-f', '-'], { input: object(kind, name, { ...valid[kind], ...spec }) });
  return code === 0 ? 'accepted' : stderr;
}

async function change(kind: string, patch: object): Promise<string> {
  const args = ['patch', kind.toLowerCase(), '-n', homeOf(kind), old, '--dry-run=server', '--type=merge', '-p', JSON.stringify(patch)];
  const { code, stderr } = await ask(args);
  return code === 0 ? 'accepted' : stderr;
}

const route = (message: string) => `${message} of a route cannot be changed; create another route and map it`;
const binding = (message: string) => `${message} of a binding cannot be changed; unbind and bind again`;

describe('immutable fields', () => {
  test.each<[string, object, string]>([
    ['CFApp', { lifecycle: lifecycle('docker') }, 'The lifecycle type of an app cannot be changed; delete the app and push it again'],
    ['CFPackage', { type: 'docker' }, 'The type of a package cannot be changed'],
    ['CFProcess', { appRef: { name: 'b' } }, 'The app of a process cannot be changed'],
    ['CFRoute', { host: 'other' }, route('The host')],
    ['CFRoute', { path: '/other' }, route('The path')],
    ['CFRoute', { path: null }, route('The path')],
    ['CFRoute', { protocol: 'tcp' }, route('The protocol')],
    ['CFRoute', { domainRef: { name: 'other' } }, route('The domain')],
    ['CFDomain', { name: 'other.com' }, 'The name of a domain cannot be changed; delete the domain and create it again'],
    ['CFServiceInstance', { type: 'managed' }, 'The type of a service instance cannot be changed'],
    ['CFServiceBinding', { appRef: { name: 'b' } }, binding('The app')],
    ['CFServiceBinding', { service: { name: 'j' } }, binding('The service instance')],
    ['CFServiceBinding', { service: { namespace: 'm' } }, binding('The service instance')],
  ])('of %s cannot be changed: %j', async (kind, spec, message) => {
    expect(await change(kind, { spec })).toContain(message);
  });

  test.each<[string, object]>([
    ['CFApp', { desiredState: 'STARTED', displayName: 'renamed' }],
    ['CFRoute', { destinations: [{ guid: 'd', appRef: { name: 'a' }, processType: 'web' }] }],
    ['CFServiceInstance', { displayName: 'renamed', tags: ['x'] }],
    ['CFServiceBinding', { displayName: 'renamed' }],
  ])('are the only ones: all other fields of %s can be changed: %j', async (kind, spec) => {
    expect(await change(kind, { spec })).toBe('accepted');
  });
});

describe('names', () => {
  const guid = 'A'.toLowerCase().repeat(64);

  test('of orgs and spaces must be valid names of namespaces', async () => {
    expect(await create('CFOrg', {}, guid)).toContain('The GUID of an org may have at most 63 characters, because it names a namespace');
    expect(await create('CFSpace', { displayName: 's' }, guid)).toContain('The GUID of a space may have at most 63 characters');
  });

  test('of apps must be words', async () => {
    expect(await create('CFApp', { displayName: 'my app' })).toContain('spec.displayName');
  });

  test('of orgs can be any printable text', async () => {
    expect(await create('CFOrg', { displayName: 'Müller & Söhne' })).toContain('spec.displayName');
    expect(await create('CFOrg', { displayName: 'Miller & Sons' })).toBe('accepted');
  });
});

describe('the user of a process', () => {
  test.each(['', 'node', '1000', '609010'])('can be %j', async (user) => {
    expect(await create('CFProcess', { user })).toBe('accepted');
  });

  test.each(['60901', '0060901'])("cannot be %j, the user of kf's own pods", async (user) => {
    expect(await create('CFProcess', { user })).toContain("Only kf's own pods run as the user 60901");
  });
});

describe('a host', () => {
  test.each(['shop', 'SHOP', 'a-1', 'x', '*', 'h'.repeat(63)])('can be %j', async (host) => {
    expect(await create('CFRoute', { host })).toBe('accepted');
  });

  test.each(['-shop', 'shop-', 'my_shop', 'a.b', 'a*', 'sh op'])('cannot be %j', async (host) => {
    expect(await create('CFRoute', { host })).toContain(
      "A host consists of letters, digits and '-' and neither begins nor ends with '-'; '*' alone takes every host",
    );
  });

  test('cannot be longer than a DNS label', async () => {
    expect(await create('CFRoute', { host: 'h'.repeat(64) })).toContain('may not be more than 63 bytes');
  });

  test('cannot be missing or empty, except for tcp', async () => {
    expect(await create('CFRoute', { host: '' })).toContain('A route needs a host');
    expect(await create('CFRoute', { host: '', protocol: 'tcp' })).toBe('accepted');
  });
});

describe('a path', () => {
  test.each(['', '/a', '/a/b.c', '/%20', "/~!$&'()*+,;=:@"])('can be %j', async (path) => {
    expect(await create('CFRoute', { path })).toBe('accepted');
  });

  test.each([
    ['a', "A path begins with '/'"],
    ['/', "The path '/' is the same as no path; leave it out"],
    ['/a?b', "A path cannot contain '?'"],
    ['/a b', 'A path consists of characters that a URL may contain; write others percent-encoded'],
    [`/${'a'.repeat(128)}`, 'may not be more than 128 bytes'],
  ])('cannot be %j', async (path, message) => {
    expect(await create('CFRoute', { path })).toContain(message);
  });
});

test('a route needs a domain', async () => {
  expect(await create('CFRoute', { domainRef: { namespace: 'cf' } })).toContain('A route needs a domain (domainRef.name)');
});

describe('a domain', () => {
  test.each(['example.com', 'apps.localhost', 'a.b.c.d', 'xn--bcher-kva.example', 'example.com.'])('can be %j', async (name) => {
    expect(await create('CFDomain', { name })).toBe('accepted');
  });

  test.each(['localhost', 'Example.com', '-a.com', 'a..b', '*.example.com', 'exa mple.com', ''])('cannot be %j', async (name) => {
    expect(await create('CFDomain', { name })).toContain('A domain is written in full, in lower case, for example apps.example.com');
  });
});

describe('a task', () => {
  const tell = (patch: object) =>
    kubectl(['patch', 'cftask', '-n', ns, old, '--subresource=status', '--type=merge', '-p', JSON.stringify({ status: patch })]);

  test('needs a command or a process type, and an app', async () => {
    expect(await create('CFTask', { command: '' })).toContain('A task needs a command, or a process type whose command it takes');
    expect(await create('CFTask', { command: '', processType: 'task' })).toBe('accepted');
    expect(await create('CFTask', { appRef: {} })).toContain('A task needs the app it belongs to (appRef.name)');
  });

  test('keeps its sequence id', async () => {
    await tell({ sequenceId: 7 });
    await expect(tell({ sequenceId: 8 })).rejects.toThrow('The sequence id of a task cannot be changed');
    await expect(tell({ sequenceId: -1 })).rejects.toThrow('status.sequenceId');
  });

  test('cannot change its app', async () => {
    expect(await change('CFTask', { spec: { appRef: { name: 'b' } } })).toContain('The app of a task cannot be changed');
  });

  test('can be canceled until it has ended', async () => {
    expect(await change('CFTask', { spec: { canceled: true } })).toBe('accepted');
    await tell({
      conditions: [{ type: 'Succeeded', status: 'True', reason: 'JobSucceeded', message: '', lastTransitionTime: '2026-01-01T00:00:00Z' }],
    });
    expect(await change('CFTask', { spec: { canceled: true } })).toContain('A task that has ended cannot be canceled');
    expect(await change('CFTask', { metadata: { labels: { a: 'b' } } })).toBe('accepted');
  });
});

describe('a rule of a security group', () => {
  const withRule = (rule: object) => create('CFSecurityGroup', { rules: [{ destination: '10.0.0.1', ...rule }] });

  test.each<[object, string]>([
    [{ protocol: 'tcp' }, 'A rule for tcp or udp needs ports'],
    [{ protocol: 'udp', ports: '' }, 'A rule for tcp or udp needs ports'],
    [{ protocol: 'all', ports: '1' }, 'A rule for all protocols cannot name ports'],
    [{ protocol: 'tcp', ports: '1', code: 0 }, 'Only a rule for icmp can have type and code'],
    [{ protocol: 'all', destination: 'example.com' }, 'A destination is an IPv4 address, a CIDR or a range'],
  ])('is refused: %j', async (rule, message) => {
    expect(await withRule(rule)).toContain(message);
  });

  test('is accepted for icmp with type and code', async () => {
    expect(await withRule({ protocol: 'icmp', type: 8, code: 0 })).toBe('accepted');
  });
});

describe('a list that must not have duplicates', () => {
  test.each<[string, object]>([
    ['CFApp', { lifecycle: { type: 'buildpack', data: { stack: '', buildpacks: ['a', 'a'] } } }],
    ['CFRoute', { destinations: ['web', 'worker'].map((processType) => ({ guid: 'd', appRef: { name: 'a' }, processType })) }],
  ])('%s %j', async (kind, spec) => {
    expect(await create(kind, spec)).toContain('Duplicate value');
  });
});

import { describe, expect, test } from 'vitest';
import { BuildHosts } from '../../../src/controller/builds/hosts.ts';
import type { Stored } from '../../../src/lib/api/object.ts';
import type { CFApp, CFNetworkPolicy } from '../../../src/lib/api/types.generated.ts';
import type { KfInfo, NetworkSettings } from '../../../src/lib/api/kf-info.ts';
import { internet, isInside, isRange, type NetworkPeer, type NetworkPolicy } from '../../../src/lib/api/network-policy.ts';
import { resolvePlan, type SetupRequest } from '../../../src/lib/ops/install/request.ts';
import { appNetworkPolicy, spacePolicies, type BuildTarget } from '../../../src/templates/network-policies.ts';
import { kfInfo } from '../../../src/templates/setup/info.ts';
import { buildSystemPolicies } from '../../../src/templates/setup/network-policies.ts';
import type { NetworkFacts } from '../../../src/lib/ops/install/network.ts';
import { asStored } from '../../support/stored.ts';

const settings: NetworkSettings = { egress: [], ingress: [], dns: ['10.96.0.10'], apiServer: ['198.51.100.1'], ipv6: false };

function infoWith(change: Partial<KfInfo['builder']>): KfInfo {
  const info = kfInfo(resolvePlan({}, '1.0.0', 'hostport'));
  return { ...info, builder: { name: 'b', image: 'builder', envRevision: '1', ...change } };
}

describe('the internet in a policy', () => {
  const except = (peers: NetworkPeer[], at = 0): string[] => peers[at]?.ipBlock?.except ?? [];

  test('excludes private, shared and link-local addresses, and those of nodes and the API server', () => {
    const peers = internet(['198.51.100.1', '198.51.100.1', '10.0.0.9', '2001:db8::1'], false);
    expect(peers).toHaveLength(1);
    expect(except(peers)).toEqual(expect.arrayContaining(['169.254.0.0/16', '10.0.0.0/8', '100.64.0.0/10', '198.51.100.1/32']));
    expect(except(peers).filter((range) => range.startsWith('198.51') || range.includes(':'))).toEqual(['198.51.100.1/32']);
  });

  test('has a second part if pods have IPv6', () => {
    const peers = internet(['2001:db8::1'], true);
    expect(peers.map(({ ipBlock }) => ipBlock?.cidr)).toEqual(['0.0.0.0/0', '::/0']);
    const translated = /^(64:ff9b|2002):/;
    expect(except(peers, 1).filter((range) => !translated.test(range))).toEqual(['::/127', 'fc00::/7', 'fe80::/10', '2001:db8::1/128']);
  });

  test('excludes the IPv6 addresses that a network translates to excluded IPv4 addresses', () => {
    const ranges = except(internet(['198.51.100.1'], true), 1);
    expect(ranges).toEqual(expect.arrayContaining(['64:ff9b::a00:0/104', '64:ff9b::a9fe:0/112', '64:ff9b::c633:6401/128']));
    expect(ranges).toEqual(expect.arrayContaining(['2002:a00::/24', '2002:a9fe::/32', '2002:c633:6401::/48']));
  });

  test.each([
    ['10.1.2.3', true],
    ['172.31.0.1', true],
    ['169.254.169.254', true],
    ['fd00:ec2::254', true],
    ['64:ff9b::a9fe:a9fe', true],
    ['64:ff9b::808:808', false],
    ['2002:a00:1::1', true],
    ['8.8.8.8', false],
    ['2606:4700::1', false],
  ])('%s is inside: %s', (address, inside) => expect(isInside(address)).toBe(inside));

  test.each([
    ['10.0.0.0/8', true],
    ['fd00::/8', true],
    ['10.0.0.0', false],
    ['10.0.0.0/33', false],
    ['10.0.0/8', false],
    ['databases', false],
  ])('%s is a range: %s', (text, is) => expect(isRange(text)).toBe(is));
});

describe('destinations that builds may reach', () => {
  const targets = async (info: KfInfo, env: Record<string, string>, names: Record<string, string[]> = {}) => {
    const asked: string[] = [];
    const hosts = new BuildHosts((name) => {
      asked.push(name);
      const addresses = names[name];
      return addresses === undefined ? Promise.reject(new Error('ENOTFOUND')) : Promise.resolve(addresses);
    });
    const at = (now: number): Promise<BuildTarget[]> => hosts.targets(info, now, () => Promise.resolve(env));
    return { found: await at(0), at, asked };
  };

  test('are allowed by address and port: mirror, proxy and registry of the images', async () => {
    const info = infoWith({
      runImage: '10.0.0.1:5000/run:1',
      insecureRegistries: ['10.0.0.1:5000'],
    });
    const env = { NPM_CONFIG_REGISTRY: 'http://10.0.0.2:4873/npm/', HTTPS_PROXY: '10.0.0.3:3128', NO_PROXY: '10.0.0.4', OTHER: 'x' };
    expect((await targets(info, env)).found).toEqual([
      { to: { range: '10.0.0.1/32' }, port: 5000 },
      { to: { range: '10.0.0.2/32' }, port: 4873 },
      { to: { range: '10.0.0.3/32' }, port: 3128 },
    ]);
  });

  test('use the named port, also for another scheme, and a scheme may be in capitals', async () => {
    const env = {
      NPM_CONFIG_REGISTRY: 'https://10.0.0.2:80/npm/',
      PIP_INDEX_URL: 'HTTP://10.0.0.3/simple',
      GOPROXY: 'HTTPS://[fd00::1]:443',
    };
    expect((await targets(infoWith({}), env)).found).toEqual([
      { to: { range: '10.0.0.2/32' }, port: 80 },
      { to: { range: '10.0.0.3/32' }, port: 80 },
      { to: { range: 'fd00::1/128' }, port: 443 },
    ]);
  });

  test('include private addresses of a name, and for a name on the internet its port', async () => {
    const env = {
      PIP_INDEX_URL: 'https://user:secret@pip.example.com/simple',
      GOPROXY: 'https://go.internal|direct',
      MIRROR: 'http://nexus.tools.svc.cluster.local:8081/',
    };
    const { found } = await targets(infoWith({ runImage: 'docker.io/library/run:1' }), env, {
      'go.internal': ['10.1.1.1', '10.1.1.2'],
      'pip.example.com': ['198.51.100.7'],
    });
    expect(found).toEqual([
      { to: 'internet', port: 443 },
      { to: { range: '10.1.1.1/32' }, port: 443 },
      { to: { range: '10.1.1.2/32' }, port: 443 },
      { to: { namespace: 'tools' } },
    ]);
  });

  test('use names that are resolved once a minute, and keep the last addresses if DNS fails', async () => {
    const names: Record<string, string[]> = { 'npm.internal': ['10.1.1.1'] };
    const env = { NPM_CONFIG_REGISTRY: 'https://npm.internal/' };
    const { at, asked, found } = await targets(infoWith({}), env, names);
    expect(found).toEqual([{ to: { range: '10.1.1.1/32' }, port: 443 }]);
    await at(59_000);
    expect(asked).toEqual(['npm.internal']);
    delete names['npm.internal'];
    await at(60_000);
    expect(asked).toHaveLength(2);
    expect(await at(61_000)).toEqual(found);
  });
});

test('apps and builds of a space are selected by different policies, each pod by one', () => {
  const info = infoWith({});
  const [apps, builds] = spacePolicies('s-1', { info, settings, closed: [], builds: [] });
  const expression = { key: 'korifi.cloudfoundry.org/build-guid' };
  expect(apps?.spec.podSelector.matchExpressions).toEqual([{ ...expression, operator: 'DoesNotExist' }]);
  expect(builds?.spec.podSelector.matchExpressions).toEqual([{ ...expression, operator: 'Exists' }]);
  expect([apps?.spec.policyTypes, builds?.spec.policyTypes]).toEqual([
    ['Ingress', 'Egress'],
    ['Ingress', 'Egress'],
  ]);
  expect(builds?.spec.ingress).toBeUndefined();
});

test('ranges of the operator are allowed for apps and not for builds', () => {
  const named = { ...settings, egress: ['10.20.0.0/16', 'databases'], ingress: ['monitoring'] };
  const [apps, builds] = spacePolicies('s-1', { info: infoWith({}), settings: named, closed: [], builds: [] });
  const database = { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'databases' } } };
  expect(apps?.spec.egress?.flatMap(({ to = [] }) => to)).toEqual(
    expect.arrayContaining([{ ipBlock: { cidr: '10.20.0.0/16' } }, database]),
  );
  expect(JSON.stringify(apps?.spec.ingress)).toContain('monitoring');
  expect(JSON.stringify(builds)).not.toMatch(/databases|10\.20|monitoring/);
});

test('the controller can reach apps, to ask an instance itself if no gateway of kf answers', () => {
  const [apps, builds] = spacePolicies('s-1', { info: infoWith({}), settings, closed: [], builds: [] });
  const controller = {
    namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'kf-system' } },
    podSelector: { matchLabels: { app: 'kf-controller' } },
  };
  expect(apps?.spec.ingress?.flatMap(({ from = [] }) => from)).toContainEqual(controller);
  expect(builds?.spec.ingress).toBeUndefined();
});

describe('the policies of kf-system', () => {
  const facts: NetworkFacts = { ...settings, nodes: { addresses: [], podRanges: [] } };
  const policies = (request: SetupRequest): Record<string, NetworkPolicy> =>
    Object.fromEntries(
      buildSystemPolicies(resolvePlan(request, '1.0.0', 'hostport', facts)).map((one) => [one.metadata.name, one as NetworkPolicy]),
    );
  const namespaces = (policy: NetworkPolicy | undefined): (string | undefined)[] =>
    (policy?.spec.ingress ?? []).flatMap(({ from = [] }) =>
      from.map(({ namespaceSelector }) => namespaceSelector?.matchLabels?.['kubernetes.io/metadata.name']),
    );

  test('admit the pods that a class of the operator runs for the Gateway there, and no others', () => {
    expect(policies({ gatewayClass: 'edge' })['kf-gateway-class']?.spec).toEqual({
      podSelector: { matchLabels: { 'gateway.networking.k8s.io/gateway-name': 'kf' } },
      policyTypes: ['Ingress'],
      ingress: [{}],
    });
    expect(Object.keys({ ...policies({}), ...policies({ gateway: 'infra/public' }) })).not.toContain('kf-gateway-class');
  });

  test.each<[SetupRequest, string[]]>([
    [{}, ['kf-node']],
    [{ gateway: 'infra/public' }, ['infra', 'edge-pods']],
    [{ gatewayClass: 'edge' }, ['kf-system', 'edge-pods']],
  ])('admit the gateway of %j, even if its pods run elsewhere', (request, from) => {
    const named = policies({ ...request, appIngress: ['edge-pods'] });
    expect(namespaces(named['kf-pages'])).toEqual(from);
    expect(namespaces(named['kf-controller'])).toEqual(from);
  });
});

test('a policy of an app has no empty list, which the API server does not keep', () => {
  const app = asStored({ metadata: { name: 'a-1', namespace: 's-1', uid: 'u-1' }, spec: {} } as unknown as CFApp);
  const half = (direction: string): Stored<CFNetworkPolicy> =>
    asStored({
      metadata: { name: direction, namespace: 's-1' },
      spec: { appRef: { name: 'a-1' }, direction, protocol: 'tcp', port: 80, peer: { space: 's-2', app: 'a-2', uid: 'u-2' } },
    } as unknown as CFNetworkPolicy);
  const listsOf = (...directions: string[]): string[] =>
    Object.keys(appNetworkPolicy(app, directions.map(half)).spec).filter((key) => ['ingress', 'egress'].includes(key));
  expect([listsOf('accepts'), listsOf('connects'), listsOf('accepts', 'connects')]).toEqual([
    ['ingress'],
    ['egress'],
    ['ingress', 'egress'],
  ]);
});

test('apps of one space reach each other only by their network policies, and other pods of the space reach them and are reached', () => {
  const [apps] = spacePolicies('s-1', { info: infoWith({}), settings, closed: [], builds: [] });
  const own = [
    ...(apps?.spec.ingress ?? []).flatMap(({ from = [] }) => from),
    ...(apps?.spec.egress ?? []).flatMap(({ to = [] }) => to),
  ].filter(({ namespaceSelector, ipBlock }) => namespaceSelector === undefined && ipBlock === undefined);
  const noApps = { podSelector: { matchExpressions: [{ key: 'korifi.cloudfoundry.org/app-guid', operator: 'DoesNotExist' }] } };
  expect(own).toEqual([noApps, noApps]);
});

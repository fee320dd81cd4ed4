// Commands for network policies, with the controller's own reconciler behind the served cluster: a connection is allowed when there is a NetworkPolicy
// on both sides.

import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { appNetworkReconciler } from '../../../src/controller/apps/network.ts';
import { createLogger } from '../../../src/controller/runtime/log.ts';
import { Manager } from '../../../src/controller/runtime/manager.ts';
import { sources } from '../../../src/controller/sources.ts';
import { configMapType } from '../../../src/lib/api/core.ts';
import { kinds, labels } from '../../../src/lib/api/group.ts';
import { parseKfInfo } from '../../../src/lib/api/kf-info.ts';
import { networkPolicyType } from '../../../src/lib/api/network-policy.ts';
import { KubeError } from '../../../src/lib/kube/errors.ts';
import { bundleForTests, Cli, type CliRun } from '../../support/cli.ts';
import { ServedCluster } from '../../support/served-cluster.ts';
import { patienceMs } from '../../support/until.ts';

const bundle = bundleForTests();
const place = 'in org example-org / space example-space as alice...';
const enforced = { enforced: true, egress: [], ingress: [], dns: [], apiServer: [], ipv6: false };
let cluster: ServedCluster;
let cli: Cli;
let stopController: () => Promise<void>;

beforeEach(async () => {
  cluster = await (await ServedCluster.start()).installed();
  cli = new Cli(bundle.program, { KUBECONFIG: cluster.server.kubeconfig(), KF_ORG: 'example-org', KF_SPACE: 'example-space' });
  await setNetwork(enforced);
  await cluster.add(kinds.org, { metadata: { name: 'second-guid', namespace: 'cf' }, spec: { displayName: 'second-org' } });
  await cluster.add(kinds.space, { metadata: { name: 'far-guid', namespace: 'second-guid' }, spec: { displayName: 'far' } });
  for (const name of ['front', 'back']) await addApp(name, 'space-guid');
  await addApp('distant', 'far-guid');
  stopController = runController();
});
afterEach(async () => {
  await stopController();
  await cluster.stop();
  cli.remove();
});
afterAll(() => bundle.remove());

async function setNetwork(network: object | undefined): Promise<void> {
  const info = parseKfInfo(cluster.memory.peek(configMapType, 'cf', 'kf-info')?.data?.['info.json'] ?? '');
  await cluster.memory.mergePatch(configMapType, 'cf', 'kf-info', { data: { 'info.json': JSON.stringify({ ...info, network }) } });
}

function runController(): () => Promise<void> {
  const aborter = new AbortController();
  const running = new Manager({
    cluster: cluster.memory,
    sources: sources('cf'),
    reconcilers: [appNetworkReconciler],
    leader: { ns: 'kf-system', name: 'kf-controller', identity: 'one', followMs: 20 },
    rootNamespace: 'cf',
    log: createLogger('error', () => undefined),
  }).run(aborter.signal);
  return async () => {
    aborter.abort();
    await running;
  };
}

async function addApp(name: string, namespace: string): Promise<void> {
  const lifecycle = { type: 'buildpack' as const, data: { stack: '' } };
  await cluster.add(kinds.app, {
    metadata: { name: `${name}-guid`, namespace },
    spec: { displayName: name, desiredState: 'STOPPED', lifecycle, envSecretName: 'env' },
  });
}

/** `front-guid > space-guid/back-guid TCP 8080`: what the NetworkPolicies allow, in both directions. */
const allowed = (): string[] =>
  cluster.memory
    .all(networkPolicyType)
    .flatMap(({ spec }) => {
      const own = spec.podSelector.matchLabels?.[labels.appGuid] ?? '';
      const rules = [
        ...(spec.egress ?? []).map(({ to = [], ports = [] }) => ({ sign: '>', peers: to, ports })),
        ...(spec.ingress ?? []).map(({ from = [], ports = [] }) => ({ sign: '<', peers: from, ports })),
      ];
      return rules.map(({ sign, peers: [peer], ports: [port] }) => {
        const ns = peer?.namespaceSelector?.matchLabels?.['kubernetes.io/metadata.name'] ?? '';
        const range = `${String(port?.port)}${port?.endPort === undefined ? '' : `-${String(port.endPort)}`}`;
        return `${own} ${sign} ${ns}/${peer?.podSelector?.matchLabels?.[labels.appGuid] ?? ''} ${port?.protocol ?? ''} ${range}`;
      });
    })
    .sort();

const untilAllowed = (...wanted: string[]): Promise<void> => vi.waitFor(() => expect(allowed()).toEqual(wanted), { timeout: patienceMs });
const run = (...argv: string[]): Promise<CliRun> => cli.run(argv);
const frontToBack = ['back-guid < space-guid/front-guid TCP 8080', 'front-guid > space-guid/back-guid TCP 8080'];

describe('add-network-policy', () => {
  it('allows connections when both spaces have a half of the policy', async () => {
    const added = await run('add-network-policy', 'front', 'back');
    expect(added).toMatchObject({ code: 0, stderr: '' });
    expect(added.stdout).toBe(`Adding network policy from app front to app back ${place}\nOK\n\n`);
    await untilAllowed(...frontToBack);
    const table = [
      `Listing network policies ${place}`,
      '',
      'source   destination   protocol   ports   destination space   destination org',
      'front    back          tcp        8080    example-space       example-org',
      '',
    ].join('\n');
    expect((await run('network-policies')).stdout).toBe(table);
    const again = await run('add-network-policy', 'front', 'back', '--json');
    expect(JSON.parse(again.stdout)).toMatchObject({ result: { source: 'front', destination: 'back', added: false } });
    // A developer of the destination's space withdraws its half.
    const accepting = cluster.memory.all(kinds.networkPolicy).find(({ spec }) => spec.direction === 'accepts');
    await cluster.memory.delete(kinds.networkPolicy, 'space-guid', accepting?.metadata.name ?? '');
    await untilAllowed();
    expect((await run('network-policies')).stdout).not.toContain('front');
  });

  it('-s and -o name the space of the destination', async () => {
    const added = await run('add-network-policy', 'front', 'distant', '-s', 'far', '-o', 'second-org');
    const ends = 'from app front in org example-org / space example-space to app distant in org second-org / space far as alice...';
    expect(added).toMatchObject({ code: 0, stdout: `Adding network policy ${ends}\nOK\n\n` });
    await untilAllowed('distant-guid < space-guid/front-guid TCP 8080', 'front-guid > far-guid/distant-guid TCP 8080');
    expect((await run('network-policies')).stdout).toMatch(/^front +distant +tcp +8080 +far +second-org$/m);
    const removed = await run(
      'remove-network-policy',
      'front',
      'distant',
      '-s',
      'far',
      '-o',
      'second-org',
      '--port',
      '8080',
      '--protocol',
      'tcp',
    );
    expect(removed).toMatchObject({ code: 0, stdout: `Removing network policy ${ends}\nOK\n\n` });
    await untilAllowed();
  });

  it('--port takes a range, and --protocol udp', async () => {
    expect((await run('add-network-policy', 'front', 'back', '--protocol', 'udp', '--port', '53-60')).code).toBe(0);
    await untilAllowed('back-guid < space-guid/front-guid UDP 53-60', 'front-guid > space-guid/back-guid UDP 53-60');
    expect((await run('network-policies')).stdout).toMatch(/^front +back +udp +53-60 /m);
  });

  it.each([
    [['--port', '80'], '--protocol and --port flags must be specified together'],
    [['--protocol', 'tcp'], '--protocol and --port flags must be specified together'],
    [['--protocol', 'icmp', '--port', '80'], 'PROTOCOL must be "tcp" or "udp"'],
    [['--protocol', 'tcp', '--port', 'http'], 'PORT syntax must match integer[-integer]'],
    [['--protocol', 'tcp', '--port', '90-80'], 'from a lower to a higher one'],
    [['--protocol', 'tcp', '--port', '65536'], 'between 1 and 65535'],
    [['-o', 'second-org'], 'A space must be provided when an org is provided'],
  ])('%j is refused before anything is read: %s', async (flags, text) => {
    const refused = await run('add-network-policy', 'front', 'back', ...flags);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain(`Incorrect Usage: `);
    expect(refused.stderr).toContain(text);
  });

  it.each([
    [['nobody', 'back'], "App 'nobody' not found."],
    [['front', 'nobody'], "App 'nobody' not found."],
    [['front', 'distant'], "App 'distant' not found."],
    [['front', 'back', '-s', 'nowhere'], "Space 'nowhere' not found."],
    [['front', 'back', '-s', 'far', '-o', 'nowhere'], "Organization 'nowhere' not found."],
  ])('%j: %s', async (argv, text) => {
    const refused = await run('add-network-policy', ...argv);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain(text);
  });

  it('without the right to write in the space of the destination writes nothing, and says which right lacks', async () => {
    cluster.server.on('POST .*/selfsubjectaccessreviews', (call) =>
      call.json({ status: { allowed: !call.body.includes('"far-guid"') } }, 201),
    );
    const refused = await run('add-network-policy', 'front', 'distant', '-s', 'far', '-o', 'second-org', '--json');
    expect(refused.code).toBe(1);
    expect(JSON.parse(refused.stdout)).toMatchObject({
      error: { code: 'forbidden', details: { missingRights: [{ verb: 'create', resource: 'cfnetworkpolicies', ns: 'far-guid' }] } },
    });
    expect(cluster.memory.all(kinds.networkPolicy)).toEqual([]);
  });

  it.each([
    [undefined, 'kf makes no NetworkPolicies in this cluster'],
    [{ ...enforced, enforced: false }, 'The network of this cluster does not enforce NetworkPolicies'],
  ])('in a cluster whose network is %j says that apps can connect without a policy', async (network, text) => {
    await setNetwork(network);
    const added = await run('add-network-policy', 'front', 'back');
    expect(added).toMatchObject({ code: 0, stderr: expect.stringContaining(text) as string });
  });
});

it('an app that got the GUID of a deleted one gets none of its connections', async () => {
  await run('add-network-policy', 'front', 'back');
  await untilAllowed(...frontToBack);
  await cluster.memory.delete(kinds.app, 'space-guid', 'front-guid');
  await untilAllowed();
  await addApp('front', 'space-guid');
  const [front, back] = ['front', 'back'].map((name) => cluster.memory.peek(kinds.app, 'space-guid', `${name}-guid`)?.metadata.uid ?? '');
  const half = (app: string, direction: 'connects' | 'accepts', peer: string, uid = ''): Promise<unknown> =>
    cluster.add(kinds.networkPolicy, {
      metadata: { name: `${direction}-${uid}`, namespace: 'space-guid' },
      spec: { appRef: { name: app }, direction, peer: { space: 'space-guid', app: peer, uid }, protocol: 'tcp', port: 8080 },
    });
  await half('back-guid', 'accepts', 'front-guid', 'uid-of-the-deleted-one');
  await half('front-guid', 'connects', 'back-guid', back);
  expect(front).not.toBe('uid-of-the-deleted-one');
  // A change after it that has an effect: the one before had none.
  await run('add-network-policy', 'back', 'front');
  await untilAllowed('back-guid > space-guid/front-guid TCP 8080', 'front-guid < space-guid/back-guid TCP 8080');
});

it('a policy from a backup, whose name is of the uids of before, is listed, is not added again, and is removed', async () => {
  const uidOf = (app: string): string => cluster.memory.peek(kinds.app, 'space-guid', app)?.metadata.uid ?? '';
  const halves = [
    ['front-guid', 'connects', 'back-guid'],
    ['back-guid', 'accepts', 'front-guid'],
  ] as const;
  for (const [name, direction, peer] of halves)
    await cluster.add(kinds.networkPolicy, {
      metadata: { name: `${direction}-of-before`, namespace: 'space-guid' },
      spec: { appRef: { name }, direction, peer: { space: 'space-guid', app: peer, uid: uidOf(peer) }, protocol: 'tcp', port: 8080 },
    });
  await untilAllowed(...frontToBack);
  expect((await run('network-policies')).stdout).toMatch(/^front +back +tcp +8080 /m);
  expect(JSON.parse((await run('add-network-policy', 'front', 'back', '--json')).stdout)).toMatchObject({ result: { added: false } });
  expect(cluster.memory.all(kinds.networkPolicy).map(({ metadata }) => metadata.name)).toEqual(['connects-of-before', 'accepts-of-before']);
  const removed = await run('remove-network-policy', 'front', 'back', '--protocol', 'tcp', '--port', '8080');
  expect(removed).toMatchObject({ code: 0, stdout: expect.not.stringContaining('does not exist') as string });
  expect(cluster.memory.all(kinds.networkPolicy)).toEqual([]);
  await untilAllowed();
});

/** The API server's text. */
const full = 'cfnetworkpolicies "x" is forbidden: exceeded quota: kf-limits, requested: a=1, used: a=200, limited: a=200';

describe('halves whose other app is gone', () => {
  const halves = (): string[] =>
    cluster.memory
      .all(kinds.networkPolicy)
      .map(({ metadata, spec }) => `${metadata.namespace ?? ''} ${spec.direction} ${spec.peer.app} ${String(spec.port)}`)
      .sort();
  /** What the garbage collector does: the halves of an app go with it. */
  const deleteApp = async (name: string, ns: string): Promise<void> => {
    const guid = `${name}-guid`;
    await cluster.memory.delete(kinds.app, ns, guid);
    for (const { metadata, spec } of cluster.memory.all(kinds.networkPolicy))
      if (spec.appRef.name === guid) await cluster.memory.delete(kinds.networkPolicy, ns, metadata.name ?? '');
  };
  const distant = ['-s', 'far', '-o', 'second-org'];

  beforeEach(async () => {
    await run('add-network-policy', 'front', 'distant', ...distant);
    await run('add-network-policy', 'front', 'back', '--protocol', 'tcp', '--port', '81');
    await run('add-network-policy', 'back', 'front', '--protocol', 'tcp', '--port', '82');
    await deleteApp('back', 'space-guid');
    await addApp('back', 'space-guid');
    expect(halves()).toHaveLength(4);
  });

  const whole = ['far-guid accepts front-guid 8080', 'space-guid connects distant-guid 8080'];

  it('are deleted by the next add-network-policy, also when another app has the GUID now', async () => {
    expect((await run('add-network-policy', 'front', 'back')).code).toBe(0);
    expect(halves()).toEqual([...whole, 'space-guid accepts front-guid 8080', 'space-guid connects back-guid 8080'].sort());
  });

  it('are deleted by remove-network-policy too, and in the space of the destination', async () => {
    await deleteApp('front', 'space-guid');
    await addApp('front', 'space-guid');
    expect(halves()).toEqual(['far-guid accepts front-guid 8080']);
    expect((await run('remove-network-policy', 'front', 'distant', ...distant, '--protocol', 'tcp', '--port', '1')).code).toBe(0);
    expect(halves()).toEqual([]);
  });

  it('stay when the caller may not read the space of the other app, or may not delete them', async () => {
    cluster.server.on('GET .*/namespaces/far-guid/cfapps', (call) => call.fail(403, 'Forbidden', 'User "alice" cannot list'));
    cluster.server.on('DELETE .*/cfnetworkpolicies/.*', (call) => call.fail(403, 'Forbidden', 'User "alice" cannot delete'));
    await deleteApp('distant', 'far-guid');
    expect((await run('add-network-policy', 'front', 'back')).code).toBe(0);
    expect(halves()).toHaveLength(5);
    expect(cluster.server.callsOf('DELETE .*/cfnetworkpolicies/.*')).toHaveLength(2);
  });

  it('no longer count when the quota that was full of them has been counted again', async () => {
    let refused = 0;
    cluster.memory.intercept = (verb, { plural }) => {
      if (verb !== 'create' || plural !== kinds.networkPolicy.plural || refused > 0) return;
      refused += 1;
      throw new KubeError('quota', full, { status: 403, reason: 'Forbidden' });
    };
    expect((await run('add-network-policy', 'front', 'back')).code).toBe(0);
    expect([refused, halves().length]).toEqual([1, 4]);
  });
});

it('when a quota refuses the second half, the first one is taken back, but not one that was there before', async () => {
  const refuse = () => {
    cluster.server.on('POST .*/namespaces/space-guid/cfnetworkpolicies', (call) => call.fail(403, 'Forbidden', full));
  };
  const add = ['add-network-policy', 'front', 'distant', '-s', 'far', '-o', 'second-org'];
  await run(...add);
  const own = cluster.memory.all(kinds.networkPolicy).find(({ metadata }) => metadata.namespace === 'space-guid');
  await cluster.memory.delete(kinds.networkPolicy, 'space-guid', own?.metadata.name ?? '');
  refuse();
  const places = () => cluster.memory.all(kinds.networkPolicy).map(({ metadata, spec }) => [metadata.namespace, spec.port]);
  const failed = await run(...add);
  expect([failed.code, failed.stderr]).toEqual([1, expect.stringContaining('kf-limits')]);
  expect(places()).toEqual([['far-guid', 8080]]);
  expect((await run(...add, '--protocol', 'tcp', '--port', '81')).code).toBe(1);
  expect(places()).toEqual([['far-guid', 8080]]);
});

it('remove-network-policy removes a policy of before and of after a restore together, and no other one', async () => {
  await run('add-network-policy', 'front', 'back');
  await run('add-network-policy', 'front', 'back', '--protocol', 'tcp', '--port', '8081');
  await run('add-network-policy', 'back', 'front');
  const twins = cluster.memory.all(kinds.networkPolicy).filter(({ spec }) => spec.port === 8080);
  for (const { metadata, spec } of twins)
    await cluster.add(kinds.networkPolicy, { metadata: { name: `${metadata.name}-of-before`, namespace: 'space-guid' }, spec });
  await run('remove-network-policy', 'front', 'back', '--protocol', 'tcp', '--port', '8080');
  const rows = JSON.parse((await run('network-policies', '--source', 'front', '--json')).stdout) as { result: unknown[] };
  expect(rows.result).toMatchObject([{ source: 'front', destination: 'back', ports: '8081' }]);
  expect(cluster.memory.all(kinds.networkPolicy)).toHaveLength(6);
});

it('the NetworkPolicy of an app is restored when somebody changes or deletes it', async () => {
  await run('add-network-policy', 'front', 'back');
  await untilAllowed(...frontToBack);
  await cluster.memory.mergePatch(networkPolicyType, 'space-guid', 'kf-app-back-guid', { spec: { ingress: [{}] } });
  await cluster.memory.delete(networkPolicyType, 'space-guid', 'kf-app-front-guid');
  await untilAllowed(...frontToBack);
});

it('network-policies --source lists those of one app', async () => {
  await run('add-network-policy', 'front', 'back');
  await run('add-network-policy', 'back', 'front');
  const listed = await run('network-policies', '--source', 'back');
  expect(listed.stdout).toMatch(
    /^Listing network policies of app back in org .*\n\nsource.*\nback +front +tcp +8080 +example-space +example-org\n$/,
  );
  expect((await run('network-policies', '--source', 'nobody')).stderr).toContain("App 'nobody' not found.");
});

describe('remove-network-policy', () => {
  const remove = (...argv: string[]): Promise<CliRun> =>
    run('remove-network-policy', 'front', 'back', '--protocol', 'tcp', '--port', '8080', ...argv);

  it('forbids them again', async () => {
    await run('add-network-policy', 'front', 'back');
    await untilAllowed(...frontToBack);
    expect(await remove()).toMatchObject({ code: 0, stdout: `Removing network policy from app front to app back ${place}\nOK\n\n` });
    await untilAllowed();
    const again = await remove();
    expect(again).toMatchObject({ code: 0, stdout: expect.stringContaining('...\nPolicy does not exist.\nOK\n') as string });
  });

  it('needs the right to write in one of the spaces only', async () => {
    const ends = ['front', 'distant', '-s', 'far', '-o', 'second-org'];
    await run('add-network-policy', ...ends);
    await vi.waitFor(() => expect(allowed()).toHaveLength(2), { timeout: patienceMs });
    cluster.server.on('DELETE .*/namespaces/far-guid/cfnetworkpolicies/.*', (call) => call.fail(403, 'Forbidden', 'User "alice" cannot'));
    const removed = await run('remove-network-policy', ...ends, '--protocol', 'tcp', '--port', '8080');
    expect(removed).toMatchObject({ code: 0, stderr: expect.stringContaining("The space of app 'distant' still has its half") as string });
    await untilAllowed();
  });

  it('needs port and protocol', async () => {
    const refused = await run('remove-network-policy', 'front', 'back');
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain('--port');
  });
});

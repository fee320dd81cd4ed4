import { Readable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { secretType } from '../../../src/lib/api/core.ts';
import { podType } from '../../../src/lib/api/pod-kind.ts';
import { kinds } from '../../../src/lib/api/group.ts';
import { checkPlan, inspectCluster } from '../../../src/lib/ops/install/preflight.ts';
import { resolvePlan, type SetupRequest } from '../../../src/lib/ops/install/request.ts';
import { kindNamed } from '../../../src/lib/ops/install/kinds.ts';
import type { Cluster } from '../../../src/lib/kube/cluster.ts';
import { renderEvent } from '../../../src/lib/views/progress.ts';
import { MemoryCluster } from '../../support/memory-cluster.ts';

/** The warnings that setup prints of what it finds. */
async function warningsOf(...args: Parameters<typeof checkPlan>): Promise<string[]> {
  const shown = (await checkPlan(...args)).flatMap((finding) => renderEvent(finding, 'kf'));
  return shown.flatMap((line) => ('warn' in line ? [line.warn] : []));
}

const check = (cluster: MemoryCluster, request: SetupRequest): Promise<string[]> =>
  warningsOf(cluster, resolvePlan(request, '0.1.0', 'hostport'));

test('a Gateway or a class that does not exist is refused and named', async () => {
  await expect(check(new MemoryCluster(), { gateway: 'infra/public' })).rejects.toThrow(
    "There is no Gateway 'public' in namespace 'infra'.",
  );
  await expect(check(new MemoryCluster(), { gatewayClass: 'nginx' })).rejects.toThrow("There is no GatewayClass 'nginx'.");
});

describe('an existing Gateway is accepted', () => {
  const warningsFor = async (...from: (string | undefined)[]): Promise<string[]> => {
    const cluster = new MemoryCluster();
    const listeners = from.map((one, index) => ({
      name: `l-${index}`,
      protocol: 'HTTP',
      ...(one === undefined ? {} : { allowedRoutes: { namespaces: { from: one } } }),
    }));
    const metadata = { namespace: 'infra', name: 'public' };
    await cluster.create(kindNamed('Gateway'), {
      apiVersion: 'gateway.networking.k8s.io/v1',
      kind: 'Gateway',
      metadata,
      ...{ spec: { listeners } },
    });
    return check(cluster, { gateway: 'infra/public' });
  };
  const advice = 'namespaces with the label kf.cloudfoundry.org/managed-by=kf only';

  test('without a warning if it accepts routes of selected namespaces', async () => {
    await expect(warningsFor('Selector')).resolves.toEqual([]);
    await expect(warningsFor('Same', 'Selector')).resolves.toEqual([]);
  });

  test('with a warning if everybody could take a host there', async () => {
    const [warning = ''] = await warningsFor('Selector', 'All');
    expect(warning).toMatch(/^The Gateway 'infra\/public' takes routes of every namespace: /);
    expect(warning).toContain(advice);
  });

  test.each([[['Same']], [[undefined]]])('with a warning if no app would be reachable: %j', async (from) => {
    const [warning = ''] = await warningsFor(...from);
    expect(warning).toMatch(/takes routes of its own namespace only, so no app will be reached\. /);
    expect(warning).toContain(advice);
  });
});

describe('a Gateway whose pods may run elsewhere', () => {
  const facts = { dns: [], apiServer: [], ipv6: false, nodes: { addresses: [], podRanges: [] } };
  const warningsFor = async (request: SetupRequest, label?: string): Promise<string[]> => {
    const cluster = new MemoryCluster();
    const listeners = [{ name: 'http', protocol: 'HTTP', allowedRoutes: { namespaces: { from: 'Selector' } } }];
    const metadata = { namespace: 'infra', name: 'public' };
    const gateway = { apiVersion: 'gateway.networking.k8s.io/v1', kind: 'Gateway', metadata, ...{ spec: { listeners } } };
    await cluster.create(kindNamed('Gateway'), gateway);
    const labels = label === undefined ? {} : { 'gateway.networking.k8s.io/gateway-name': label };
    await cluster.create(podType, { metadata: { namespace: 'infra', name: 'pod', labels } });
    return warningsOf(cluster, resolvePlan({ gateway: 'infra/public', ...request }, '0.1.0', 'hostport', facts));
  };

  test('is reported with the setting that admits them', async () => {
    for (const label of [undefined, 'another']) {
      const [warning = '', ...more] = await warningsFor({}, label);
      expect(warning).toMatch(/^No pod in namespace 'infra' says that it serves the Gateway 'public' .* in appIngress of setup\.yaml/);
      expect(more).toEqual([]);
    }
  });

  test('is accepted if its pods run there, if the setting exists, or if there are no policies', async () => {
    expect(await warningsFor({}, 'public')).toEqual([]);
    expect(await warningsFor({ appIngress: ['envoy-gateway-system'] })).toEqual([]);
    expect(await warningsFor({ networkPolicies: 'off' })).toEqual([]);
  });
});

test('another default domain than the present one is refused before anything is written', async () => {
  const cluster = new MemoryCluster();
  const metadata = { namespace: 'cf', name: 'default-domain' };
  await cluster.create(kinds.domain, {
    apiVersion: 'korifi.cloudfoundry.org/v1alpha1',
    kind: 'CFDomain',
    metadata,
    spec: { name: 'apps.localhost' },
  });
  await expect(check(cluster, { domain: 'apps.example.com' })).rejects.toMatchObject({
    code: 'conflict',
    message: "This installation's default domain is 'apps.localhost'; it cannot become 'apps.example.com' in place.",
  });
  await expect(check(cluster, {})).resolves.toEqual([]);
});

test('an outside registry without its credentials is refused, with the commands that add them', async () => {
  const cluster = new MemoryCluster();
  const type = secretType;
  await cluster.create(type, { apiVersion: 'v1', kind: 'Secret', metadata: { namespace: 'cf', name: 'image-registry-credentials' } });
  const refused = check(cluster, { registry: 'registry.example.com/apps' });
  await expect(refused).rejects.toThrow(
    "The credentials of registry.example.com are missing: Secret 'kf-registry-push' in namespace 'cf'.",
  );
  await cluster.create(type, { apiVersion: 'v1', kind: 'Secret', metadata: { namespace: 'cf', name: 'kf-registry-push' } });
  await expect(check(cluster, { registry: 'registry.example.com/apps' })).resolves.toEqual([]);
});

/** An empty cluster whose API server reports this version. */
function clusterOf(minor: string, ...served: string[]): Cluster {
  const answers: Record<string, object> = {
    '/version': { major: '1', minor, gitVersion: `v1.${minor.replace('+', '')}.4` },
    '/apis/admissionregistration.k8s.io/v1': { kind: 'APIResourceList', resources: served.map((name) => ({ name })) },
  };
  const raw = ({ path }: { path: string }) =>
    Promise.resolve({ status: path in answers ? 200 : 404, headers: {}, body: Readable.from([JSON.stringify(answers[path] ?? {})]) });
  return Object.assign(new MemoryCluster(), { raw });
}

test.each(['29', '29+', '9'])('Kubernetes 1.%s is refused, and the message names what is missing', async (minor) => {
  await expect(inspectCluster(clusterOf(minor))).rejects.toMatchObject({
    code: 'failed',
    message: `Kubernetes v1.${minor.replace('+', '')}.4 is too old: kf needs ValidatingAdmissionPolicy v1 and sleep hooks, which came with 1.30.`,
  });
});

test.each(['30', '30+', '36'])('Kubernetes 1.%s is accepted', async (minor) => {
  await expect(inspectCluster(clusterOf(minor))).resolves.toMatchObject({ exposure: 'hostport', hasGatewayApi: false });
});

test('policies that set labels are only for a cluster that serves their kind', async () => {
  const policies = ['mutatingadmissionpolicies', 'mutatingadmissionpolicies/status', 'mutatingadmissionpolicybindings'];
  await expect(inspectCluster(clusterOf('36', ...policies))).resolves.toMatchObject({ hasMutatingPolicies: true });
  const older = clusterOf('35', 'validatingadmissionpolicies', 'mutatingwebhookconfigurations');
  await expect(inspectCluster(older)).resolves.toMatchObject({ hasMutatingPolicies: false });
});

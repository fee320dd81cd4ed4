// `kf-info`: what every command reads to know this installation.

import { annotations, places } from '../../lib/api/group.ts';
import type { KfInfo, NetworkSettings } from '../../lib/api/kf-info.ts';
import type { KubeObject } from '../../lib/api/object.ts';
import { encoded } from '../metadata.ts';
import { gatewayName, traefikName } from './gateway.ts';
import { gatewayNamespace } from './namespaces.ts';
import { rootNamespace, systemNamespace, type SetupNetwork, type SetupPlan } from './options.ts';
import { pullPrefix, pushHost, registryName } from './registry.ts';
import { defined } from '../../lib/defined.ts';

/** The facts of an installation made by `plan`. */
export function kfInfo(plan: SetupPlan): KfInfo {
  const namespace = gatewayNamespace(plan);
  const own = plan.gateway.existing === undefined && plan.gateway.className === undefined;
  return {
    format: 1,
    oldestCli: '0.1.0',
    root: rootNamespace,
    controller: { version: plan.version, namespace: systemNamespace },
    registry: {
      namespace: systemNamespace,
      service: registryName,
      port: 5000,
      pushHost: pushHost(plan),
      pullPrefix: pullPrefix(plan),
      ...(plan.registry === undefined && plan.registrySpaceQuotaBytes > 0 ? { spaceQuotaBytes: plan.registrySpaceQuotaBytes } : {}),
    },
    builder: {
      name: 'kf-builder',
      image: plan.images.builder,
      runImage: plan.images.run,
      insecureRegistries: [...new Set([...plan.insecureRegistries, ...(plan.registry?.insecure === true ? [plan.registry.host] : [])])],
      ...defined({ envRevision: plan.buildEnvRevision }),
    },
    programImage: plan.controllerImage ?? plan.images.node,
    defaultDomain: plan.domain,
    gateway: {
      namespace,
      name: plan.gateway.existing?.name ?? gatewayName,
      // Of a gateway that somebody else runs only what every one must have is taken for granted.
      features: ['HTTPRouteBackendWeight', ...(own ? ['HTTPRouteResponseHeaderModification', 'kf:PathRegularExpression'] : [])],
      ...(own ? { internalAddress: `http://${traefikName}.${namespace}.svc` } : {}),
      externalUrl: {
        scheme: 'http',
        port: plan.gateway.port,
        ...defined({ address: plan.gateway.address }),
      },
    },
    drainSeconds: plan.drainSeconds,
    processDefaults: plan.processDefaults,
    limits: plan.limits,
    tasksKeptPerApp: plan.tasksKeptPerApp,
    staging: plan.staging,
    defaults: { org: plan.org, space: plan.space },
    ...(plan.network === undefined ? {} : { network: networkSettings(plan.network) }),
  };
}

/** The environment of every build. Everybody may read kf-info, and a mirror's address may hold a password: so it lies apart, for the controller alone. */
export function buildInstallationEnv(plan: SetupPlan): KubeObject {
  const { buildEnv, buildEnvRevision } = plan;
  const metadata = {
    name: places.installationEnv,
    namespace: systemNamespace,
    ...(buildEnvRevision === undefined ? {} : { annotations: { [annotations.revision]: buildEnvRevision } }),
  };
  return { apiVersion: 'v1', kind: 'Secret', metadata, ...{ type: 'Opaque', data: encoded(buildEnv) } };
}

/** Without the nodes: those change, and the controller sees them itself. In one order, so that the same facts are the same text. */
function networkSettings({ enforced, egress, ingress, dns, apiServer, ipv6 }: SetupNetwork): NetworkSettings {
  return { ...defined({ enforced }), egress, ingress, dns, apiServer, ipv6 };
}

/** The ConfigMap; that everybody may read it is in manifests/roles.yaml. */
export function buildInfo(plan: SetupPlan): KubeObject[] {
  const data = { 'info.json': `${JSON.stringify(kfInfo(plan), null, 2)}\n` };
  return [{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'kf-info', namespace: rootNamespace }, ...{ data } }];
}

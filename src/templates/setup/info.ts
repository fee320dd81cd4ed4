// `kf-info`: the description of an installation, which every command reads.

import { annotations, places } from '../../lib/api/group.ts';
import { compareVersions, releaseBefore, type KfInfo, type NetworkSettings } from '../../lib/api/kf-info.ts';
import type { KubeObject } from '../../lib/api/object.ts';
import { encoded } from '../metadata.ts';
import { gatewayName, internalName, traefikName } from './gateway.ts';
import { gatewayNamespace } from './namespaces.ts';
import { rootNamespace, systemNamespace, type SetupGateway, type SetupNetwork, type SetupPlan } from './options.ts';
import { pullPrefix, pushHost, registryName } from './registry.ts';
import { defined } from '../../lib/defined.ts';

/**
 * Higher than that of every release whose setup cannot take this installation back: its controller would not work beside the policies, roles and
 * objects of this one, or apps would be replaced. 0.1.0 writes none.
 */
const setupFormat = 1;

/** The oldest CLI that does no harm, if a release is stricter than that CLI and controller may be one release apart. */
const oldestCli = '0.1.0';

const newer = (a: string, b: string): string => (compareVersions(a, b) < 0 ? b : a);

/** The address at which the CLI asks whether a URL answers. */
export function outsideAddress({ port, address, https }: SetupGateway): NonNullable<KfInfo['gateway']['externalUrl']> {
  const at = https?.redirect === true ? ({ scheme: 'https', port: https.port } as const) : ({ scheme: 'http', port } as const);
  return { ...at, ...defined({ address }) };
}

/** The facts of an installation made by `plan`. */
export function kfInfo(plan: SetupPlan): KfInfo {
  const namespace = gatewayNamespace(plan);
  const own = plan.gateway.existing === undefined && plan.gateway.className === undefined;
  const { https } = plan.gateway;
  const isRedirected = https?.redirect === true;
  // The controller knows only the Service of kf's own gateway.
  const seen = own ? `https://${traefikName}.${namespace}.svc` : undefined;
  return {
    format: 1,
    oldestCli: newer(oldestCli, releaseBefore(plan.version)),
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
      // For a gateway that somebody else runs, only required features are assumed.
      features: ['HTTPRouteBackendWeight', ...(own ? ['HTTPRouteResponseHeaderModification', 'kf:PathRegularExpression'] : [])],
      ...(own ? { internalAddress: `http://${isRedirected ? internalName : traefikName}.${namespace}.svc` } : {}),
      externalUrl: outsideAddress(plan.gateway),
      ...defined({ https: https && { ...https, ...defined({ internalAddress: seen }) } }),
    },
    drainSeconds: plan.drainSeconds,
    graceSeconds: plan.graceSeconds,
    processDefaults: plan.processDefaults,
    limits: plan.limits,
    tasksKeptPerApp: plan.tasksKeptPerApp,
    staging: plan.staging,
    defaults: { org: plan.org, space: plan.space },
    ...defined({ network: plan.network && networkSettings(plan.network) }),
  };
}

/**
 * The environment of every build. Everybody may read kf-info, and a mirror's address may contain a password, so this is a separate object for the
 * controller only.
 */
export function buildInstallationEnv(plan: SetupPlan): KubeObject {
  const { buildEnv, buildEnvRevision } = plan;
  const metadata = {
    name: places.installationEnv,
    namespace: systemNamespace,
    ...(buildEnvRevision === undefined ? {} : { annotations: { [annotations.revision]: buildEnvRevision } }),
  };
  return { apiVersion: 'v1', kind: 'Secret', metadata, ...{ type: 'Opaque', data: encoded(buildEnv) } };
}

/** Without the nodes: they change, and the controller reads them itself. In a fixed order, so that equal facts give equal text. */
function networkSettings({ enforced, egress, ingress, dns, apiServer, ipv6 }: SetupNetwork): NetworkSettings {
  return { ...defined({ enforced }), egress, ingress, dns, apiServer, ipv6 };
}

/** The ConfigMap; manifests/roles.yaml lets everybody read it. */
export function buildInfo(plan: SetupPlan): KubeObject[] {
  const data = { 'info.json': `${JSON.stringify(kfInfo(plan), null, 2)}\n` };
  const metadata = { name: places.info, namespace: rootNamespace, annotations: { [annotations.setupFormat]: String(setupFormat) } };
  return [{ apiVersion: 'v1', kind: 'ConfigMap', metadata, ...{ data } }];
}

// Quotas of orgs and of spaces, and what an org or space uses.

import type { Stored } from '../api/object.ts';
import type { CFQuota } from '../api/types.generated.ts';
import { identityOf, toOne, type LinkTo, type V3Resource } from './resource.ts';

/** Limits that kf does not have are null: unlimited. */
const limitsOf = ({ spec }: Stored<CFQuota>): Record<string, unknown> => ({
  apps: {
    total_memory_in_mb: spec.totalMemoryMB ?? null,
    per_process_memory_in_mb: spec.instanceMemoryMB ?? null,
    total_instances: spec.appInstances ?? null,
    per_app_tasks: null,
    log_rate_limit_in_bytes_per_second: null,
  },
  services: { paid_services_allowed: true, total_service_instances: spec.serviceInstances ?? null, total_service_keys: null },
  routes: { total_routes: spec.routes ?? null, total_reserved_ports: null },
});

const toMany = (guids: readonly string[]): { data: { guid: string }[] } => ({ data: guids.map((guid) => ({ guid })) });

/** @param orgs the GUIDs of the orgs that have it */
export function presentOrgQuota(quota: Stored<CFQuota>, orgs: readonly string[], link: LinkTo): V3Resource {
  return {
    ...identityOf(quota),
    name: quota.spec.displayName,
    ...limitsOf(quota),
    domains: { total_domains: null },
    relationships: { organizations: toMany(orgs) },
    links: { self: link(`/v3/organization_quotas/${quota.metadata.name}`) },
  };
}

/** @param spaces the GUIDs of the spaces that have it */
export function presentSpaceQuota(quota: Stored<CFQuota>, spaces: readonly string[], link: LinkTo): V3Resource {
  const { name, namespace } = quota.metadata;
  return {
    ...identityOf(quota),
    name: quota.spec.displayName,
    ...limitsOf(quota),
    relationships: { organization: toOne(namespace), spaces: toMany(spaces) },
    links: { self: link(`/v3/space_quotas/${name}`), organization: link(`/v3/organizations/${namespace}`) },
  };
}

/** What an org or a space uses. */
export interface Usage {
  startedInstances: number;
  memoryMB: number;
  routes: number;
  serviceInstances: number;
  runningTasks: number;
  serviceKeys: number;
}

/** @param place its own path */
export function presentUsage(what: 'organization' | 'space', place: string, usage: Usage, link: LinkTo): Record<string, unknown> {
  return {
    usage_summary: {
      started_instances: usage.startedInstances,
      memory_in_mb: usage.memoryMB,
      routes: usage.routes,
      service_instances: usage.serviceInstances,
      reserved_ports: 0,
      domains: 0,
      per_app_tasks: usage.runningTasks,
      service_keys: usage.serviceKeys,
    },
    links: { self: link(`${place}/usage_summary`), [what]: link(place) },
  };
}

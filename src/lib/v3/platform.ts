// The installation itself: the roots of the API, info, buildpacks and stacks.

import type { Stored } from '../api/object.ts';
import type { BuilderInfo } from '../api/types.generated.ts';
import { identityOf, type LinkTo, type V3Resource } from './resource.ts';
import { followedApi } from './version.ts';

/** Other services of Cloud Foundry, which a cluster with kf does not have. */
const absent = [
  'bits_service',
  'cloud_controller_v2',
  'network_policy_v0',
  'network_policy_v1',
  'login',
  'uaa',
  'credhub',
  'routing',
  'logging',
  'log_cache',
  'log_stream',
  'app_ssh',
];

export function presentRoot(link: LinkTo): Record<string, unknown> {
  return {
    links: {
      self: link(''),
      ...Object.fromEntries(absent.map((name) => [name, null])),
      cloud_controller_v3: { ...link('/v3'), meta: { version: followedApi } },
    },
    cf_on_k8s: true,
  };
}

/** Lists that kf answers, by the names of the API. */
const collections = [
  'apps',
  'audit_events',
  'buildpacks',
  'builds',
  'deployments',
  'domains',
  'droplets',
  'organization_quotas',
  'organizations',
  'packages',
  'processes',
  'roles',
  'routes',
  'service_credential_bindings',
  'service_instances',
  'space_quotas',
  'spaces',
  'stacks',
  'tasks',
  'users',
];

export function presentV3Root(link: LinkTo): Record<string, unknown> {
  return {
    links: { self: link('/v3'), info: link('/v3/info'), ...Object.fromEntries(collections.map((name) => [name, link(`/v3/${name}`)])) },
  };
}

/** @param build the version of the controller */
export function presentInfo(build: string, link: LinkTo): Record<string, unknown> {
  return {
    build,
    cli_version: { minimum: '', recommended: '' },
    custom: {},
    description: 'Cloud Foundry commands on Kubernetes',
    name: 'kf',
    version: 0,
    links: { self: link('/v3/info'), support: { href: '' } },
  };
}

/** Stacks have no objects of their own; their names are unique. */
export function presentStacks(builder: Stored<BuilderInfo>, link: LinkTo): V3Resource[] {
  return (builder.status?.stacks ?? []).map(({ name, description, creationTimestamp, updatedTimestamp }) => ({
    guid: name,
    created_at: creationTimestamp,
    updated_at: updatedTimestamp,
    name,
    description,
    default: true,
    metadata: { labels: {}, annotations: {} },
    links: { self: link(`/v3/stacks/${encodeURIComponent(name)}`) },
  }));
}

/** The buildpacks in the order of the builder. */
export function presentBuildpacks(builder: Stored<BuilderInfo>, link: LinkTo): V3Resource[] {
  const buildpacks = builder.status?.buildpacks ?? [];
  const { created_at } = identityOf(builder);
  return buildpacks.map(({ name, stack, version, creationTimestamp, updatedTimestamp }, at) => {
    const isOnly = buildpacks.filter((other) => other.name === name).length === 1;
    const guid = isOnly ? name : `${name}@${stack}`;
    return {
      guid,
      created_at: creationTimestamp === '' ? created_at : creationTimestamp,
      updated_at: updatedTimestamp === '' ? created_at : updatedTimestamp,
      name,
      stack,
      position: at + 1,
      state: 'READY',
      filename: `${name}@${version}`,
      enabled: true,
      locked: true,
      metadata: { labels: {}, annotations: {} },
      links: { self: link(`/v3/buildpacks/${encodeURIComponent(guid)}`) },
    };
  });
}

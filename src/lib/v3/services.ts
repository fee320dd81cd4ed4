// Service instances and their bindings.

import { findCondition } from '../api/conditions.ts';
import type { Stored } from '../api/object.ts';
import { lastOperationOf } from '../api/service-operation.ts';
import type { CFServiceBinding, CFServiceInstance } from '../api/types.generated.ts';
import { identityOf, metadataOf, toOne, type LinkTo, type V3Resource } from './resource.ts';

/** An empty text means that none was given. */
const givenOrNull = (text: string | undefined): string | null => (text === undefined || text === '' ? null : text);

export function presentServiceInstance(instance: Stored<CFServiceInstance>, link: LinkTo): V3Resource {
  const { spec, metadata, status } = instance;
  const { created_at, updated_at } = identityOf(instance);
  const { type, state } = lastOperationOf(instance);
  const description = status?.lastOperation?.description ?? '';
  const self = `/v3/service_instances/${metadata.name}`;
  return {
    ...identityOf(instance),
    name: spec.displayName,
    type: spec.type,
    tags: spec.tags ?? [],
    last_operation: { type, state, description, created_at, updated_at },
    ...(spec.type === 'user-provided'
      ? { syslog_drain_url: givenOrNull(spec.syslogDrainUrl), route_service_url: givenOrNull(spec.routeServiceUrl) }
      : {}),
    relationships: {
      space: toOne(metadata.namespace),
      ...(spec.type === 'managed' ? { service_plan: toOne(spec.planGuid) } : {}),
    },
    metadata: metadataOf(instance),
    links: {
      self: link(self),
      space: link(`/v3/spaces/${metadata.namespace}`),
      ...(spec.type === 'user-provided' ? { credentials: link(`${self}/credentials`) } : {}),
      service_credential_bindings: link(`/v3/service_credential_bindings?service_instance_guids=${metadata.name}`),
    },
  };
}

const stateOf = (binding: Stored<CFServiceBinding>): 'succeeded' | 'failed' | 'in progress' => {
  if (findCondition(binding, 'Claimed')?.status === 'False') return 'failed';
  return findCondition(binding, 'Ready')?.status === 'True' ? 'succeeded' : 'in progress';
};

export function presentBinding(binding: Stored<CFServiceBinding>, link: LinkTo): V3Resource {
  const { spec, metadata } = binding;
  const { created_at, updated_at } = identityOf(binding);
  const instance = spec.service.name ?? '';
  const description = findCondition(binding, 'Ready')?.message ?? '';
  const isOfApp = spec.type === 'app';
  return {
    ...identityOf(binding),
    type: spec.type,
    name: givenOrNull(spec.displayName),
    last_operation: { type: 'create', state: stateOf(binding), description, created_at, updated_at },
    relationships: { ...(isOfApp ? { app: toOne(spec.appRef.name) } : {}), service_instance: toOne(instance) },
    metadata: metadataOf(binding),
    links: {
      self: link(`/v3/service_credential_bindings/${metadata.name}`),
      details: link(`/v3/service_credential_bindings/${metadata.name}/details`),
      service_instance: link(`/v3/service_instances/${instance}`),
      ...(isOfApp ? { app: link(`/v3/apps/${spec.appRef.name}`) } : {}),
    },
  };
}

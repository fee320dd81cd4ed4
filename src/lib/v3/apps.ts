// Apps, their environment and their features.

import type { Stored } from '../api/object.ts';
import type { EnvDetails } from '../api/results.ts';
import type { CFApp, Lifecycle } from '../api/types.generated.ts';
import { identityOf, metadataOf, toOne, type LinkTo, type V3Resource } from './resource.ts';

/** A docker lifecycle has no data. */
export function presentLifecycle({ type, data }: Lifecycle): Record<string, unknown> {
  if (type === 'docker') return { type, data: {} };
  return { type, data: { buildpacks: data.buildpacks ?? [], stack: data.stack === '' ? null : data.stack } };
}

/** An app, with the links that kf answers. */
export function presentApp(app: Stored<CFApp>, link: LinkTo): V3Resource {
  const { spec, metadata } = app;
  const self = `/v3/apps/${metadata.name}`;
  const droplet = spec.currentDropletRef?.name;
  return {
    ...identityOf(app),
    name: spec.displayName,
    state: spec.desiredState,
    lifecycle: presentLifecycle(spec.lifecycle),
    relationships: { space: toOne(metadata.namespace), current_droplet: toOne(droplet) },
    metadata: metadataOf(app),
    links: {
      self: link(self),
      environment_variables: link(`${self}/environment_variables`),
      space: link(`/v3/spaces/${metadata.namespace}`),
      processes: link(`${self}/processes`),
      packages: link(`${self}/packages`),
      current_droplet: link(`${self}/droplets/current`),
      droplets: link(`${self}/droplets`),
      tasks: link(`${self}/tasks`),
      start: link(`${self}/actions/start`, 'POST'),
      stop: link(`${self}/actions/stop`, 'POST'),
      restart: link(`${self}/actions/restart`, 'POST'),
      revisions: link(`${self}/revisions`),
      deployed_revisions: link(`${self}/revisions/deployed`),
      features: link(`${self}/features`),
    },
  };
}

/** The whole environment of an app. Builds and instances get the same variables from kf, so that the two groups of the platform are empty. */
export function presentEnv({ variables, vcapServices, vcapApplication }: EnvDetails): Record<string, unknown> {
  return {
    staging_env_json: {},
    running_env_json: {},
    environment_variables: variables,
    system_env_json: { VCAP_SERVICES: vcapServices },
    application_env_json: { VCAP_APPLICATION: vcapApplication },
  };
}

/** The user's variables alone. */
export function presentVariables(app: Stored<CFApp>, variables: Readonly<Record<string, string>>, link: LinkTo): Record<string, unknown> {
  const owner = `/v3/apps/${app.metadata.name}`;
  return { var: variables, links: { self: link(`${owner}/environment_variables`), app: link(owner) } };
}

export interface Feature {
  name: string;
  description: string;
  enabled: boolean;
}

/** The features of an app. Only ssh can be switched. */
export function presentFeatures(isSshEnabled: boolean): Feature[] {
  return [
    { name: 'ssh', description: 'Enable SSHing into the app.', enabled: isSshEnabled },
    { name: 'revisions', description: 'Whether the app keeps revisions that it can return to.', enabled: true },
    { name: 'service-binding-k8s', description: 'Whether the app finds its service bindings as files.', enabled: true },
    { name: 'file-based-vcap-services', description: 'Whether VCAP_SERVICES is a file and not a variable.', enabled: false },
  ];
}

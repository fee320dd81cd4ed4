// cf's feature flags: what is so in kf. Roles and the installation decide it, so no flag can be changed.

import { nearest } from '../api/names.ts';
import { KfError } from '../errors.ts';

export interface FeatureFlag {
  name: string;
  enabled: boolean;
}

const developers = 'Who may not do it gets another role than SpaceDeveloper: kf set-space-role USER ORG SPACE SpaceSupporter';
const env = 'Who may not see variables gets the role SpaceAuditor: kf set-space-role USER ORG SPACE SpaceAuditor';
const roles = 'Managers give and take roles by the name of the user: kf org-users ORG';
const notThere = 'kf has no such function.';

/** In the order of cf: the state, and what decides it. */
const table: readonly [name: string, enabled: boolean, why: string][] = [
  ['app_bits_upload', true, developers],
  ['app_scaling', true, developers],
  ['diego_cnb', true, 'Every app is built by Cloud Native Buildpacks.'],
  ['diego_docker', true, developers],
  ['env_var_visibility', true, env],
  ['hide_marketplace_from_unauthenticated_users', true, 'Who is not known to the cluster sees nothing.'],
  ['resource_matching', true, 'A push sends only the layers that the registry lacks.'],
  ['route_creation', true, developers],
  ['route_sharing', false, `${notThere} Apps of one space share a route: kf map-route APP DOMAIN`],
  ['service_instance_creation', true, developers],
  ['service_instance_sharing', false, `${notThere} In the other space: kf create-user-provided-service NAME -p CREDENTIALS`],
  ['set_roles_by_username', true, roles],
  ['space_developer_env_var_visibility', true, env],
  ['space_scoped_private_broker_creation', false, `${notThere} kf create-user-provided-service is there for what runs elsewhere.`],
  ['task_creation', true, developers],
  ['unset_roles_by_username', true, roles],
  ['user_org_creation', false, 'An admin creates orgs: kf create-org ORG'],
];

export const featureFlags: readonly FeatureFlag[] = table.map(([name, enabled]) => ({ name, enabled }));

/** @throws KfError `not-found` in cf's words */
export function findFeatureFlag(name: string): FeatureFlag {
  const found = featureFlags.find((flag) => flag.name === name);
  if (found !== undefined) return found;
  const near = nearest(
    name,
    featureFlags.map((flag) => flag.name),
  );
  const hints = [...(near === undefined ? [] : [`Did you mean '${near}'?`]), 'kf feature-flags'];
  throw new KfError('not-found', `Feature flag '${name}' not found.`, { hints });
}

/** The flag, if it is so. @throws KfError `not-found`, or `usage` with what decides it instead */
export function requireFeatureFlag(name: string, enabled: boolean): FeatureFlag {
  const flag = findFeatureFlag(name);
  if (flag.enabled === enabled) return flag;
  const why = table.find(([known]) => known === name)?.[2] ?? '';
  const state = flag.enabled ? 'enabled' : 'disabled';
  throw new KfError('usage', `The feature flag '${name}' is always ${state} in kf.`, { hints: [why] });
}

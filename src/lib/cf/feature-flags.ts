// cf's feature flags. Policies of the cluster enforce those that an operator can change; roles and the installation decide the others.

import { flagObjectName, nearest } from '../api/names.ts';
import type { Stored } from '../api/object.ts';
import type { CFFeatureFlag } from '../api/types.generated.ts';
import { KfError } from '../errors.ts';

export interface FeatureFlag {
  name: string;
  enabled: boolean;
}

const env = 'Who may not see variables gets the role SpaceAuditor: kf set-space-role USER ORG SPACE SpaceAuditor';
const notThere = 'kf has no such function.';

/** The flag is enabled until an operator disables it. */
const changeable = undefined;

/** In the order of cf: the state, and what decides it. */
const table: readonly [name: string, enabled: boolean, why: string | undefined][] = [
  ['app_bits_upload', true, changeable],
  ['app_scaling', true, changeable],
  ['diego_cnb', true, 'Every app is built by Cloud Native Buildpacks.'],
  ['diego_docker', true, changeable],
  ['env_var_visibility', true, env],
  ['hide_marketplace_from_unauthenticated_users', true, 'Who is not known to the cluster sees nothing.'],
  ['resource_matching', true, 'A push sends only the layers that the registry lacks.'],
  ['route_creation', true, changeable],
  ['route_sharing', true, changeable],
  ['service_instance_creation', true, changeable],
  ['service_instance_sharing', false, `${notThere} In the other space: kf create-user-provided-service NAME -p CREDENTIALS`],
  ['set_roles_by_username', true, changeable],
  ['space_developer_env_var_visibility', true, env],
  ['space_scoped_private_broker_creation', false, `${notThere} kf create-user-provided-service is there for what runs elsewhere.`],
  ['task_creation', true, changeable],
  ['unset_roles_by_username', true, changeable],
  ['user_org_creation', false, 'An admin creates orgs: kf create-org ORG'],
];

/** The flags as they are in a new installation. */
export const featureFlags: readonly FeatureFlag[] = table.map(([name, enabled]) => ({ name, enabled }));

const whyOf = (flag: string): string | undefined => table.find(([name]) => name === flag)?.[2];

export const isChangeable = ({ name }: FeatureFlag): boolean => whyOf(name) === changeable;

/** Names of the flags that an operator can change. */
export const changeableFlags: readonly string[] = featureFlags.filter(isChangeable).map(({ name }) => name);

/** The flag as an object of the cluster has it; without one, as in a new installation. */
export function flagWith(flag: FeatureFlag, object: Stored<CFFeatureFlag> | undefined): FeatureFlag {
  return object === undefined || !isChangeable(flag) ? flag : { ...flag, enabled: object.spec.enabled };
}

/** The object of a flag among those of the cluster. */
export const objectOfFlag = ({ name }: FeatureFlag, objects: readonly Stored<CFFeatureFlag>[]): Stored<CFFeatureFlag> | undefined =>
  objects.find(({ metadata }) => metadata.name === flagObjectName(name));

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

/** The error for a flag that nobody can change: what decides it instead. */
export function neverChanges({ name, enabled }: FeatureFlag): KfError {
  const state = enabled ? 'enabled' : 'disabled';
  const why = whyOf(name);
  return new KfError('usage', `The feature flag '${name}' is always ${state} in kf.`, { hints: why === undefined ? [] : [why] });
}

/** How the refusal of policy kf-feature-flags begins, in the words of cf. */
export const disabledText = 'Feature Disabled: ';

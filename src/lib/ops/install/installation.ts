// Everything that `kf setup` installs, as sets in the order in which they must be there.

import type { KubeObject } from '../../api/object.ts';
import { buildCheckRoute } from '../../../templates/setup/check-route.ts';
import { buildBundle, buildController, bundleName, controllerName, type ControllerPrograms } from '../../../templates/setup/controller.ts';
import { buildGateway } from '../../../templates/setup/gateway.ts';
import { buildInfo, buildInstallationEnv } from '../../../templates/setup/info.ts';
import { buildNamespaces } from '../../../templates/setup/namespaces.ts';
import { buildSystemPolicies } from '../../../templates/setup/network-policies.ts';
import { rootNamespace, systemNamespace, type SetupPlan } from '../../../templates/setup/options.ts';
import { buildPages } from '../../../templates/setup/pages.ts';
import { buildRecord } from '../../../templates/setup/record.ts';
import { buildRegistry } from '../../../templates/setup/registry.ts';
import { readManifest, readManifests } from './assets.ts';
import type { ClusterFacts } from './preflight.ts';

/** What the cluster brings itself. */
type ServedKinds = Pick<ClusterFacts, 'hasGatewayApi' | 'hasMutatingPolicies'>;

export interface Installation {
  /** Namespaces, and what was asked for: a setup that is cut off later is gone on with by the same settings. */
  base: KubeObject[];
  /** The programs' text, the registry: nodes must be able to pull from it before anything else is there. */
  registry: KubeObject[];
  /** Kinds of kf (and of the Gateway API when the cluster has none): must be Established before the rest. */
  kinds: KubeObject[];
  /** Roles, controller, policies, and what CLIs read. */
  programs: KubeObject[];
  /** The gateway, and the route of the check. */
  gateway: KubeObject[];
}

/** Binds the generated ClusterRoles to the controller's account: cluster-wide, and what it needs in the root namespace and beside itself. */
function controllerBindings(): KubeObject[] {
  const rbac = 'rbac.authorization.k8s.io';
  const subjects = [{ kind: 'ServiceAccount', name: controllerName, namespace: systemNamespace }];
  const ref = (name: string) => ({ apiGroup: rbac, kind: 'ClusterRole', name });
  const inNamespace = (name: string, namespace: string): KubeObject => ({
    apiVersion: `${rbac}/v1`,
    kind: 'RoleBinding',
    metadata: { name, namespace },
    ...{ roleRef: ref(name), subjects },
  });
  return [
    {
      apiVersion: `${rbac}/v1`,
      kind: 'ClusterRoleBinding',
      metadata: { name: controllerName },
      ...{ roleRef: ref(controllerName), subjects },
    },
    inNamespace('kf-controller-root', rootNamespace),
    inNamespace('kf-controller-system', systemNamespace),
  ];
}

/** Policies of the kinds that the cluster serves: those that change objects are a convenience, and not everywhere there. */
async function policiesFor({ hasMutatingPolicies }: ServedKinds): Promise<KubeObject[]> {
  const policies = await readManifests('policies');
  return policies.filter(({ kind = '' }) => hasMutatingPolicies || !kind.startsWith('MutatingAdmissionPolicy'));
}

/** Builds the installation of one plan from the package's manifests and programs; pure but for reading those files. */
export async function buildInstallation(plan: SetupPlan, programs: ControllerPrograms, served: ServedKinds): Promise<Installation> {
  const [kinds, gatewayKinds, roles, policies] = await Promise.all([
    readManifests('crds'),
    served.hasGatewayApi ? [] : readManifests('gateway-api'),
    readManifest('roles.generated.yaml'),
    policiesFor(served),
  ]);
  const bundle = bundleName(programs);
  return {
    base: [...buildNamespaces(plan), buildRecord(plan), buildInstallationEnv(plan)],
    registry: [buildBundle(programs), ...(plan.registry === undefined ? buildRegistry(plan, bundle) : []), ...buildSystemPolicies(plan)],
    kinds: [...kinds, ...gatewayKinds],
    programs: [...roles, ...controllerBindings(), ...buildController(plan, bundle), ...buildInfo(plan), ...policies],
    gateway: [...buildGateway(plan), ...buildPages(plan, bundle), buildCheckRoute(plan)],
  };
}

/** All objects in order, for `--dry-run -o yaml`. */
export function allObjects(installation: Installation): KubeObject[] {
  return [...installation.base, ...installation.registry, ...installation.kinds, ...installation.programs, ...installation.gateway];
}

// The controller, its rights, and the description of the installation for the controller and every CLI.

import { deploymentType } from '../../../api/core.ts';
import { finalizers, kinds, labels } from '../../../api/group.ts';
import type { KubeObject } from '../../../api/object.ts';
import type { Cluster } from '../../../kube/cluster.ts';
import { buildController, bundleName, controllerName } from '../../../../templates/setup/controller.ts';
import { buildInfo } from '../../../../templates/setup/info.ts';
import { rootNamespace, systemNamespace } from '../../../../templates/setup/options.ts';
import type { Part } from '../part.ts';
import { listOrNone, removeLabelled, removeNamespaces, waitUntilGone, type Removal } from '../removal.ts';
import { startMs, waitForDeployment } from '../waits.ts';

/** Binds the generated ClusterRoles to the controller's account: cluster-wide ones, and those for the root namespace and the controller's own. */
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

/** Returns after the controller's pod has ended: until then it would add finalizers again, and a setup would see the Deployment as existing. */
export async function removeController(removal: Removal): Promise<void> {
  const found = await removal.cluster.delete(deploymentType, systemNamespace, controllerName, { propagation: 'Foreground' });
  if (!found) return;
  const named = `Deployment ${systemNamespace}/${controllerName}`;
  removal.result.removed.push(named);
  await waitUntilGone(removal, 'the controller', async () =>
    (await removal.cluster.get(deploymentType, systemNamespace, controllerName)) === undefined ? [] : [named],
  );
}

/** Removes our finalizers from orgs and spaces, so that their deletion does not hang without the controller. */
export async function stripFinalizers(cluster: Cluster): Promise<void> {
  const own: string[] = [finalizers.org, finalizers.space];
  for (const type of [kinds.org, kinds.space]) {
    const { items } = await listOrNone<KubeObject>(cluster, type);
    for (const item of items) {
      const left = (item.metadata.finalizers ?? []).filter((name) => !own.includes(name));
      if (left.length === (item.metadata.finalizers ?? []).length) continue;
      const metadata = { finalizers: left, resourceVersion: item.metadata.resourceVersion };
      await cluster.mergePatch<KubeObject>(type, item.metadata.namespace, item.metadata.name, { metadata });
    }
  }
}

export const part: Part = {
  name: 'controller',
  requires: ['policies', 'programs', 'roles'],
  step: 'controller',
  objects: ({ plan, programs }) => [...controllerBindings(), ...buildController(plan, bundleName(programs)), ...buildInfo(plan)],
  after: (run) => waitForDeployment(run, { namespace: systemNamespace, name: controllerName, timeoutMs: startMs }),
  remove: async (removal) => {
    await removeController(removal);
    // Removes the Deployments and Services of all parts: without the controller none of them is useful.
    await removeLabelled(removal, 'Deployment', 'Service');
    await stripFinalizers(removal.cluster);
    // Objects in these namespaces would count as somebody else's when the kinds are removed.
    await removeNamespaces(removal, 'the namespaces of orgs and spaces', ({ metadata }) => metadata.labels?.[labels.orgGuid] !== undefined);
    removal.report({ type: 'install-step', step: 'remove-kinds' });
  },
};

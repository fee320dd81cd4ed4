// The controller, its rights, and the description of the installation that it and every CLI read.

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

/** Returns when its pod has ended too: until then it would put finalizers back, and a setup would take the Deployment for present. */
export async function removeController(removal: Removal): Promise<void> {
  const found = await removal.cluster.delete(deploymentType, systemNamespace, controllerName, { propagation: 'Foreground' });
  if (!found) return;
  const named = `Deployment ${systemNamespace}/${controllerName}`;
  removal.result.removed.push(named);
  await waitUntilGone(removal, 'the controller', async () =>
    (await removal.cluster.get(deploymentType, systemNamespace, controllerName)) === undefined ? [] : [named],
  );
}

/** Removes our finalizers from orgs and spaces, so that nothing hangs once the controller is gone. */
export async function stripFinalizers(cluster: Cluster): Promise<void> {
  const own: string[] = [finalizers.org, finalizers.space];
  for (const type of [kinds.org, kinds.space]) {
    const { items } = await listOrNone<KubeObject>(cluster, type);
    for (const item of items) {
      const left = (item.metadata.finalizers ?? []).filter((name) => !own.includes(name));
      if (left.length === (item.metadata.finalizers ?? []).length) continue;
      const metadata = { finalizers: left, resourceVersion: item.metadata.resourceVersion };
      await cluster.mergePatch<KubeObject>(type, item.metadata.namespace, item.metadata.name ?? '', { metadata });
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
    // Those of all parts: none of them serves anything without the controller.
    await removeLabelled(removal, 'Deployment', 'Service');
    await stripFinalizers(removal.cluster);
    // Objects in them would pass for somebody else's when it comes to the kinds.
    await removeNamespaces(removal, 'the namespaces of orgs and spaces', ({ metadata }) => metadata.labels?.[labels.orgGuid] !== undefined);
    removal.report({ type: 'install-step', step: 'remove-kinds' });
  },
};

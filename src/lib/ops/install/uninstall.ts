// `kf uninstall`: removes the parts in the reverse order of their installation, so that each can still clean up.

import { kinds } from '../../api/group.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { inOrder } from './part.ts';
import { parts } from './parts.generated.ts';
import { removeController, stripFinalizers } from './parts/controller.ts';
import { part as policies } from './parts/policies.ts';
import { extendPullSecrets } from './pull-secrets.ts';
import { listOrNone, type Removal, type UninstallContext, type UninstallResult } from './removal.ts';

export type { UninstallContext, UninstallResult } from './removal.ts';

/** The apps that an uninstall would delete, as `org-namespace/name` with their display names. */
export async function listAppsOfInstallation(cluster: Cluster): Promise<{ space: string; name: string }[]> {
  const { items } = await listOrNone(cluster, kinds.app);
  return items.map((app) => ({ space: app.metadata.namespace, name: app.spec.displayName }));
}

/** Removes kf and all its apps from the cluster. @throws KfError `timeout` naming the objects that remain */
export async function uninstall(context: UninstallContext): Promise<UninstallResult> {
  const apps = (await listAppsOfInstallation(context.cluster)).length;
  const result: UninstallResult = { apps, keptApps: 0, orgs: 0, removed: [], kept: [] };
  const removal: Removal = { ...context, result, again: 'kf uninstall --yes' };
  const waits: (() => Promise<void>)[] = [];
  for (const { remove } of inOrder(parts).toReversed()) {
    const wait = await remove?.(removal);
    if (wait !== undefined) waits.push(wait);
  }
  for (const wait of waits) await wait();
  context.report({ type: 'done' });
  return result;
}

/** Removes only the controller and its policies: apps keep serving, registry and gateway stay, and a later setup adopts everything. */
export async function uninstallKeepingData(context: UninstallContext): Promise<UninstallResult> {
  const keptApps = (await listAppsOfInstallation(context.cluster)).length;
  const result: UninstallResult = { apps: 0, keptApps, orgs: 0, removed: [], kept: [] };
  const removal: Removal = { ...context, result, again: 'kf uninstall --keep-data --yes' };
  context.report({ type: 'install-step', step: 'remove-controller' });
  await removeController(removal);
  const until = await extendPullSecrets(context.cluster, Date.now());
  await policies.remove?.(removal);
  await stripFinalizers(context.cluster);
  if (until !== undefined) context.report({ type: 'credentials-end', day: new Date(until * 1000).toISOString().slice(0, 10) });
  context.report({ type: 'done' });
  return result;
}

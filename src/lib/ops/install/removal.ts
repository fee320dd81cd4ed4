// Functions with which the parts of an installation remove themselves.

import { namespaceBlockers } from '../../api/blockers.ts';
import { namespaceType, type Namespace } from '../../api/core.ts';
import { labels } from '../../api/group.ts';
import type { KubeObject, ResourceType, Stored } from '../../api/object.ts';
import { defined } from '../../defined.ts';
import { KfError } from '../../errors.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { waitFor } from '../../wait.ts';
import { partOfLabel } from '../../../templates/setup/options.ts';
import type { Report } from '../../events.ts';
import { describeObject, kindNamed } from './kinds.ts';

export interface UninstallContext {
  cluster: Cluster;
  report: Report;
  signal?: AbortSignal;
}

export interface UninstallResult {
  apps: number;
  /** Number of apps that still serve after --keep-data. */
  keptApps: number;
  orgs: number;
  removed: string[];
  /** Objects that stay although setup created them, with the reason. */
  kept: { object: string; reason: string }[];
}

/** A running uninstall. */
export interface Removal extends UninstallContext {
  result: UninstallResult;
  /** The command that continues after an interruption. */
  again: string;
}

/** Selects everything that setup created. */
export const selector = `${partOfLabel}=setup`;
const goneMs = 180_000;

/** Lists a kind; empty when the kind itself does not exist. */
export async function listOrNone<T extends KubeObject>(
  cluster: Cluster,
  type: ResourceType<T>,
  labelSelector?: string,
): Promise<{ items: Stored<T>[] }> {
  try {
    return await cluster.list(type, defined({ labelSelector }));
  } catch (error) {
    if (error instanceof KfError && error.code === 'not-found') return { items: [] };
    throw error;
  }
}

/** @throws KfError `timeout` naming what is left */
export async function waitUntilGone(removal: Removal, what: string, look: () => Promise<string[]>): Promise<void> {
  removal.report({ type: 'awaiting', what: `${what} to go` });
  let left: string[] = [];
  const isGone = async (): Promise<true | undefined> => {
    left = await look();
    return left.length === 0 ? true : undefined;
  };
  const late = (): KfError =>
    new KfError('timeout', `After ${goneMs / 1000} s these are still there: ${left.join(', ')}`, {
      hints: [`${removal.again} goes on where it stopped.`],
    });
  const { signal } = removal;
  await waitFor(isGone, { timeoutMs: goneMs, intervalMs: 250, describe: what, late, signal });
}

async function removeKindLabelled({ cluster, result }: Removal, kind: string): Promise<void> {
  const type = kindNamed(kind);
  const { items } = await listOrNone(cluster, type, selector);
  for (const item of items) {
    const { namespace, name, uid } = item.metadata;
    await cluster.delete(type, namespace, name, { uid });
    result.removed.push(describeObject({ ...item, kind }));
  }
}

/** Removes all objects of these kinds that setup created, of any part, one kind after the other. */
export async function removeLabelled(removal: Removal, ...all: string[]): Promise<void> {
  for (const kind of all) await removeKindLabelled(removal, kind);
}

function describeNamespace(namespace: Stored<Namespace>): string {
  return `namespace ${namespace.metadata.name} (${namespaceBlockers(namespace)})`;
}

/** Removes namespaces that kf has created, and waits until they are gone. */
export async function removeNamespaces(removal: Removal, what: string, isWanted: (namespace: Stored<Namespace>) => boolean): Promise<void> {
  const left = async (): Promise<Stored<Namespace>[]> => {
    const { items } = await removal.cluster.list(namespaceType, { labelSelector: `${labels.managedBy}=kf` });
    return items.filter(isWanted);
  };
  const names = (await left()).map(({ metadata }) => metadata.name);
  for (const name of names) {
    await removal.cluster.delete(namespaceType, undefined, name);
    removal.result.removed.push(`Namespace ${name}`);
  }
  if (names.length > 0) await waitUntilGone(removal, what, async () => (await left()).map(describeNamespace));
}

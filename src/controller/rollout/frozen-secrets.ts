// Restores the frozen Secrets of running generations when somebody deletes them. Without them the next container of the generation has no
// environment.

import type { Stored } from '../../lib/api/object.ts';
import { findCondition } from '../../lib/api/conditions.ts';
import { secretType } from '../../lib/api/core.ts';
import { annotations, conditionTypes, kinds, places, reasons } from '../../lib/api/group.ts';
import type { AppWorkload } from '../../lib/api/types.generated.ts';
import { isAlreadyExists } from '../../lib/kube/errors.ts';
import { buildFrozenSecret, frozenSecretNames } from '../../templates/workload.ts';
import type { Context, Reconciler } from '../runtime/reconciler.ts';
import { index, watch } from '../runtime/reconciler.ts';
import { conditionsWith, writeStatus, type Statement } from '../runtime/status.ts';
import { splitKey } from '../runtime/store.ts';
import { charactersOf, paceMs } from '../runtime/secrets.ts';

type Data = Record<string, string>;
/** Contents by name of Secret. They cannot be read again from their source, which may have changed since. */
type Copies = Map<string, Data>;

const runs = (workload: Stored<AppWorkload>): boolean =>
  workload.metadata.deletionTimestamp === undefined &&
  workload.spec.runnerName === places.runner &&
  workload.spec.instances > 0 &&
  workload.metadata.annotations?.[annotations.liveHash] !== undefined;

/** Those that run, under the empty value: only their number is needed. */
const running = index<AppWorkload>(kinds.appWorkload, 'running', (workload) => (runs(workload) ? [''] : []));

/** Reads the Secrets at intervals, because Secrets are never watched (see {@link paceMs}). */
export function frozenSecretsReconciler(): Reconciler {
  const copies = new Map<string, Copies>();
  const uids = new Map<string, string>();
  const lookedAt = new Map<string, number>();
  return {
    name: 'frozen-secrets',
    workers: 2,
    watches: [watch(kinds.appWorkload)],
    indexes: [running],
    reconcile: async (key, context) => {
      const { ns, name } = splitKey(key);
      const workloads = context.stores.of(kinds.appWorkload);
      const workload = workloads.get(ns, name);
      const uid = workload?.metadata.uid ?? '';
      if (uids.get(key) !== uid) copies.delete(uids.get(key) ?? '');
      if (workload === undefined || !runs(workload)) {
        for (const map of [uids, lookedAt]) map.delete(key);
        copies.delete(uid);
        return undefined;
      }
      const pace = paceMs(workloads.count(running.name, ''), frozenSecretNames(workload).length);
      const left = (uids.get(key) === uid ? (lookedAt.get(key) ?? 0) : 0) + pace * 0.9 - context.now();
      if (left > 0) return { requeueAfterMs: left };
      uids.set(key, uid);
      const known = copies.get(uid) ?? new Map<string, Data>();
      copies.set(uid, known);
      const lost: string[] = [];
      for (const secret of frozenSecretNames(workload)) {
        if (!(await ensureCopy(context, workload, secret, known))) lost.push(secret);
      }
      await tell(context, workload, lost);
      lookedAt.set(key, context.now());
      return { requeueAfterMs: pace };
    },
  };
}

/** Limit for all copies of one generation, in base64. cf allows 64 KiB of variables per app. */
const mostCharacters = 128 * 1024;

/**
 * Remembers the contents of a Secret unless they are too large. A Secret that was not remembered is lost when it is deleted, and is then
 * created from the app's current environment.
 */
export function remember(known: Copies, name: string, data: Data): void {
  known.delete(name);
  const present = [...known.values()].reduce((sum, copy) => sum + charactersOf(copy), 0);
  if (present + charactersOf(data) <= mostCharacters) known.set(name, data);
}

/** Creates the Secret again if it is missing. False when its contents are not known. */
async function ensureCopy(context: Context, workload: Stored<AppWorkload>, name: string, known: Copies): Promise<boolean> {
  const live = await context.cluster.get(secretType, workload.metadata.namespace, name, context.signal);
  if (live?.metadata.deletionTimestamp !== undefined) return true;
  if (live !== undefined) {
    remember(known, name, live.data ?? {});
    return true;
  }
  const data = known.get(name);
  if (data === undefined) return false;
  try {
    await context.cluster.create(secretType, buildFrozenSecret(workload, name, data), { signal: context.signal });
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
  }
  return true;
}

/** Writes the condition `Whole`. When it is False, the process reconciler replaces the lost Secrets. */
async function tell(context: Context, workload: Stored<AppWorkload>, lost: readonly string[]): Promise<void> {
  const before = findCondition(workload, conditionTypes.whole);
  if (lost.length === 0 && before?.status !== 'False') return;
  const statement: Statement =
    lost.length === 0
      ? { type: conditionTypes.whole, status: 'True', reason: 'Restored', message: '' }
      : {
          type: conditionTypes.whole,
          status: 'False',
          reason: reasons.environmentLost,
          message: `These Secrets were deleted: ${lost.join(', ')}.`,
        };
  await writeStatus(context, kinds.appWorkload, workload, {
    ...workload.status,
    conditions: conditionsWith(workload, statement),
  });
}

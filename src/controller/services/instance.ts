// Reconciles user-provided CFServiceInstances: claims the name and checks that the credentials exist and are readable.

import type { Stored } from '../../lib/api/object.ts';
import { secretType } from '../../lib/api/core.ts';
import type { Secret } from '../../lib/api/core.ts';
import { followedSecret, readCredentials } from '../../lib/api/credentials.ts';
import { finalizers, kinds, reasons } from '../../lib/api/group.ts';
import type { CFServiceInstance, LastOperation } from '../../lib/api/types.generated.ts';
import { watch } from '../runtime/reconciler.ts';
import type { Context, Reconciler } from '../runtime/reconciler.ts';
import type { Result } from '../runtime/result.ts';
import { conditionsWith, readyStatement, writeStatus } from '../runtime/status.ts';
import type { Statement, StatusOf } from '../runtime/status.ts';
import { splitKey } from '../runtime/store.ts';
import { claimName } from '../names/leases.ts';
import { paceMs } from '../runtime/secrets.ts';
import { defined } from '../../lib/defined.ts';

/** The CLI creates the Secret right after the instance. If it is still missing after this time, somebody has to repair it. */
const freshMs = 10_000;
/** It usually comes within a moment, so a wait that has become longer is not noticed if it gets an eighth longer. */
const freshPaceMs = 150;
/** With few instances. A thousand whose Secrets are missing must not keep the API server busy, but are looked at more often than what is complete. */
const missingPaceMs = 2_000;
const missingWeight = 0.2;

/** How long to wait before a missing credentials Secret is looked for again. */
export function missingSecretRetryMs(context: Context, live: Stored<CFServiceInstance>): number {
  const ageMs = context.now() - Date.parse(live.metadata.creationTimestamp ?? '');
  return ageMs < freshMs
    ? Math.max(freshPaceMs, ageMs / 8)
    : paceMs(context.stores.of(kinds.serviceInstance).size, missingWeight, missingPaceMs);
}

export const serviceInstanceReconciler: Reconciler = {
  name: 'service-instance',
  watches: [watch(kinds.serviceInstance)],
  reconcile: async (key, context) => {
    const { ns, name } = splitKey(key);
    const live = context.stores.of(kinds.serviceInstance).get(ns, name);
    if (live === undefined) return undefined;
    if (live.spec.type === 'user-provided') return reconcileInstance(context, await withoutFinalizer(context, live));
    await write(context, live, [refused('ManagedServicesUnavailable', 'This installation offers user-provided services only.')]);
    return undefined;
  },
};

// The contract's finalizer is for brokers; a user-provided instance has no broker to call.
async function withoutFinalizer(context: Context, live: Stored<CFServiceInstance>): Promise<Stored<CFServiceInstance>> {
  const { namespace, name, resourceVersion, finalizers: present = [] } = live.metadata;
  if (!present.includes(finalizers.serviceInstance)) return live;
  const patch = { metadata: { resourceVersion, finalizers: present.filter((finalizer) => finalizer !== finalizers.serviceInstance) } };
  return context.cluster.mergePatch(kinds.serviceInstance, namespace, name, patch, { signal: context.signal });
}

async function reconcileInstance(context: Context, live: Stored<CFServiceInstance>): Promise<Result | undefined> {
  if (live.metadata.deletionTimestamp !== undefined) return undefined;
  const claim = await claimName(context, { entity: 'serviceInstance', object: live });
  if (claim.notReady !== undefined) {
    await write(context, live, [claim.claimed, claim.notReady]);
    return claim;
  }
  const { namespace, name: _ } = live.metadata;
  const secret =
    live.spec.secretName === '' ? undefined : await context.cluster.get(secretType, namespace, live.spec.secretName, context.signal);
  const checked = checkCredentials(live, secret);
  await write(context, live, [claim.claimed, checked.ready], checked.status);
  if (secret === undefined) return { requeueAfterMs: missingSecretRetryMs(context, live) };
  return { requeueAfterMs: paceMs(context.stores.of(kinds.serviceInstance).size, 1) };
}

/** The condition of the instance that follows from its credentials Secret. */
export function checkCredentials(
  live: Stored<CFServiceInstance>,
  secret: Stored<Secret> | undefined,
): { ready: Statement; status: Partial<StatusOf<CFServiceInstance>> } {
  const before = live.status?.credentialsObservedVersion;
  const type: LastOperation['type'] = before === undefined ? 'create' : 'update';
  const problem = (reason: string, message: string) => ({
    ready: refused(reason, message),
    status: { lastOperation: { type, state: 'failed' as const, description: message } },
  });
  if (secret === undefined) {
    const missing = missingSecret(live);
    // A new instance gets its Secret later, from the CLI or from whoever maintains it.
    if (before === undefined) return { ready: refused(reasons.credentialsSecretNotAvailable, missing), status: {} };
    return problem(reasons.credentialsSecretNotAvailable, missing);
  }
  const credentials = readCredentials(live, secret);
  if (typeof credentials === 'string') return problem(reasons.secretInvalid, `${credentials}.`);
  const version = secret.metadata.resourceVersion;
  const isNew = before !== version || live.status?.lastOperation?.state !== 'succeeded';
  const lastOperation: LastOperation | undefined = isNew ? { type, state: 'succeeded' } : live.status?.lastOperation;
  return {
    ready: readyStatement,
    status: {
      credentials: { name: live.spec.secretName },
      credentialsObservedVersion: version,
      ...defined({ lastOperation }),
    },
  };
}

/** As a sentence. */
export function missingSecret(live: Stored<CFServiceInstance>): string {
  const { secretName } = live.spec;
  if (followedSecret(live) === undefined) return `The Secret '${secretName}' with the credentials does not exist yet.`;
  return `The Secret '${secretName}' with the credentials does not exist in namespace ${live.metadata.namespace}.`;
}

function refused(reason: string, message: string): Statement {
  return { type: readyStatement.type, status: 'False', reason, message };
}

async function write(
  context: Context,
  live: Stored<CFServiceInstance>,
  statements: Statement[],
  status: Partial<StatusOf<CFServiceInstance>> = {},
): Promise<void> {
  const conditions = conditionsWith(live, ...statements);
  await writeStatus(context, kinds.serviceInstance, live, { ...live.status, ...status, conditions });
}

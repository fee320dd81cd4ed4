// Reconciles CFServiceBinding of a user-provided instance: its Secrets, in the form that apps and buildpacks read.

import type { Stored } from '../../lib/api/object.ts';
import { secretType } from '../../lib/api/core.ts';
import type { Secret } from '../../lib/api/core.ts';
import { findCondition } from '../../lib/api/conditions.ts';
import { readCredentials, type Credentials } from '../../lib/api/credentials.ts';
import { annotations, conditionTypes, finalizers, kinds, reasons } from '../../lib/api/group.ts';
import type { CFServiceBinding, CFServiceInstance } from '../../lib/api/types.generated.ts';
import { encoded, ownerReference } from '../../templates/metadata.ts';
import { BoundedMap } from '../runtime/bounded-map.ts';
import { Remembered } from '../runtime/memory.ts';
import { index, watch } from '../runtime/reconciler.ts';
import type { Context, Reconciler } from '../runtime/reconciler.ts';
import { WaitingError } from '../runtime/result.ts';
import type { Result } from '../runtime/result.ts';
import { conditionsWith, notReady, readyStatement, writeStatus } from '../runtime/status.ts';
import type { Statement, StatusOf } from '../runtime/status.ts';
import { keyOf, splitKey } from '../runtime/store.ts';
import { claimName } from '../names/leases.ts';
import { ensureOwner } from '../runtime/owner.ts';
import { missingSecret, missingSecretRetryMs } from './instance.ts';
import { ensureSecret, paceMs } from '../runtime/secrets.ts';

const byInstance = 'binding-by-instance';
const secretsPerBinding = 2;

export const serviceBindingReconciler: Reconciler = {
  name: 'service-binding',
  watches: [
    watch(kinds.serviceBinding),
    watch<CFServiceInstance>(kinds.serviceInstance, (instance, stores) =>
      stores.of(kinds.serviceBinding).by(byInstance, keyOf(instance)).map(keyOf),
    ),
  ],
  reads: [kinds.app],
  indexes: [index(kinds.serviceBinding, byInstance, (binding) => [instanceKey(binding)])],
  reconcile: async (key, context) => {
    const { ns, name } = splitKey(key);
    const live = context.stores.of(kinds.serviceBinding).get(ns, name);
    if (live === undefined) return undefined;
    const binding = await withoutFinalizer(context, live);
    if (binding.metadata.deletionTimestamp !== undefined) return undefined;
    const orphan = await removeOrphan(context, binding);
    return orphan === 'deleted' ? undefined : reconcileBinding(context, binding, orphan?.lookAgainMs);
  },
};

function instanceKey(binding: Stored<CFServiceBinding>): string {
  return `${binding.spec.service.namespace ?? binding.metadata.namespace}/${binding.spec.service.name ?? ''}`;
}

async function withoutFinalizer(context: Context, live: Stored<CFServiceBinding>): Promise<Stored<CFServiceBinding>> {
  const { namespace, name, resourceVersion, finalizers: present = [] } = live.metadata;
  if (!present.includes(finalizers.serviceBinding)) return live;
  const patch = { metadata: { resourceVersion, finalizers: present.filter((finalizer) => finalizer !== finalizers.serviceBinding) } };
  return context.cluster.mergePatch(kinds.serviceBinding, namespace, name, patch, { signal: context.signal });
}

/** An instance that is replaced (`kubectl replace --force`) is gone for a moment, and has the same name again. */
const orphanPatienceMs = 60_000;
/** Since when this controller has not seen the instance of a binding, by the uid of the binding. */
const missingSince = new Remembered(() => new BoundedMap<string, number>(10_000));

/**
 * Deletes a binding whose instance has been gone for a minute, as when it was made while the instance was being deleted: no command finds it any more, and
 * its app could not start. One that was never ready waits: it may have been applied before its instance.
 * @returns for an orphan that is not deleted yet, when to look at it again; undefined for a binding that stays
 */
async function removeOrphan(context: Context, live: Stored<CFServiceBinding>): Promise<'deleted' | { lookAgainMs: number } | undefined> {
  const { metadata, status } = live;
  const { ns, name } = splitKey(instanceKey(live));
  if (status?.envSecretRef === undefined || ns !== metadata.namespace || name === '') return undefined;
  const missing = context.memory.of(missingSince);
  if (context.stores.of(kinds.serviceInstance).get(ns, name) !== undefined) {
    missing.delete(metadata.uid);
    return undefined;
  }
  const since = missing.get(metadata.uid) ?? context.now();
  missing.set(metadata.uid, since);
  const lookAgainMs = since + orphanPatienceMs - context.now();
  if (lookAgainMs > 0) return { lookAgainMs };
  missing.delete(metadata.uid);
  // What is watched may come late.
  if ((await context.cluster.get(kinds.serviceInstance, ns, name, context.signal)) !== undefined) return undefined;
  await context.cluster.delete(kinds.serviceBinding, ns, metadata.name, { uid: metadata.uid, signal: context.signal });
  return 'deleted';
}

/** @param lookAgainMs when to try again without an instance; undefined: when there is one */
async function reconcileBinding(context: Context, live: Stored<CFServiceBinding>, lookAgainMs?: number): Promise<Result | undefined> {
  const statements: Statement[] = [];
  try {
    const { ns, name } = splitKey(instanceKey(live));
    // A Secret of another space must not get into this one: bindings lead only to instances of their own space.
    const instance = ns === live.metadata.namespace ? context.stores.of(kinds.serviceInstance).get(ns, name) : undefined;
    if (instance === undefined)
      throw new WaitingError('ServiceInstanceNotFound', `The service instance '${name}' does not exist in this space.`, lookAgainMs);
    const claim = await claimName(context, { entity: 'serviceBinding', object: live, instanceName: instance.spec.displayName });
    statements.push(claim.claimed);
    if (claim.notReady !== undefined) {
      await write(context, live, [...statements, claim.notReady]);
      return claim;
    }
    await ensureParts(context, live, instance, statements);
  } catch (error) {
    await write(context, live, [...statements, notReady(error)]);
    throw error;
  }
  return { requeueAfterMs: paceMs(context.stores.of(kinds.serviceBinding).size, secretsPerBinding) };
}

async function ensureParts(
  context: Context,
  live: Stored<CFServiceBinding>,
  instance: Stored<CFServiceInstance>,
  statements: Statement[],
): Promise<void> {
  const ns = live.metadata.namespace;
  if (findCondition(instance, conditionTypes.claimed)?.status !== 'True')
    throw new WaitingError('ServiceInstanceNotReady', `The service instance '${instance.spec.displayName}' has no claim on its name yet.`);
  const app = context.stores.of(kinds.app).get(ns, live.spec.appRef.name);
  const binding = app === undefined ? live : await ensureOwner(context, kinds.serviceBinding, live, app, false);
  const secret = await context.cluster.get(secretType, ns, instance.spec.secretName, context.signal);
  if (secret === undefined)
    throw new WaitingError(reasons.credentialsSecretNotAvailable, missingSecret(instance), missingSecretRetryMs(context, instance));
  const credentials = readCredentials(instance, secret);
  if (typeof credentials === 'string') throw new WaitingError(reasons.secretInvalid, `${credentials}.`, 5_000, 60_000);
  const status: Partial<StatusOf<CFServiceBinding>> = { envSecretRef: { name: instance.spec.secretName } };
  // A service key is for people and programs outside the cluster, so nothing mounts it.
  if (binding.spec.type === 'app') {
    await ensureSecret(context, mountSecret(binding, credentials));
    status.mountSecretRef = { name: binding.metadata.name };
  }
  // The version is written last, so that a reader of the version finds a Secret that matches it.
  const told = {
    [annotations.serviceInstanceType]: instance.spec.type,
    [annotations.instanceVersion]: versionOf(instance, secret),
  };
  await write(context, binding, [...statements, readyStatement], status, told);
}

const versionOf = (instance: Stored<CFServiceInstance>, secret: Stored<Secret>): string =>
  `${secret.metadata.resourceVersion}/${instance.metadata.generation ?? 0}`;

/**
 * Brings the mount Secret of an app's binding to what the credentials Secret has now. Nothing wakes the reconciler of bindings when that
 * Secret changes, so a restart would give the app the variables of now with the files of before.
 */
export async function renewMount(
  context: Context,
  binding: Stored<CFServiceBinding>,
  instance: Stored<CFServiceInstance>,
  secret: Stored<Secret>,
  credentials: Credentials,
): Promise<void> {
  if (binding.status?.mountSecretRef === undefined) return;
  if (binding.metadata.annotations?.[annotations.instanceVersion] === versionOf(instance, secret)) return;
  await ensureSecret(context, mountSecret(binding, credentials));
}

/** One key per credential and `type`, as https://servicebinding.io requires. Names that cannot be keys of a Secret are left out. */
export function mountSecret(binding: Stored<CFServiceBinding>, { values, files }: Credentials): Secret {
  const declared = values['type'];
  const type = typeof declared === 'string' && declared !== '' ? declared : 'user-provided';
  const named = Object.entries(files).filter(
    ([name]) => /^[-._a-zA-Z0-9]{1,253}$/.test(name) && name !== '.' && name !== '..' && !name.startsWith('..'),
  );
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      name: binding.metadata.name,
      namespace: binding.metadata.namespace,
      ownerReferences: [ownerReference(kinds.serviceBinding, binding)],
    },
    type: `servicebinding.io/${type}`,
    data: { ...Object.fromEntries(named), ...encoded({ type }) },
  };
}

async function write(
  context: Context,
  live: Stored<CFServiceBinding>,
  statements: Statement[],
  status: Partial<StatusOf<CFServiceBinding>> = {},
  told: Record<string, string> = {},
): Promise<void> {
  const conditions = conditionsWith(live, ...statements);
  await writeStatus(context, kinds.serviceBinding, live, { ...live.status, ...status, conditions }, { annotations: told });
}

// Plans and applies a set of objects. It does not know their purpose: the same code works for any set with an owner label.

import { isDeepStrictEqual } from 'node:util';
import pLimit from 'p-limit';
import type { KubeObject, Stored } from '../../api/object.ts';
import { defined } from '../../defined.ts';
import { KfError } from '../../errors.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { isTerminating } from '../../kube/errors.ts';
import { describeObject, kindOf, type SetupObject } from './kinds.ts';

export type ChangeAction = 'create' | 'change' | 'unchanged';

export interface PlannedChange {
  action: ChangeAction;
  object: SetupObject;
}

export interface ObjectSet {
  /** Field manager of every apply. */
  manager: string;
  /** Label that marks the set's objects, for pruning. */
  label: { key: string; value: string };
}

/** More concurrent requests would only wait in the queue of the API server's priority level. */
export const parallelRequests = 10;

/** The object as the server would store it, without fields that change by themselves. */
function comparable(object: KubeObject): unknown {
  const copy = structuredClone(object) as KubeObject & { status?: unknown; metadata: Record<string, unknown> };
  for (const key of ['managedFields', 'resourceVersion', 'generation', 'creationTimestamp', 'uid']) delete copy.metadata[key];
  delete copy.status;
  return copy;
}

/** The object with the label of its set. */
export function marked(set: ObjectSet, object: SetupObject): SetupObject {
  return { ...object, metadata: { ...object.metadata, labels: { ...object.metadata.labels, [set.label.key]: set.label.value } } };
}

/**
 * True when the kind itself or the namespace is also part of the set and does not exist yet. The server has checked before whether the caller may
 * create it.
 */
function isYetToBeMade(error: unknown): boolean {
  return error instanceof KfError && error.code === 'not-found' && !isTerminating(error);
}

/**
 * True when the API server knows the kind of this object as an earlier kf defined it, without a field that is new: setup changes the kind before it
 * applies the object. The API server says it in these words only (structured-merge-diff), with the status of an internal error.
 */
function isYetToBeDeclared({ apiVersion }: SetupObject, error: unknown): boolean {
  return /cloudfoundry\.org\//.test(apiVersion) && error instanceof KfError && error.message.includes('field not declared in schema');
}

function leaving(object: SetupObject): KfError {
  return new KfError('conflict', `${describeObject(object)} is being deleted; what is applied now would go with it.`, {
    hints: [`kubectl wait --for=delete ${object.kind.toLowerCase()}/${object.metadata.name}${at(object)}`, 'kf setup'],
  });
}

const at = ({ metadata }: KubeObject): string => (metadata.namespace === undefined ? '' : ` -n ${metadata.namespace}`);

/** The present object; undefined while it, its namespace or its kind does not exist. */
async function liveOf(cluster: Cluster, object: SetupObject): Promise<Stored | undefined> {
  const live = await cluster.get(kindOf(object), object.metadata.namespace, object.metadata.name).catch((error: unknown) => {
    if (isYetToBeMade(error)) return undefined;
    throw refused(object, error);
  });
  if (live?.metadata.deletionTimestamp !== undefined) throw leaving(object);
  return live;
}

async function planOne(cluster: Cluster, set: ObjectSet, object: SetupObject): Promise<PlannedChange> {
  const live = await liveOf(cluster, object);
  try {
    const result = await cluster.apply(kindOf(object), object, { fieldManager: set.manager, force: true, dryRun: true });
    if (live === undefined) return { action: 'create', object };
    return { action: isDeepStrictEqual(comparable(live), comparable(result)) ? 'unchanged' : 'change', object };
  } catch (error) {
    if (isYetToBeMade(error)) return { action: 'create', object };
    if (isYetToBeDeclared(object, error)) return { action: live === undefined ? 'create' : 'change', object };
    throw refused(object, error);
  }
}

/**
 * Compares each object with the cluster by a dry-run apply. Nothing is written, and missing rights are found before the first write.
 * @throws KfError with every refusal in `details.refused`
 */
export async function planObjects(cluster: Cluster, set: ObjectSet, objects: SetupObject[]): Promise<PlannedChange[]> {
  const limit = pLimit(parallelRequests);
  const plans = await Promise.allSettled(objects.map((object) => limit(() => planOne(cluster, set, marked(set, object)))));
  const refusals = plans.flatMap((plan) => (plan.status === 'rejected' ? [plan.reason as KfError] : []));
  const [first] = refusals;
  if (first !== undefined) {
    const others = refusals.length === 1 ? '' : ` So would ${refusals.length - 1} more.`;
    throw new KfError(first.code, `${first.message}${others} Nothing was written.`, {
      hints: first.hints,
      details: { refused: refusals.map(({ message }) => message) },
      cause: first,
    });
  }
  return plans.flatMap((plan) => (plan.status === 'fulfilled' ? [plan.value] : []));
}

/** Applies the new and changed objects of the plan in parallel. */
export async function applyPlanned(cluster: Cluster, set: ObjectSet, planned: PlannedChange[], signal?: AbortSignal): Promise<void> {
  const limit = pLimit(parallelRequests);
  const changes = planned.filter((change) => change.action !== 'unchanged');
  const options = { fieldManager: set.manager, force: true, ...defined({ signal }) };
  await Promise.all(
    changes.map((change) =>
      limit(async () => {
        try {
          await cluster.apply(kindOf(change.object), change.object, options);
        } catch (error) {
          throw refused(change.object, error);
        }
      }),
    ),
  );
}

function refused(object: SetupObject, error: unknown): KfError {
  const answer = error instanceof KfError ? error : undefined;
  const message = error instanceof Error ? error.message : String(error);
  return new KfError(answer?.code ?? 'failed', `Applying ${describeObject(object)} failed: ${message}`, {
    hints: answer?.hints ?? [],
    cause: error,
  });
}

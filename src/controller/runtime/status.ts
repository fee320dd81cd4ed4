// The only way to write an object's status: it sends only changes, keeps labels and finalizers right, and writes an Event per transition.

import { findCondition, setCondition } from '../../lib/api/conditions.ts';
import { conditionTypes, finalizers } from '../../lib/api/group.ts';
import { indexLabels } from '../../lib/api/labels.ts';
import type { Condition, KubeObject, ResourceType, Stored } from '../../lib/api/object.ts';
import { cutText } from '../../lib/api/text.ts';
import { timestamp } from './clock.ts';
import { diff } from './merge-patch.ts';
import type { Context } from './reconciler.ts';
import { TerminalError, WaitingError } from './result.ts';

interface BaseStatus {
  conditions?: Condition[];
  observedGeneration?: number;
}

export interface WithStatus extends KubeObject {
  status?: BaseStatus;
}

export type StatusOf<T extends WithStatus> = NonNullable<T['status']>;

/** A condition for the object's present generation, unless it names another one. */
export interface Statement {
  type: string;
  status: 'True' | 'False' | 'Unknown';
  reason: string;
  message: string;
  observedGeneration?: number;
}

export const readyStatement: Statement = { type: conditionTypes.ready, status: 'True', reason: 'Ready', message: '' };

/** Ready=False with the reason of an error, or with `Unknown`. */
export function notReady(error: unknown): Statement {
  const reason = error instanceof TerminalError || error instanceof WaitingError ? error.reason : 'Unknown';
  return { type: conditionTypes.ready, status: 'False', reason, message: error instanceof Error ? error.message : String(error) };
}

/** Limit for a message in a status; it may contain text of a kubelet, a registry or a scheduler. The schemas in tools/crds allow no more. */
export const longestMessage = 4_096;

/** The object's conditions with the statements added; conditions of others stay. */
export function conditionsWith(object: WithStatus, ...statements: Statement[]): Condition[] {
  const observedGeneration = object.metadata.generation ?? 0;
  let conditions: Condition[] = object.status?.conditions ?? [];
  for (const statement of statements) {
    const message = cutText(statement.message, longestMessage);
    conditions = setCondition(conditions, { observedGeneration, ...statement, message });
  }
  return conditions;
}

export interface MetadataChange {
  labels?: Record<string, string>;
  annotations?: Record<string, string | null>;
}

/** Writes labels, annotations and finalizers of the main object and returns the resulting object. Sends nothing when all are right. */
export async function writeMetadata<T extends WithStatus>(
  context: Context,
  type: ResourceType<T>,
  live: Stored<T>,
  change: MetadataChange,
): Promise<Stored<T>> {
  const { labels = {}, annotations = {}, resourceVersion, finalizers: present = [] } = live.metadata;
  const kept = present.filter((name) => !(finalizers.foreign as readonly string[]).includes(name));
  const patch = {
    ...changed('labels', labels, change.labels ?? {}),
    ...changed('annotations', annotations, change.annotations ?? {}),
    ...(kept.length === present.length ? {} : { finalizers: kept }),
  };
  if (Object.keys(patch).length === 0) return live;
  const { namespace, name } = live.metadata;
  return context.cluster.mergePatch(type, namespace, name, { metadata: { resourceVersion, ...patch } }, { signal: context.signal });
}

function changed(field: string, live: Record<string, string>, wanted: Record<string, string | null>): Record<string, unknown> {
  const entries = Object.entries(wanted).filter(([key, value]) => (value === null ? key in live : live[key] !== value));
  return entries.length === 0 ? {} : { [field]: Object.fromEntries(entries) };
}

/**
 * Makes the object's status equal to `status` (plus observedGeneration) and corrects its index labels. Sends nothing when nothing changed; returns
 * the resulting object. A conflict is thrown, and the queue retries.
 */
export async function writeStatus<T extends WithStatus>(
  context: Context,
  type: ResourceType<T>,
  live: Stored<T>,
  status: StatusOf<T>,
  change: MetadataChange = {},
): Promise<Stored<T>> {
  const wanted = { ...status, ...withTimes(context, live, status.conditions), observedGeneration: live.metadata.generation ?? 0 };
  const wantedLabels = { ...indexLabels({ ...live, status: wanted }), ...change.labels };
  const current = await writeMetadata(context, type, live, { ...change, labels: wantedLabels });
  const patch = diff({ ...live.status }, { ...wanted });
  if (patch === undefined) return current;
  const { namespace, name, resourceVersion } = current.metadata;
  const written = await context.cluster.mergePatch(
    type,
    namespace,
    name,
    { metadata: { resourceVersion }, status: patch },
    { subresource: 'status', signal: context.signal },
  );
  recordTransitions(context, type, live, wanted.conditions ?? []);
  return written;
}

/** Transition times are in the API server's time, because ages are computed against it. */
function withTimes(context: Context, live: WithStatus, conditions: readonly Condition[] | undefined): { conditions?: Condition[] } {
  if (conditions === undefined) return {};
  const lastTransitionTime = timestamp(context.now());
  const isNew = ({ type, status }: Condition): boolean => findCondition(live, type)?.status !== status;
  return { conditions: conditions.map((condition) => (isNew(condition) ? { ...condition, lastTransitionTime } : condition)) };
}

/** Conditions that report a problem when they are False; the others only show progress. */
const troubled = new Set<string>([conditionTypes.ready, conditionTypes.succeeded, conditionTypes.claimed]);

function recordTransitions<T extends WithStatus>(
  context: Context,
  type: ResourceType<T>,
  before: Stored<T>,
  after: readonly Condition[],
): void {
  for (const condition of after) {
    const old = findCondition(before, condition.type);
    if (old?.status === condition.status && old.reason === condition.reason) continue;
    const isTrouble =
      condition.type === conditionTypes.failed ? condition.status === 'True' : troubled.has(condition.type) && condition.status === 'False';
    // A new object that is not ready yet is not worth an Event, and neither is one that is as it should be from the beginning: an Event costs as much
    // as any other object, and is deleted with its space.
    const isFresh = old === undefined && (isTrouble ? condition.type === conditionTypes.ready : condition.message === '');
    if (condition.status === 'Unknown' || isFresh) continue;
    context.event(type, before, {
      type: isTrouble ? 'Warning' : 'Normal',
      reason: condition.reason,
      message: condition.message === '' ? `Condition ${condition.type} is ${condition.status}` : condition.message,
    });
  }
}

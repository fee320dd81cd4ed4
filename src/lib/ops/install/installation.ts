// All parts of an installation: their objects, the plan, and their ordered application and checks.

import { BugError } from '../../errors.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { applyPlanned, planObjects, type PlannedChange } from './applier.ts';
import { setupObject, type SetupObject } from './kinds.ts';
import { inOrder, type Part, type PartInput, type Proofs, type SetupRun } from './part.ts';
import { parts } from './parts.generated.ts';
import { setupSet } from './setup-set.ts';

export interface PartObjects {
  part: Part;
  objects: SetupObject[];
  /** Objects of its other choices; they stay where they are. */
  alternatives: SetupObject[];
}

export interface PlannedPart {
  part: Part;
  changes: PlannedChange[];
}

/** The objects of all parts, in the order in which they are applied. Only reads files of the package. */
export function objectsOfParts(input: PartInput): Promise<PartObjects[]> {
  return Promise.all(
    inOrder(parts).map(async (part) => {
      const [objects, alternatives] = [await part.objects(input), part.alternatives?.(input) ?? []];
      return { part, objects: objects.map(setupObject), alternatives: alternatives.map(setupObject) };
    }),
  );
}

/** Compares every object with the cluster. Nothing is written; missing rights are reported here. @throws KfError */
export async function planParts(cluster: Cluster, all: PartObjects[]): Promise<PlannedPart[]> {
  const planned = await planObjects(
    cluster,
    setupSet,
    all.flatMap(({ objects }) => objects),
  );
  let at = 0;
  return all.map(({ part, objects }) => ({ part, changes: planned.slice(at, (at += objects.length)) }));
}

async function applyPart(run: SetupRun, { part, changes }: PlannedPart): Promise<void> {
  await part.before?.(run);
  if (changes.every(({ action }) => action === 'unchanged')) return;
  run.report(part.step === undefined ? { type: 'install-part', part: part.name } : { type: 'install-step', step: part.step });
  await applyPlanned(run.cluster, setupSet, changes, run.signal);
}

type Outcome = () => Promise<Partial<Proofs>>;

/**
 * Applies the parts in order, each when those that it requires are ready. A part becomes ready while the next ones are applied.
 * @returns functions that return the outcomes of the checks that the parts started
 */
export async function applyParts(context: SetupRun, planned: PlannedPart[]): Promise<Outcome[]> {
  const failed = new AbortController();
  const signals = [failed.signal, ...(context.signal === undefined ? [] : [context.signal])];
  const run = { ...context, signal: AbortSignal.any(signals) };
  const ready = new Map<string, Promise<void>>();
  const outcomes: Outcome[] = [];
  try {
    for (const one of planned) {
      const { name, requires, after, prove } = one.part;
      await Promise.all(requires.flatMap((required) => ready.get(required) ?? []));
      await applyPart(run, one);
      if (prove !== undefined) outcomes.push(prove(run));
      const readiness = after?.(run) ?? Promise.resolve();
      // Another part may fail before this promise is awaited.
      readiness.catch(() => undefined);
      ready.set(name, readiness);
    }
    await Promise.all(ready.values());
  } catch (error) {
    // Ends the other waits, which would wait for nothing.
    failed.abort(error);
    throw error;
  }
  return outcomes;
}

/** Collects the outcomes of all checks, one after the other. */
export async function proveParts(outcomes: Outcome[]): Promise<Proofs> {
  let proofs: Partial<Proofs> = {};
  for (const outcome of outcomes) proofs = { ...proofs, ...(await outcome()) };
  const { network, reach } = proofs;
  if (network === undefined || reach === undefined) throw new BugError('No part of setup checks the network, or the gateway.');
  return { network, reach };
}

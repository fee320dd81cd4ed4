// Makes a generation: its live inputs, its frozen inputs, and the objects that hold them.

import type { Stored } from '../../lib/api/object.ts';
import { webProcess } from '../../lib/api/app.ts';
import { secretType } from '../../lib/api/core.ts';
import { annotations, conditionTypes, kinds, reasons } from '../../lib/api/group.ts';
import type { AppWorkload, CFApp, CFProcess, Droplet } from '../../lib/api/types.generated.ts';
import { buildProcessEnv, defaultPort } from '../../templates/pod-env.ts';
import {
  buildAppWorkload, buildFrozenSecrets, generationHash, generationNames, liveHash, liveInputs, programMemoryMB,
  type FrozenInputs, type LiveInputs,
} from '../../templates/workload.ts'; // prettier-ignore
import { generationOf } from '../../templates/stateful-set.ts';
import { BoundedMap } from '../runtime/bounded-map.ts';
import { Remembered } from '../runtime/memory.ts';
import { isOwnedBy } from '../runtime/owner.ts';
import type { Context } from '../runtime/reconciler.ts';
import { conditionsWith, writeStatus, type Statement } from '../runtime/status.ts';
import { allRoutesTo, workloadsByProcess } from '../relations.ts';
import { createFrozen, readFrozen } from './frozen-environment.ts';

/** Ports of a process: those that routes name, oldest route first; `web` listens in any case. */
export function portsOf(process: Stored<CFProcess>, droplet: Droplet, context: Context): number[] {
  const first = droplet.ports?.[0] ?? defaultPort;
  const mapped = allRoutesTo(process, context.stores).map(({ destination }) => destination.port ?? first);
  const ports = [...new Set(mapped)];
  return ports.length === 0 && process.spec.processType === webProcess ? [first] : ports;
}

/** All generations of a process that are not being deleted, oldest first. */
export function workloadsOf(process: Stored<CFProcess>, context: Context): Stored<AppWorkload>[] {
  return context.stores
    .of(kinds.appWorkload)
    .by(workloadsByProcess.name, `${process.metadata.namespace}/${process.metadata.name}`)
    .filter((workload) => workload.metadata.deletionTimestamp === undefined)
    .toSorted((a, b) => (a.metadata.creationTimestamp ?? '').localeCompare(b.metadata.creationTimestamp ?? ''));
}

export function liveInputsOf(app: Stored<CFApp>, process: Stored<CFProcess>, droplet: Droplet, context: Context): LiveInputs {
  return liveInputs(app, process, droplet, portsOf(process, droplet, context));
}

/** The newest generation with the same live inputs; one that a later change has replaced only when there is no other. */
export function findGeneration(
  process: Stored<CFProcess>,
  workloads: readonly Stored<AppWorkload>[],
  live: LiveInputs,
): Stored<AppWorkload> | undefined {
  const hash = liveHash(live);
  const equal = workloads.filter((workload) => workload.metadata.annotations?.[annotations.liveHash] === hash);
  return equal.findLast((workload) => !isReplaced(process, workload)) ?? equal.at(-1);
}

/** The generation belongs to a change before the last one. It is there because it still ends, or serves in place of one that failed. */
function isReplaced({ status }: Stored<CFProcess>, workload: Stored<AppWorkload>): boolean {
  const said = status?.rollout?.generations?.find(({ hash }) => hash === generationOf(workload));
  return said?.state === 'Old' && said.untouched !== true;
}

/**
 * The found generation, unless it was replaced and has variables or services of an earlier time: a new change of the app never gets those.
 * @throws WaitingError naming what is missing
 */
export async function upToDate(
  context: Context,
  app: Stored<CFApp>,
  process: Stored<CFProcess>,
  live: LiveInputs,
  found: Stored<AppWorkload>,
): Promise<Stored<AppWorkload>> {
  if (!isReplaced(process, found)) return found;
  const frozen = await readFrozen(context, app, process, true);
  const hash = generationHash(process.metadata.name, live, frozen);
  return (
    workloadsOf(process, context).find((workload) => generationOf(workload) === hash) ?? createFrom(context, app, process, live, frozen)
  );
}

/** Uids of AppWorkloads whose Secrets are known to exist. */
const wholeGenerations = new Remembered(() => new BoundedMap<string, true>(5_000));

/** Freezes the variables of the app's last change and the bindings as they are now, and creates the generation, without instances. */
export async function createGeneration(
  context: Context,
  app: Stored<CFApp>,
  process: Stored<CFProcess>,
  live: LiveInputs,
): Promise<Stored<AppWorkload>> {
  return createFrom(context, app, process, live, await readFrozen(context, app, process, true));
}

/** Creates the AppWorkload and its Secrets. The Secret with the env comes last: when it exists, the generation is complete. */
async function createFrom(
  context: Context,
  app: Stored<CFApp>,
  process: Stored<CFProcess>,
  live: LiveInputs,
  frozen: FrozenInputs,
): Promise<Stored<AppWorkload>> {
  const hash = generationHash(process.metadata.name, live, frozen);
  const names = generationNames(process, hash);
  const env = buildProcessEnv({
    secretName: names.env,
    secretKeys: Object.keys(frozen.env).toSorted(),
    vcapApplication: frozen.vcapApplication as { application_id: string; application_name: string },
    memoryMB: programMemoryMB(live),
    ports: live.ports,
    lifecycle: app.spec.lifecycle.type,
  });
  const wanted = buildAppWorkload({ app, process, live, frozen, env }, hash);
  const workload = await context.cluster.create(kinds.appWorkload, wanted, { signal: context.signal });
  await addSecrets(context, process, workload, frozen);
  return workload;
}

/** Creates the Secrets that the generation does not have yet, and tells that it was made. */
async function addSecrets(
  context: Context,
  process: Stored<CFProcess>,
  workload: Stored<AppWorkload>,
  frozen: FrozenInputs,
): Promise<void> {
  const hash = generationOf(workload);
  await createFrozen(context, workload, buildFrozenSecrets(workload, generationNames(process, hash), frozen));
  context.memory.of(wholeGenerations).set(workload.metadata.uid, true);
  context.event(kinds.process, process, {
    type: 'Normal',
    reason: 'GenerationCreated',
    message: `Generation ${hash} was made from ${workload.spec.image}`,
  });
}

/**
 * Gives a generation whose creation was interrupted the Secrets that it lacks. If its inputs have changed since, it is removed instead, to be made
 * again from the current ones. Asks the API server once per generation and controller process.
 * @returns false when it was removed
 */
export async function makeWhole(
  context: Context,
  app: Stored<CFApp>,
  process: Stored<CFProcess>,
  live: LiveInputs,
  workload: Stored<AppWorkload>,
): Promise<boolean> {
  const { uid, namespace, name, annotations: marks = {} } = workload.metadata;
  const whole = context.memory.of(wholeGenerations);
  // The check is only for generations without instances that the controller made; other generations have no frozen Secrets to check.
  if (whole.has(uid) || workload.spec.instances > 0 || marks[annotations.liveHash] === undefined) return true;
  const secret = await context.cluster.get(secretType, namespace, generationNames(process, generationOf(workload)).env, context.signal);
  // A Secret that belongs to a deleted AppWorkload of the same name is about to be garbage-collected.
  if (secret !== undefined && isOwnedBy(secret, workload)) {
    whole.set(uid, true);
    return true;
  }
  const frozen = await readFrozen(context, app, process, true);
  if (generationHash(process.metadata.name, live, frozen) === generationOf(workload)) {
    await addSecrets(context, process, workload, frozen);
    return true;
  }
  await context.cluster.delete(kinds.appWorkload, namespace, name, { uid, propagation: 'Background', signal: context.signal });
  return false;
}

/**
 * Replaces lost frozen Secrets with the app's current env and bindings, which a restart would use too. If they still equal what was frozen,
 * the generation stays. Otherwise a new generation takes its place.
 * @returns the generation that should run
 */
export async function replaceLost(
  context: Context,
  app: Stored<CFApp>,
  process: Stored<CFProcess>,
  live: LiveInputs,
  broken: Stored<AppWorkload>,
): Promise<Stored<AppWorkload>> {
  const frozen = await readFrozen(context, app, process, false);
  const hash = generationHash(process.metadata.name, live, frozen);
  if (hash === generationOf(broken)) {
    await createFrozen(context, broken, buildFrozenSecrets(broken, generationNames(process, hash), frozen));
    const whole: Statement = { type: conditionTypes.whole, status: 'True', reason: 'Restored', message: '' };
    return writeStatus(context, kinds.appWorkload, broken, { ...broken.status, conditions: conditionsWith(broken, whole) });
  }
  const message =
    'The environment of the running version was deleted and nobody knows it any more: ' +
    "a new version starts with the app's variables and services as they are now, as after 'kf restart'.";
  context.event(kinds.app, app, { type: 'Warning', reason: reasons.environmentLost, message });
  return createFrom(context, app, process, live, frozen);
}

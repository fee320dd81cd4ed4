// The first generation of a process that is scaled while the app, or the process, waits for the next start.

import { desiredInstances } from '../../lib/api/app.ts';
import { annotations, kinds } from '../../lib/api/group.ts';
import { isHeld, isWhollyHeld } from '../../lib/api/held.ts';
import type { Stored } from '../../lib/api/object.ts';
import { isCanceled } from '../../lib/api/rollout.ts';
import type { CFApp, CFProcess, CFProcessStatus, Droplet } from '../../lib/api/types.generated.ts';
import { BoundedMap } from '../runtime/bounded-map.ts';
import { Remembered } from '../runtime/memory.ts';
import type { Context, Stores } from '../runtime/reconciler.ts';
import { keyOf } from '../runtime/store.ts';
import { byAge, dropletOfImage, processKeys, workloadsByProcess } from '../relations.ts';

/** A push that was killed leaves its lock. The CLI, too, ignores one that has not changed for 10 s; a push that takes over until then gets the lock first. */
const lockPatienceMs = 15_000;

/** Since when this controller has seen the lock of an app, by the uid of the app. The time in a lock comes from another machine. */
const seenLocks = new Remembered(() => new BoundedMap<string, { lock: string; at: number }>(5_000));

const lockOf = ({ metadata }: Stored<CFApp>): string => metadata.annotations?.[annotations.applying] ?? '';

/** A push writes the instances before its droplet, and would start the one of before. */
const isBeingWritten = (app: Stored<CFApp>): boolean => lockOf(app) !== '';

/** Milliseconds until the lock of the app is taken for one of a push that was killed; undefined without a lock, or when it is one. */
export function untilLockEnds({ memory, now }: Pick<Context, 'memory' | 'now'>, app: Stored<CFApp>): number | undefined {
  const lock = lockOf(app);
  if (lock === '') return undefined;
  const known = memory.of(seenLocks);
  const before = known.get(app.metadata.uid);
  const at = before?.lock === lock ? before.at : now();
  known.set(app.metadata.uid, { lock, at });
  const left = at + lockPatienceMs - now();
  return left > 0 ? left : undefined;
}

/** The app without its lock. */
export function unlocked(app: Stored<CFApp>): Stored<CFApp> {
  if (lockOf(app) === '') return app;
  const { [annotations.applying]: _, ...others } = app.metadata.annotations ?? {};
  return { ...app, metadata: { ...app.metadata, annotations: others } };
}

/**
 * `status.unstartedInstances` of a process without a generation. It tells a process that was scaled, which starts at once, from one that a manifest has added
 * with its instances, which starts with the next start of the app.
 */
export function unstartedOf(app: Stored<CFApp>, process: Stored<CFProcess>): number {
  const known = process.status?.unstartedInstances;
  return known !== undefined && isBeingWritten(app) ? known : desiredInstances(process);
}

/** The same while the first generation is hindered: after a cancellation only a process that was scaled since then is tried. */
export function hinderedUnstartedOf(app: Stored<CFApp>, process: Stored<CFProcess>): Pick<CFProcessStatus, 'unstartedInstances'> {
  const isKept = process.status?.unstartedInstances === undefined || isHeld(app, process);
  return isKept ? {} : { unstartedInstances: unstartedOf(app, process) };
}

/** The process has no generation yet, and somebody has set its number of instances. It has no settings of before that could be held. */
export function isScaledFirst(app: Stored<CFApp>, process: Stored<CFProcess>): boolean {
  const known = process.status?.unstartedInstances;
  return known !== undefined && known !== unstartedOf(app, process);
}

/** As in cf, a process that a manifest adds to a running app gets its instances with the next start. @param process without a generation */
export function waitsForStart(app: Stored<CFApp>, process: Stored<CFProcess>): boolean {
  return isHeld(app, process) && process.status?.rollout === undefined && !isScaledFirst(app, process);
}

/**
 * The droplet that a process should run. That of its first generation is the one with which the app runs, as in cf, where it is that of the revision: a droplet
 * that `set-droplet` chose waits for the next start, and an app runs in one version. After a cancellation the app's droplet is the former one again.
 * @param droplet of the app
 */
export function dropletFor(app: Stored<CFApp>, process: Stored<CFProcess>, droplet: Droplet, stores: Stores): Droplet {
  if (!isScaledFirst(app, process) || !isWhollyHeld(app) || isCanceled(app)) return droplet;
  const running = processKeys(keyOf(app), stores)
    .flatMap((key) => stores.of(kinds.appWorkload).by(workloadsByProcess.name, key))
    .filter(({ metadata, spec }) => metadata.deletionTimestamp === undefined && spec.instances > 0)
    .toSorted(byAge)
    .at(-1);
  return (running && dropletOfImage(app, running.spec.image, stores)) ?? droplet;
}

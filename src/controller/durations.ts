// Measures how long pushes and rollouts take, from what the controller observes, without the clock of a client.

import { annotations } from '../lib/api/group.ts';
import type { CFApp, CFBuild } from '../lib/api/types.generated.ts';
import { BoundedMap } from './runtime/bounded-map.ts';
import { Remembered } from './runtime/memory.ts';
import type { Ended } from './runtime/metrics.ts';
import type { Context } from './runtime/reconciler.ts';

type Change = 'push' | 'rollout';

interface Begun {
  id: string;
  /** Undefined when the change began before this controller looked, or when it is measured already. */
  at: number | undefined;
}

const begun = new Remembered(() => new BoundedMap<string, Begun>(10_000));
const marks: Record<Change, string> = { push: annotations.pushId, rollout: annotations.deployId };

function keyOf(change: Change, { metadata }: CFApp | CFBuild, guid: string): string {
  return `${change} ${metadata.namespace ?? ''}/${guid}`;
}

/** A change of a new app began when the app was created. A change of an older app that began before this controller looked is not measured. */
function beginOf(app: CFApp, isFirstLook: boolean, now: number): number | undefined {
  if (!isFirstLook) return now;
  return app.status?.deployment === undefined ? Date.parse(app.metadata.creationTimestamp ?? '') || now : undefined;
}

/** Records the push and the change of the app that are in progress. */
export function noteChanges(context: Context, app: CFApp): void {
  const known = context.memory.of(begun);
  for (const change of ['push', 'rollout'] as const) {
    const id = app.metadata.annotations?.[marks[change]];
    const key = keyOf(change, app, app.metadata.name ?? '');
    const before = known.get(key);
    if (before?.id === (id ?? '')) continue;
    known.set(key, { id: id ?? '', at: id === undefined ? undefined : beginOf(app, before === undefined, context.now()) });
  }
}

/** Measures a change that has ended, once. */
function end(
  context: Context,
  change: Change,
  object: CFApp | CFBuild,
  { guid, id, outcome }: { guid: string; id: string; outcome: Ended },
): void {
  const known = context.memory.of(begun).get(keyOf(change, object, guid));
  if (known?.id !== id || known.at === undefined) return;
  const metric = change === 'push' ? context.metrics.pushSeconds : context.metrics.rolloutSeconds;
  metric.observe({ outcome }, Math.max(0, context.now() - known.at) / 1_000);
  known.at = undefined;
}

/** Call it with the app's current status. */
export function measureDeployment(context: Context, app: CFApp, { id, phase }: { id: string; phase: string }): void {
  if (phase !== 'Serving' && phase !== 'Failed') return;
  const outcome = phase === 'Serving' ? 'succeeded' : 'failed';
  // The change of a push has the id of the push.
  for (const change of ['push', 'rollout'] as const) end(context, change, app, { guid: app.metadata.name ?? '', id, outcome });
}

/** Call it once with a build that has ended. */
export function measureBuild(context: Context, build: CFBuild, outcome: Ended): void {
  const created = Date.parse(build.metadata.creationTimestamp ?? '');
  if (Number.isNaN(created)) return;
  const { spec, metadata } = build;
  context.metrics.buildSeconds.observe({ lifecycle: spec.lifecycle.type, outcome }, Math.max(0, context.now() - created) / 1_000);
  const id = metadata.annotations?.[annotations.pushId];
  if (outcome === 'failed' && id !== undefined) end(context, 'push', build, { guid: spec.appRef.name, id, outcome });
}

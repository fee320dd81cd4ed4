// Keeps why a revision failed beside its record, before its instances are removed: status and pods belong to the last change only.

import { configMapType } from '../../lib/api/core.ts';
import { annotations } from '../../lib/api/group.ts';
import { changeOf } from '../../lib/api/held.ts';
import type { Stored } from '../../lib/api/object.ts';
import { revisionsName } from '../../lib/api/revisions.ts';
import type { CFApp } from '../../lib/api/types.generated.ts';
import { readVerdicts, withVerdict, type Verdict } from '../../lib/api/verdicts.ts';
import { defined } from '../../lib/defined.ts';
import { messageOf } from '../../lib/errors.ts';
import { isConflict } from '../../lib/kube/errors.ts';
import { timestamp } from '../runtime/clock.ts';
import { isOwnedBy } from '../runtime/owner.ts';
import type { Context } from '../runtime/reconciler.ts';
import type { Cause } from './status.ts';

/** The record of the revision may be written at the same time. */
const mostTries = 3;

/** A failure as it is kept. */
export type Failure = Pick<Verdict, 'cause' | 'message' | 'process'> &
  Partial<Pick<Verdict, 'pod' | 'container' | 'exitCode'>> &
  Pick<Cause, 'log'>;

/** The failure of a generation. */
export function failureOf({ problem, instance, log }: Cause, process: string): Failure {
  const { cause, message, container, exitCode } = problem;
  return { cause, message, process, ...defined({ pod: instance?.pod, container, exitCode, log }) };
}

/** Keeps the failure with the app's present revision. The first one of a change stays. A failure to keep it never stops a rollout. */
export async function keepVerdict(context: Context, app: Stored<CFApp>, failure: Failure): Promise<void> {
  const { revision } = app.status ?? {};
  const change = app.metadata.annotations?.[annotations.deployId];
  if (revision === undefined || revision.version === 0 || revision.change !== changeOf(app) || change === undefined) return;
  const { log, ...known } = failure;
  const verdict = {
    version: revision.version,
    change,
    at: timestamp(context.now()),
    ...known,
    ...(log ?? { head: [], omitted: 0, tail: [] }),
  };
  for (let tries = 1; ; tries += 1) {
    try {
      await write(context, app, verdict);
      return;
    } catch (error) {
      if (context.signal.aborted) throw error;
      if (isConflict(error) && tries < mostTries) continue;
      context.log.warn('a verdict could not be kept', { app: app.metadata.name, error: messageOf(error) });
      return;
    }
  }
}

async function write(context: Context, app: Stored<CFApp>, verdict: Verdict): Promise<void> {
  const { namespace, name } = app.metadata;
  const map = await context.cluster.get(configMapType, namespace, revisionsName(name), context.signal);
  if (map === undefined || !isOwnedBy(map, app)) return;
  if (readVerdicts(map).some(({ version, change }) => version === verdict.version && change === verdict.change)) return;
  const { resourceVersion } = map.metadata;
  const patch = { metadata: { resourceVersion }, data: withVerdict(map, verdict) };
  await context.cluster.mergePatch(configMapType, namespace, map.metadata.name, patch, { signal: context.signal });
}

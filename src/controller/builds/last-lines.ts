// What is kept of a failed build: the code of the cause, and the last lines of the step that failed, which are read before its pod goes.

import { causeOfBuild } from '../../lib/api/causes.ts';
import { keepLines } from '../../lib/api/kept-lines.ts';
import type { Stored } from '../../lib/api/object.ts';
import type { Pod } from '../../lib/api/pod-kind.ts';
import type { BuildFailure } from '../../lib/api/types.generated.ts';
import { defined } from '../../lib/defined.ts';
import { buildContainers } from '../../templates/build-job.ts';
import { lastLinesOfPod } from '../instances/last-lines.ts';
import type { Context } from '../runtime/reconciler.ts';
import type { FailedBuild } from './outcome.ts';

/** When no buildpack matches, each group of the builder prints some six lines, and the first is as important as the last. */
const keptSize = { head: 10, tail: 60 };

/** The container whose lines say why: the one that failed, otherwise the one that the build had come to. */
export function stepOf({ status }: Pod, { lane }: Pick<BuildFailure, 'lane'>): string {
  const hasPassed = (name: string): boolean =>
    status?.containerStatuses?.find((one) => one.name === name)?.state?.terminated?.exitCode === 0;
  const { source, build, registry } = buildContainers;
  return lane ?? [source, build].find((name) => !hasPassed(name)) ?? registry;
}

/** The failure with its code. */
export const withCause = ({ failure, message }: FailedBuild): BuildFailure => ({
  ...failure,
  cause: causeOfBuild(failure.reason, message),
});

/** The failure of a build that has run, with its code and its last lines. @param pod undefined when it is gone */
export async function withLastLines(context: Context, pod: Stored<Pod> | undefined, failed: FailedBuild): Promise<BuildFailure> {
  const { log, lost } = await lastLinesOfPod(context, pod, pod && stepOf(pod, failed.failure), keptSize);
  return { ...withCause(failed), ...defined({ pod: pod?.metadata.name, logLost: lost }), ...keepLines(log) };
}

// The cluster of the saved target: a kubeconfig that now leads elsewhere under that name is an error, and no reason to work in another cluster.

import { KfError } from '../errors.ts';
import type { Cluster } from '../kube/cluster.ts';
import { withoutStateHint, type StoredTarget, type TargetState } from './state.ts';

export interface PinOptions {
  /** The name of the program as it was started, for hints. */
  bin: string;
  /** `--context`, or its variable. */
  context?: string | undefined;
  /** For commands that set the target: a changed context is not an error. */
  ignorePin?: boolean | undefined;
}

/** The saved state, if it belongs to this cluster. @throws KfError when the saved context now leads to another one */
export function pinned(stored: TargetState, cluster: Cluster, options: PinOptions): TargetState {
  const { context, server } = cluster.identity;
  if (stored.context !== context) return { context, server };
  if (stored.server === server || stored.server === undefined) return { ...stored, server };
  if (options.ignorePin === true || options.context !== undefined) return { context, server };
  throw new KfError('conflict', `The target is the cluster at ${stored.server}, but context '${context}' now leads to ${server}.`, {
    hints: [`${options.bin} target -o ORG -s SPACE`, `${options.bin} api ${context}`],
  });
}

/** Explains that the saved context is missing in this kubeconfig: where the name comes from, and how to choose another one. */
export function explainPin(error: KfError, stored: TargetState, bin: string): KfError {
  const { missingContext } = error.details;
  if (missingContext === undefined || missingContext !== stored.context) return error;
  return new KfError('usage', `The target is context '${stored.context}'. ${error.message}`, {
    hints: [`${bin} api CONTEXT`, `${bin} api --unset`, ...error.hints],
    details: error.details,
  });
}

/** The saved cluster is unknown, so any cluster could be the wrong one. */
export function assertReadable({ problem }: StoredTarget, options: PinOptions): void {
  if (problem === undefined || options.ignorePin === true || options.context !== undefined) return;
  throw new KfError('conflict', `The saved target cannot be used: ${problem}`, {
    hints: [`${options.bin} target -o ORG -s SPACE`, withoutStateHint],
  });
}

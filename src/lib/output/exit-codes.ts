// Exit codes: cf's own, or one number per class of failure with KF_EXIT_CODES=class (docs/exit-codes.md).

import type { FailureClass, KfError } from '../errors.ts';

/** Scripts rely on these numbers: never change one, only add new ones. */
export const classCodes: Readonly<Record<FailureClass, number>> = {
  failed: 1,
  usage: 2,
  'not-found': 3,
  forbidden: 4,
  conflict: 5,
  upload: 6,
  build: 7,
  start: 8,
  timeout: 9,
  quota: 10,
  unreachable: 11,
  accepted: 12,
  bug: 70,
  interrupted: 130,
};

export function exitCodeOf(error: KfError, env: Readonly<Record<string, string | undefined>>): number {
  if (env['KF_EXIT_CODES'] === 'class') return error.exitCode > 1 && error.code !== 'interrupted' ? error.exitCode : classCodes[error.code];
  return error.code === 'interrupted' ? 130 : error.exitCode;
}

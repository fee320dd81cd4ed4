// Explains a failed build of a folder that has a Dockerfile.

import { existsSync } from 'node:fs';
import path from 'node:path';
import { reasons } from '../../api/group.ts';
import { KfError } from '../../errors.ts';
import { noDockerfiles } from '../../dockerfile.ts';

/** Adds to the error of a build in which no buildpack matched that kf does not build the Dockerfile of the pushed folder. */
export function withDockerfile(error: unknown, folder: string): unknown {
  if (!(error instanceof KfError) || error.details['reason'] !== reasons.noBuildpackMatched) return error;
  if (!existsSync(path.join(folder, 'Dockerfile'))) return error;
  const { code, message, hints, exitCode, details } = error;
  return new KfError(code, `${message} kf does not build its Dockerfile: ${noDockerfiles.because}.`, {
    hints: [noDockerfiles.hint, ...hints],
    exitCode,
    details,
    cause: error,
  });
}

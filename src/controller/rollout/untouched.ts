// Whether the app's present change leaves a process as it is: its version has served since before the change.

import type { DeploymentStatus, GenerationStatus } from '../../lib/api/types.generated.ts';

/**
 * All wanted instances of the version were ready and proven at least once. Status of kf 0.1.0, in which versions have no `uid`, does not say so: there, one
 * that answered a request counts, and the present one of a change that came to `Serving`.
 * @param phase of the change, where it is known
 */
export function hasServed(said: GenerationStatus | undefined, phase?: DeploymentStatus['phase']): boolean {
  if (said?.uid !== undefined) return said.served === true;
  const cameTo = phase === 'Serving' && said?.state === 'Current';
  return said?.served === true || ((said?.verified === true || cameTo) && said?.state !== 'Failed');
}

/**
 * True when the process had its wanted generation before the app's present change, and serves by it. It stays what it is until the next change. A canary that
 * is under way counts as a part of its own change only: the next change with the same version goes on with its steps.
 * @param rollout the last status of the process
 * @param hash of the wanted generation
 * @param change `kf/deploy-id` of the present change
 */
export function isUntouched(
  rollout: Pick<DeploymentStatus, 'id' | 'phase' | 'step' | 'generations'> | undefined,
  hash: string,
  change: string,
): boolean {
  const said = rollout?.generations?.find((generation) => generation.hash === hash);
  if (rollout?.id === change) return said?.untouched === true;
  // The change before left it alone too, or was hindered until this one came.
  if (said?.untouched === true && said.state !== 'Failed') return true;
  const cameTo = rollout?.phase === 'Serving' || (rollout?.phase === 'Starting' && rollout.step === undefined);
  return cameTo && said?.state === 'Current' && (hasServed(said) || said.verified === true);
}

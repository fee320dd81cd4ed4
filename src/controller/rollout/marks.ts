// What the status says of a version beside its instances: whether it has answered and served, and whether it leaves. The next steps decide by it. Pure.

import type { GenerationStatus } from '../../lib/api/types.generated.ts';

export type Marks = Pick<GenerationStatus, 'verified' | 'served' | 'leaving' | 'untouched'>;

export interface TargetFacts {
  /** It has answered a request, or all of it has served, now or before. */
  verified: boolean;
  served: boolean;
  /** The change leaves the process as it is. */
  untouched: boolean;
  /** Another process of the version failed, so the version has failed as a whole. */
  siblingFailed: boolean;
}

/** The marks of the wanted version. */
export const marksOfTarget = ({ verified, served, untouched, siblingFailed }: TargetFacts): Marks => ({
  ...(verified && !siblingFailed ? { verified: true } : {}),
  ...(served && !siblingFailed ? { served: true } : {}),
  ...(untouched ? { untouched: true } : {}),
});

export interface OtherFacts {
  /** What the status said of it before. */
  said: GenerationStatus | undefined;
  /** All of it has served before the present change, as far as the status still says so. */
  served: boolean;
  /** It still has instances. */
  hasInstances: boolean;
  /** `said` is of the present change. */
  isOfChange: boolean;
  /** The change that replaced it is done: nothing falls back to it later, unless the new version fails before its instances have ended. */
  isDecided: boolean;
  /** The wanted version has failed. */
  failed: boolean;
}

/** True for a version that serves again when the wanted one fails: it has served, or was replaced in this change and still leaves. */
export const mayServeAgain = ({ said, served, isOfChange }: Pick<OtherFacts, 'said' | 'served' | 'isOfChange'>): boolean =>
  served || (isOfChange && said?.leaving === true);

/** The marks of a version that is not the wanted one. */
export function marksOfOther(facts: OtherFacts): Marks {
  const { said, served, hasInstances, isDecided, failed } = facts;
  const isPast = isDecided || (said?.state === 'Failed' && said.served !== true);
  const isLeft = hasInstances && mayServeAgain(facts);
  const leaves = isLeft && !failed && (isDecided || said?.leaving === true);
  return {
    ...(said?.verified === true && !isPast ? { verified: true } : {}),
    ...((served && !isPast) || (isLeft && failed) ? { served: true } : {}),
    ...(leaves ? { leaving: true } : {}),
  };
}

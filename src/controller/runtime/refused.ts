// Recognizes what the API server answers when a quota is used up, or when a policy denies an object: it may take the same object later.

import { KubeError } from '../../lib/kube/errors.ts';

/** In the words of quotas, admission webhooks and ValidatingAdmissionPolicies. */
const refusedText = /exceeded quota|denied (the )?request/;

/** The answer itself; undefined for every other error, such as a right that is missing. */
export function refusedBy(error: unknown): string | undefined {
  if (!(error instanceof KubeError)) return undefined;
  const said = error.body?.message ?? error.message;
  return refusedText.test(said) ? said : undefined;
}

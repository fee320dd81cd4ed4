// Recognizes what the API server answers when a quota is used up, when a policy denies an object, or when it cannot ask one: it may take the same object
// later.

import { KubeError } from '../../lib/kube/errors.ts';

/** In the words of quotas, admission webhooks and ValidatingAdmissionPolicies. */
const refusedText = /exceeded quota|denied (the )?request/;

/** A webhook that has to be asked (`failurePolicy: Fail`) does not answer: an internal error for the API server. */
const unansweredText = /failed calling webhook/;

/** The answer itself; undefined for every other error, such as a right that is missing. */
export function refusedBy(error: unknown): string | undefined {
  return answerLike(error, refusedText);
}

/** The answer of an API server that cannot ask an admission webhook; undefined for every other error. */
export function unansweredBy(error: unknown): string | undefined {
  return answerLike(error, unansweredText);
}

function answerLike(error: unknown, text: RegExp): string | undefined {
  if (!(error instanceof KubeError)) return undefined;
  const said = error.body?.message ?? error.message;
  return text.test(said) ? said : undefined;
}

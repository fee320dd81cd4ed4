// Which answer of the API server an error is: reconcilers and informers decide by it.

import { KfError } from '../../lib/errors.ts';

/** HTTP status behind an error of `lib/kube`, where there was an answer. */
function statusOf(error: unknown): number | undefined {
  const status = (error as { status?: unknown } | undefined)?.status;
  return typeof status === 'number' ? status : undefined;
}

/** Someone changed the object meanwhile, or it exists already. */
export function isConflict(error: unknown): boolean {
  return statusOf(error) === 409 || (error instanceof KfError && error.code === 'conflict');
}

export function isNotFound(error: unknown): boolean {
  return statusOf(error) === 404 || (error instanceof KfError && error.code === 'not-found');
}

/** 410: the resource version of a watch is too old. */
export function isExpired(error: unknown): boolean {
  return statusOf(error) === 410 || (error as { reason?: unknown } | undefined)?.reason === 'Expired';
}

/** 422, or a policy's refusal: asking again changes nothing. */
export function isInvalid(error: unknown): boolean {
  return statusOf(error) === 422 || statusOf(error) === 400;
}

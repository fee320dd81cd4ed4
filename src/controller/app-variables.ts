// The variables that the user set for an app, for all that starts with them: instances, tasks and builds.

import type { Stored } from '../lib/api/object.ts';
import { secretType } from '../lib/api/core.ts';
import { reasons } from '../lib/api/group.ts';
import type { CFApp } from '../lib/api/types.generated.ts';
import type { Context } from './runtime/reconciler.ts';
import { WaitingError } from './runtime/result.ts';

/** What a Secret contains, in base64. */
export type SecretData = Record<string, string>;

/** The data of a Secret: none without a name, undefined for a Secret that is missing. */
export async function secretData(context: Context, ns: string, name: string | undefined): Promise<SecretData | undefined> {
  if (name === undefined || name === '') return {};
  const secret = await context.cluster.get(secretType, ns, name, context.signal);
  return secret === undefined ? undefined : (secret.data ?? {});
}

/**
 * The app's variables. Nothing must start as if it had none, so it waits for a Secret that is missing.
 * @param retryMs when to look for a missing Secret again: nothing watches Secrets
 * @throws WaitingError
 */
export async function variablesOf(context: Context, app: Stored<CFApp>, retryMs: number): Promise<SecretData> {
  const name = app.spec.envSecretName;
  const variables = await secretData(context, app.metadata.namespace, name);
  if (variables !== undefined) return variables;
  throw new WaitingError(
    reasons.environmentLost,
    `The Secret '${name ?? ''}' with the app's environment variables is missing, and its values are lost: push the app with its manifest again, or set each variable with 'kf set-env'.`,
    retryMs,
  );
}

/** Pause between two looks for the variables that a task or a build waits for: many may wait at the same time. */
export const variablesLookMs = 5_000;

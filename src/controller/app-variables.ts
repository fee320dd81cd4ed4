// The variables that the user set for an app, for all that starts with them: instances, tasks and builds; and what a generation has beside them.

import { isDeepStrictEqual } from 'node:util';
import type { Stored } from '../lib/api/object.ts';
import { secretType } from '../lib/api/core.ts';
import { annotations, kinds, labels, reasons } from '../lib/api/group.ts';
import type { CFApp, CFProcess } from '../lib/api/types.generated.ts';
import { encoded } from '../templates/metadata.ts';
import { databaseUrl, databaseUrlKey, vcapServicesKey, type VcapService } from '../templates/pod-env.ts';
import { generationNames } from '../templates/workload.ts';
import type { Context } from './runtime/reconciler.ts';
import { WaitingError } from './runtime/result.ts';
import { charactersOf } from './runtime/secrets.ts';

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
    `The Secret '${name ?? ''}' with the app's environment variables is missing, and its values are lost: push the app with its manifest again, return to a revision that has them with 'kf rollback', or set each variable with 'kf set-env'.`,
    retryMs,
  );
}

/** Limits for the environment of what is started: a process cannot start with one that is much larger. Characters as a Secret stores them. */
export const envLimits = { variables: 1_000, characters: 700 * 1024 } as const;

/** What of an environment is too much, as a sentence; undefined when it is small enough. @param what as the sentence names all of it */
export function envProblem(env: SecretData, what = "The app's environment"): string | undefined {
  const variables = Object.keys(env).length;
  const { variables: most, characters } = envLimits;
  if (variables > most) return `The app has ${variables} environment variables; at most ${most} are possible.`;
  if (charactersOf(env) > characters) return `${what} has more than ${(characters * 3) / 4 / 1024} KiB.`;
  return undefined;
}

/** Pause between two looks for the variables that a task or a build waits for: many may wait at the same time. */
export const variablesLookMs = 5_000;

/** Pauses between two looks for VCAP_SERVICES that are being written again: the first one, and the longest. */
const [vcapLookMs, vcapLastLookMs] = [500, 60_000];

/** The services of VCAP_SERVICES. A developer may have written the Secret. @throws WaitingError when it is not a JSON object */
export function servicesIn(vcapServices: string): VcapService[] {
  try {
    const listed: unknown[] = Object.values(JSON.parse(Buffer.from(vcapServices, 'base64').toString('utf8')) as object).flat();
    return listed.filter(
      (service): service is VcapService =>
        typeof (service as VcapService | null)?.credentials === 'object' && (service as VcapService).credentials !== null,
    );
  } catch {
    throw new WaitingError(
      'VcapServicesNotWritten',
      'VCAP_SERVICES of the app is no JSON object; it is being written again.',
      vcapLookMs,
      vcapLastLookMs,
    );
  }
}

/** The user's variables and those of the services. @throws WaitingError when `vcapServices` is not a JSON object */
export function withServices(env: SecretData, vcapServices: string): SecretData {
  const database = databaseUrl(servicesIn(vcapServices));
  const fromServices = database === undefined || databaseUrlKey in env ? {} : encoded({ [databaseUrlKey]: database });
  return { ...fromServices, ...env, [vcapServicesKey]: vcapServices };
}

/**
 * The names of the generation that the app's last change has made for the process; undefined when there is none yet, or it leaves the process alone. Another tool may start the app
 * without another `kf/deploy-id`, so a generation with another app-rev is one of the change before.
 */
function namesOfChange(
  { stores }: Context,
  { metadata: { annotations: marks = {} } }: Stored<CFApp>,
  process: Stored<CFProcess>,
): ReturnType<typeof generationNames> | undefined {
  const { id, generations } = process.status?.rollout ?? {};
  if (id === undefined || id !== marks[annotations.deployId]) return undefined;
  const made = generations?.find(({ state, untouched }) => state !== 'Old' && untouched !== true);
  if (made === undefined) return undefined;
  const names = generationNames(process, made.hash);
  const rev = stores.of(kinds.appWorkload).get(process.metadata.namespace, names.workload)?.metadata.labels?.[labels.appRev];
  return rev === undefined || rev === (marks[annotations.appRev] ?? '0') ? names : undefined;
}

/** Whether all generations that the app's last change has made so far have these variables of the user. */
export async function haveVariables(
  context: Context,
  app: Stored<CFApp>,
  processes: readonly Stored<CFProcess>[],
  env: SecretData,
): Promise<boolean> {
  for (const process of processes) {
    const names = namesOfChange(context, app, process);
    if (names === undefined) continue;
    const frozen = await secretData(context, process.metadata.namespace, names.env);
    const vcapServices = frozen?.[vcapServicesKey];
    if (vcapServices === undefined || !isDeepStrictEqual(frozen, withServices(env, vcapServices))) return false;
  }
  return true;
}

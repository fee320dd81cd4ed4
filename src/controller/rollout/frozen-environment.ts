// Reads the app's current env and bindings, which are frozen into a generation, and keeps them in Secrets that the AppWorkload owns.

import type { Stored } from '../../lib/api/object.ts';
import { isReady } from '../../lib/api/conditions.ts';
import { configMapType, secretType, type Secret } from '../../lib/api/core.ts';
import { kinds, reasons } from '../../lib/api/group.ts';
import { changeOf } from '../../lib/api/held.ts';
import { defaultGraceSeconds } from '../../lib/api/kf-info.ts';
import { readRecords, revisionsName, settingsIn } from '../../lib/api/revisions.ts';
import { isCanceled } from '../../lib/api/rollout.ts';
import type { AppWorkload, CFApp, CFProcess } from '../../lib/api/types.generated.ts';
import { isAlreadyExists } from '../../lib/kube/errors.ts';
import { vcapServicesKey } from '../../templates/pod-env.ts';
import type { FrozenBinding, FrozenInputs } from '../../templates/workload.ts';
import { envProblem, secretData, variablesOf, withServices, type SecretData } from '../app-variables.ts';
import { isOwnedBy } from '../runtime/owner.ts';
import type { Context } from '../runtime/reconciler.ts';
import { WaitingError } from '../runtime/result.ts';
import { charactersOf } from '../runtime/secrets.ts';
import { tooLargeMs, vcapApplicationOf, vcapServicesSecretName } from '../apps/vcap.ts';
import { bindingsOf, notReadyText } from '../relations.ts';

const retryMs = 500;
/** Attempts to create a Secret while another one of the same name exists: that one may be deleted and created again in the meantime. */
const mostTries = 5;

/**
 * The variables that the revision of the app's last change recorded. Those that were set since then wait for the next change, however late a
 * generation of this one is made. Undefined when they are not recorded.
 */
async function recordedEnv(context: Context, app: Stored<CFApp>): Promise<SecretData | undefined> {
  const { namespace, name } = app.metadata;
  const { revision } = app.status ?? {};
  if (revision === undefined || revision.change !== changeOf(app)) return undefined;
  const [map, kept] = await Promise.all([
    context.cluster.get(configMapType, namespace, revisionsName(name), context.signal),
    context.cluster.get(secretType, namespace, revisionsName(name), context.signal),
  ]);
  if (map === undefined || kept === undefined || !isOwnedBy(map, app) || !isOwnedBy(kept, app)) return undefined;
  // After a cancellation the app runs by the revision of before.
  const known = isCanceled(app) ? revision.deployed : revision.version;
  const record = readRecords(map).find(({ version }) => version === known);
  return settingsIn(kept, record?.settings)?.env;
}

/** Throws unless all bindings of the app are ready and listed in its status. A generation never gets only a part of them. */
function assertBound(context: Context, app: Stored<CFApp>): void {
  const listed = new Set((app.status?.serviceBindings ?? []).map(({ guid }) => guid));
  for (const binding of bindingsOf(context.stores, app)) {
    if (isReady(binding) && listed.has(binding.metadata.name)) continue;
    throw new WaitingError(reasons.bindingNotReady, notReadyText(context.stores, binding), retryMs);
  }
}

async function frozenBindings(context: Context, app: Stored<CFApp>): Promise<FrozenBinding[]> {
  const ns = app.metadata.namespace;
  const bindings: FrozenBinding[] = [];
  let characters = 0;
  // One after the other: all of them at once could need too much memory.
  for (const { guid, name, secret } of app.status?.serviceBindings ?? []) {
    const data = await secretData(context, ns, secret);
    if (data === undefined)
      throw new WaitingError(reasons.bindingNotReady, `The Secret '${secret}' of the service binding '${name}' is missing.`, retryMs);
    characters += charactersOf(data);
    if (characters > mostBindingCharacters) throw tooLarge(`The credentials of the app's services have more than 3 MiB.`);
    bindings.push({ guid, name, data });
  }
  return bindings;
}

/** Limit for the Secrets of all bindings together, in characters as a Secret stores them: each generation has its own copies. */
const mostBindingCharacters = 4 * 1024 * 1024;

const tooLarge = (message: string): WaitingError => new WaitingError('EnvironmentTooLarge', message, tooLargeMs);

/**
 * Reads the inputs that a new generation keeps for its whole life.
 * @param isOfChange the generation belongs to the app's last change: it gets the variables that the app had then
 * @throws WaitingError naming what is missing
 */
export async function readFrozen(
  context: Context,
  app: Stored<CFApp>,
  process: Stored<CFProcess>,
  isOfChange: boolean,
): Promise<FrozenInputs> {
  assertBound(context, app);
  const [present, recorded, services] = await Promise.all([
    variablesOf(context, app, retryMs),
    isOfChange ? recordedEnv(context, app) : undefined,
    secretData(context, app.metadata.namespace, vcapServicesSecretName(app)),
  ]);
  const vcapServices = services?.[vcapServicesKey];
  if (vcapServices === undefined) throw new WaitingError('VcapServicesNotWritten', 'VCAP_SERVICES of the app is not written yet.', retryMs);
  const env = withServices(recorded ?? present, vcapServices);
  const problem = envProblem(env, "The app's environment, VCAP_SERVICES included,");
  if (problem !== undefined) throw tooLarge(problem);
  // Only now: what hinders a generation is looked at again and again, and these can be large.
  const bindings = await frozenBindings(context, app);
  return {
    env,
    bindings: bindings.toSorted((a, b) => (a.guid < b.guid ? -1 : 1)),
    vcapApplication: vcapApplicationOf(context, app, process),
    drainSeconds: context.info().drainSeconds,
    graceSeconds: context.info().graceSeconds ?? defaultGraceSeconds,
  };
}

/**
 * Creates one Secret. A Secret of the same name that belongs to a deleted AppWorkload is deleted first: the garbage collector would remove
 * it, and the environment with it.
 */
async function createOne(context: Context, workload: Stored<AppWorkload>, secret: Secret): Promise<void> {
  const { namespace, name = '' } = secret.metadata;
  for (let tries = 1; ; tries += 1) {
    try {
      await context.cluster.create(secretType, secret, { signal: context.signal });
      return;
    } catch (error) {
      if (!isAlreadyExists(error) || tries === mostTries) throw error;
    }
    const present = await context.cluster.get(secretType, namespace, name, context.signal);
    // Policy kf-people-records keeps people from naming an owner of this kind; they can give its uid to an owner of another kind.
    const isOwn = present?.metadata.ownerReferences?.some(
      ({ kind, uid }) => kind === kinds.appWorkload.kind && uid === workload.metadata.uid,
    );
    if (isOwn === true) return;
    const uid = present?.metadata.uid;
    if (uid !== undefined) await context.cluster.delete(secretType, namespace, name, { uid, signal: context.signal });
  }
}

/** Creates the Secrets of a generation; the last one only when all others exist. */
export async function createFrozen(context: Context, workload: Stored<AppWorkload>, secrets: readonly Secret[]): Promise<void> {
  await Promise.all(secrets.slice(0, -1).map((secret) => createOne(context, workload, secret)));
  await Promise.all(secrets.slice(-1).map((secret) => createOne(context, workload, secret)));
}

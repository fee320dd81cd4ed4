// User-provided service instances and bindings.

import { randomUUID } from 'node:crypto';
import { findCondition, isTrue } from '../../api/conditions.ts';
import { secretType, type Secret } from '../../api/core.ts';
import { followedSecret } from '../../api/credentials.ts';
import { annotations, kinds, labels } from '../../api/group.ts';
import type { Stored } from '../../api/object.ts';
import type { ServiceSummary } from '../../api/results.ts';
import { lastOperationOf } from '../../api/service-operation.ts';
import type { CFApp, CFServiceBinding, CFServiceInstance } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import { isAlreadyExists } from '../../kube/errors.ts';
import { watchObject } from '../../kube/watch-list.ts';
import { unlessLate } from '../../wait.ts';
import type { SpaceSession } from '../../session/session.ts';
import { buildAppBinding, buildCredentialsSecret, buildUserProvidedInstance } from '../../../templates/service.ts';
import { waitForController, whereControllerIs } from '../controller-wait.ts';
import type { OpEvent } from '../../events.ts';
import { findServiceIfAny } from '../find.ts';
import { appNames } from '../rows.ts';
import { markUnapplied } from '../unapplied.ts';
import { assertFollowable } from './from-secret.ts';
import { keepsName } from './keeps-name.ts';

/**
 * Longer than the usual time for a reaction of the controller, because the Secret with the credentials may be written after the instance that
 * names it.
 */
const bindingPatienceMs = 30_000;
/** The app's status usually lists a new binding at once; if another binding is not ready, it does not. */
const toldPatienceMs = 3_000;

/** As cf words it: `create succeeded`. */
export function operationText(instance: Stored<CFServiceInstance>): string {
  if (instance.metadata.deletionTimestamp !== undefined) return 'delete in progress';
  const { type, state } = lastOperationOf(instance);
  return `${type} ${state}`;
}

/** The space's service instances by name, with the apps bound to each. */
export async function listServices(session: SpaceSession): Promise<ServiceSummary[]> {
  const { cluster, space, signal } = session;
  const options = { ns: space.guid, signal };
  const [instances, bindings, apps] = await Promise.all([
    cluster.list(kinds.serviceInstance, options),
    cluster.list(kinds.serviceBinding, options),
    appNames(session),
  ]);
  return instances.items
    .map((instance) => ({
      name: instance.spec.displayName,
      guid: instance.metadata.name,
      offering: instance.spec.type === 'user-provided' ? 'user-provided' : (instance.spec.serviceLabel ?? ''),
      plan: '',
      boundApps: bindings.items
        .filter((binding) => binding.spec.type === 'app' && binding.spec.service.name === instance.metadata.name)
        .flatMap((binding) => apps.get(binding.spec.appRef.name) ?? [])
        .toSorted(),
      lastOperation: operationText(instance),
      broker: '',
      tags: instance.spec.tags ?? [],
    }))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

export interface UserProvidedOptions {
  name: string;
  credentials: Record<string, unknown>;
  /** A Secret of the space that something else maintains; it replaces `credentials`. */
  fromSecret?: string | undefined;
  tags: string[];
  syslogDrainUrl?: string | undefined;
  routeServiceUrl?: string | undefined;
}

type NamedUrls = Pick<UserProvidedOptions, 'syslogDrainUrl' | 'routeServiceUrl'> & { displayName: string };

/** Fields of an instance that have no effect in kf, a sentence each. */
export function withoutEffect({ displayName, syslogDrainUrl = '', routeServiceUrl = '' }: NamedUrls): string[] {
  return [
    ...(syslogDrainUrl === '' ? [] : [`Nothing is sent to the syslog drain of '${displayName}': kf does not support syslog drains yet.`]),
    ...(routeServiceUrl === ''
      ? []
      : [`No request goes through the route service of '${displayName}': kf does not support route services yet.`]),
  ];
}

/**
 * Writes the Secret of an instance that this command has made. If another command of that name has taken this one for interrupted, the Secret is there, and
 * gets these credentials.
 */
async function writeCredentials({ cluster, signal }: SpaceSession, secret: Secret): Promise<void> {
  const { name = '', namespace, annotations } = secret.metadata;
  try {
    await cluster.create(secretType, secret, { signal });
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
    await cluster.mergePatch(secretType, namespace, name, { metadata: { annotations }, data: secret.data }, { signal });
  }
}

/** A command that ended between its two writes left an instance without its Secret, which nothing else makes. @returns whether it lacked it */
async function complete(
  session: SpaceSession,
  instance: Stored<CFServiceInstance>,
  credentials: Record<string, unknown>,
): Promise<boolean> {
  const { cluster, space, signal } = session;
  if (instance.spec.type !== 'user-provided' || followedSecret(instance) !== undefined) return false;
  if ((await cluster.get(secretType, space.guid, instance.spec.secretName, signal)) !== undefined) return false;
  const author = { changedBy: await session.changedBy(), now: new Date() };
  try {
    await cluster.create(secretType, buildCredentialsSecret(instance, credentials, author), { signal });
    return true;
  } catch (error) {
    if (isAlreadyExists(error)) return false;
    throw error;
  }
}

/**
 * Returns false when the instance exists already; then nothing is changed. One that has no credentials yet gets these.
 * @throws KfError `conflict` for a Secret that no service can have
 */
export async function createUserProvided(session: SpaceSession, options: UserProvidedOptions): Promise<boolean> {
  const { name, credentials, fromSecret, tags, syslogDrainUrl, routeServiceUrl } = options;
  const present = await findServiceIfAny(session, name);
  if (present !== undefined) return fromSecret === undefined && (await complete(session, present, credentials));
  const { cluster, space, signal } = session;
  if (fromSecret !== undefined && !(await assertFollowable(session, fromSecret))) {
    const message = `Secret '${fromSecret}' does not exist in namespace ${space.guid} yet: service instance '${name}' gets its credentials when it does.`;
    session.report({ type: 'warning', message });
  }
  const author = { changedBy: await session.changedBy(), now: new Date() };
  const input = {
    guid: randomUUID(),
    namespace: space.guid,
    displayName: name,
    secretName: fromSecret ?? randomUUID(),
    isFollowed: fromSecret !== undefined,
    tags,
    syslogDrainUrl,
    routeServiceUrl,
  };
  const instance = await cluster.create(kinds.serviceInstance, buildUserProvidedInstance(input, author), { signal });
  if (!(await keepsName(session, instance))) return false;
  if (fromSecret === undefined) await writeCredentials(session, buildCredentialsSecret(instance, credentials, author));
  return true;
}

/** Bindings of an app, oldest first. */
export async function appBindings({ cluster, space, signal }: SpaceSession, app: Stored<CFApp>): Promise<Stored<CFServiceBinding>[]> {
  const labelSelector = `${labels.appGuid}=${app.metadata.name}`;
  const { items } = await cluster.list(kinds.serviceBinding, { ns: space.guid, labelSelector, signal });
  return items
    .filter((binding) => binding.spec.type === 'app')
    .toSorted((a, b) => (a.metadata.creationTimestamp ?? '').localeCompare(b.metadata.creationTimestamp ?? ''));
}

/** The bindings of an app, if its status lists any; otherwise no request is sent. */
export async function toldBindings(session: SpaceSession, app: Stored<CFApp>): Promise<Stored<CFServiceBinding>[]> {
  return (app.status?.serviceBindings ?? []).length === 0 ? [] : appBindings(session, app);
}

/** The binding leads to the instance. */
export const isTo = (binding: Stored<CFServiceBinding>, instance: Stored<CFServiceInstance>): boolean =>
  binding.spec.service.name === instance.metadata.name && binding.metadata.deletionTimestamp === undefined;

/** Another binding of the app has its name: it is left from a command that was killed, and has no effect. */
export const isRefusedBinding = (binding: Stored<CFServiceBinding>): boolean => findCondition(binding, 'Claimed')?.status === 'False';

/** An app finds each binding under its name, so a second one with that name would hide the first. @throws KfError `conflict` */
async function assertNameFree(
  session: SpaceSession,
  app: Stored<CFApp>,
  bindings: readonly Stored<CFServiceBinding>[],
  name: string,
): Promise<void> {
  if (bindings.length === 0) return;
  const { cluster, space, signal, bin } = session;
  const { items } = await cluster.list(kinds.serviceInstance, { ns: space.guid, signal });
  const instances = new Map(items.map((instance) => [instance.metadata.name, instance.spec.displayName]));
  const of = (binding: Stored<CFServiceBinding>): string => instances.get(binding.spec.service.name ?? '') ?? '';
  const taken = bindings.find((binding) => (binding.spec.displayName === undefined ? of(binding) : binding.spec.displayName) === name);
  if (taken === undefined) return;
  const { displayName } = app.spec;
  throw new KfError('conflict', `App '${displayName}' already has a binding named '${name}', to service instance '${of(taken)}'.`, {
    hints: [`${bin} bind-service ${displayName} SERVICE_INSTANCE --binding-name OTHER_NAME`],
  });
}

const reasonOf = (binding: Stored<CFServiceBinding>): string => findCondition(binding, 'Ready')?.message ?? '';

/** Waits until the controller has written the binding's Secrets. @throws KfError with the controller's reason, or `accepted` */
function waitForBinding(session: SpaceSession, binding: Stored<CFServiceBinding>): Promise<Stored<CFServiceBinding>> {
  const isBound = (seen: Stored<CFServiceBinding>): boolean => {
    const claimed = findCondition(seen, 'Claimed');
    if (claimed?.status === 'False') throw new KfError('conflict', claimed.message);
    return isTrue(seen, 'Ready');
  };
  const awaited = (seen: Stored<CFServiceBinding>): OpEvent => {
    const reason = reasonOf(seen);
    return reason === '' ? { type: 'awaiting-binding' } : { type: 'waiting', reason };
  };
  const late = (seen: Stored<CFServiceBinding>): KfError | undefined => {
    const reason = reasonOf(seen);
    if (reason === '') return undefined;
    return new KfError('timeout', `The binding is not ready: ${reason}`, { hints: [whereControllerIs] });
  };
  const written = { type: kinds.serviceBinding, object: binding, what: 'The binding', patienceMs: bindingPatienceMs, late };
  return waitForController(session, written, isBound, awaited);
}

export interface BindOptions {
  bindingName?: string | undefined;
}

/** Waits a moment until the app's status lists the binding, for the app's next push. A timeout is not an error. */
async function untilTold(session: SpaceSession, app: Stored<CFApp>, binding: Stored<CFServiceBinding>): Promise<void> {
  const { cluster, space, signal } = session;
  const isTold = (seen: Stored<CFApp> | undefined): true | undefined =>
    seen === undefined || (seen.status?.serviceBindings ?? []).some(({ guid }) => guid === binding.metadata.name) || undefined;
  const options = { timeoutMs: toldPatienceMs, signal, describe: 'the app to know its binding' };
  await unlessLate(watchObject(cluster, kinds.app, { ns: space.guid, name: app.metadata.name }, isTold, options));
}

/** Returns false when app and instance are bound already. @throws KfError `conflict` when another binding of the app has the name */
export async function bindService(
  session: SpaceSession,
  app: Stored<CFApp>,
  instance: Stored<CFServiceInstance>,
  options: BindOptions = {},
): Promise<boolean> {
  const { binding, isNew } = await ensureBinding(session, app, instance, options);
  if (isNew) await untilTold(session, app, binding);
  // The command that made it may have failed.
  else if (!isTrue(binding, 'Ready')) await waitForBinding(session, binding);
  return isNew;
}

/** Deletes a binding whose instance was deleted meanwhile: no command would find it any more. @returns the error to tell */
async function unlessInstanceGone(
  { cluster, space, signal, bin }: SpaceSession,
  { metadata: { name, uid }, spec: { displayName } }: Stored<CFServiceInstance>,
  binding: Stored<CFServiceBinding>,
  error: unknown,
): Promise<unknown> {
  if (signal.aborted || (await cluster.get(kinds.serviceInstance, space.guid, name, signal))?.metadata.uid === uid) return error;
  await cluster.delete(kinds.serviceBinding, space.guid, binding.metadata.name, { signal });
  return new KfError('not-found', `Service instance '${displayName}' was deleted meanwhile.`, { hints: [`${bin} services`] });
}

/** The binding of app and instance; created if it does not exist. @throws KfError `conflict` when another binding of the app has the name */
export async function ensureBinding(
  session: SpaceSession,
  app: Stored<CFApp>,
  instance: Stored<CFServiceInstance>,
  options: BindOptions = {},
): Promise<{ binding: Stored<CFServiceBinding>; isNew: boolean }> {
  const present = (await appBindings(session, app)).filter((binding) => !isRefusedBinding(binding));
  const there = present.find((binding) => isTo(binding, instance));
  if (there !== undefined) return { binding: there, isNew: false };
  await assertNameFree(session, app, present, options.bindingName ?? instance.spec.displayName);
  const author = { changedBy: await session.changedBy(), now: new Date() };
  const wanted = buildAppBinding({ guid: randomUUID(), app, instance, displayName: options.bindingName }, author);
  const { cluster, signal } = session;
  await markUnapplied(session, app);
  const binding = await cluster.create(kinds.serviceBinding, wanted, { signal });
  try {
    return { binding: await waitForBinding(session, binding), isNew: true };
  } catch (error) {
    if (!(error instanceof KfError) || error.code !== 'conflict') throw await unlessInstanceGone(session, instance, binding, error);
    // Somebody else created a binding first, so this one cannot work and is deleted. The other one may bind the same instance: another push of the
    // app, for example.
    await cluster.delete(kinds.serviceBinding, session.space.guid, binding.metadata.name, { signal });
    const faster = (await appBindings(session, app)).find((other) => isTo(other, instance) && !isRefusedBinding(other));
    if (faster === undefined) throw error;
    return { binding: await waitForBinding(session, faster), isNew: false };
  }
}

/** Deletes a binding, and notes on it before who does: the controller records it (docs/decisions/0069). */
async function deleteBinding(session: SpaceSession, { metadata: { uid, name } }: Stored<CFServiceBinding>): Promise<void> {
  const { cluster, space, signal } = session;
  try {
    const notes = { [annotations.changedBy]: await session.changedBy(), [annotations.unbinding]: new Date(session.now()).toISOString() };
    await cluster.mergePatch(kinds.serviceBinding, space.guid, name, { metadata: { uid, annotations: notes } }, { signal });
  } catch {
    // Whether the binding can be deleted does not depend on the note.
  }
  await cluster.delete(kinds.serviceBinding, space.guid, name, { signal });
}

/** Returns false when there was no binding. */
export async function unbindService(session: SpaceSession, app: Stored<CFApp>, instance: Stored<CFServiceInstance>): Promise<boolean> {
  const bindings = (await appBindings(session, app)).filter((binding) => isTo(binding, instance));
  if (bindings.length > 0) await markUnapplied(session, app);
  await Promise.all(bindings.map((binding) => deleteBinding(session, binding)));
  return bindings.length > 0;
}

/** Bindings of an instance, to apps and for keys; the apps that have them are marked for their next push. */
export async function bindingsToChange(session: SpaceSession, instance: Stored<CFServiceInstance>): Promise<Stored<CFServiceBinding>[]> {
  const { cluster, space, signal } = session;
  const labelSelector = `${labels.serviceInstanceGuid}=${instance.metadata.name}`;
  const { items } = await cluster.list(kinds.serviceBinding, { ns: space.guid, labelSelector, signal });
  const guids = new Set(items.filter(({ spec }) => spec.type === 'app').map(({ spec }) => spec.appRef.name));
  if (guids.size === 0) return items;
  const apps = await cluster.list(kinds.app, { ns: space.guid, signal });
  const bound = apps.items.filter(({ metadata }) => guids.has(metadata.name));
  await Promise.all(bound.map((app) => markUnapplied(session, app)));
  return items;
}

/** Deletes the instance, after all its bindings. */
export async function deleteService(session: SpaceSession, instance: Stored<CFServiceInstance>): Promise<void> {
  const { cluster, space, signal } = session;
  const items = await bindingsToChange(session, instance);
  await Promise.all(items.map((binding) => deleteBinding(session, binding)));
  const { uid, name } = instance.metadata;
  await cluster.delete(kinds.serviceInstance, space.guid, name, { signal, uid });
}

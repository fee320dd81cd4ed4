// One service instance: show, change, rename.

import { isDeepStrictEqual } from 'node:util';
import { currentCondition, findCondition, isTrue } from '../../api/conditions.ts';
import { secretType, type Secret } from '../../api/core.ts';
import { followedSecret } from '../../api/credentials.ts';
import { annotations, conditionTypes, kinds, labels } from '../../api/group.ts';
import { sha224, timeLabel } from '../../api/names.ts';
import type { Stored } from '../../api/object.ts';
import type { BoundApp, ServiceDetails } from '../../api/results.ts';
import type { CFServiceBinding, CFServiceInstance, CFServiceInstanceSpec } from '../../api/types.generated.ts';
import { defined } from '../../defined.ts';
import { KfError } from '../../errors.ts';
import { patchAsRead, type ObjectPatch } from '../../kube/patch-as-read.ts';
import { watchUntil } from '../../kube/watch-list.ts';
import type { SpaceSession } from '../../session/session.ts';
import { unlessLate } from '../../wait.ts';
import { buildCredentialsSecret } from '../../../templates/service.ts';
import { waitForController } from '../controller-wait.ts';
import { findServiceIfAny } from '../find.ts';
import { renamedAgain } from '../renamed-again.ts';
import { appNames } from '../rows.ts';
import { requireFollowable } from './from-secret.ts';
import { bindingsToChange, operationText } from './user-provided.ts';

/** How long the controller may take to copy changed credentials into the bindings. */
const bindingPatienceMs = 10_000;

const selectorOf = (instance: Stored<CFServiceInstance>): string => `${labels.serviceInstanceGuid}=${instance.metadata.name}`;

/** Of the last change by a command; the time in the label has no colons. */
function updatedAt({ metadata }: Stored<CFServiceInstance>): string {
  const [day, time] = (metadata.labels?.[labels.updatedAt] ?? '').split('T');
  return time === undefined ? (metadata.creationTimestamp ?? '') : `${day ?? ''}T${time.replaceAll('-', ':')}Z`;
}

function boundApp(binding: Stored<CFServiceBinding>, name: string): BoundApp {
  const { metadata, spec } = binding;
  const bindingName = spec.displayName === '' ? undefined : spec.displayName;
  const claimed = findCondition(binding, conditionTypes.claimed);
  const shown = (status: string, message = ''): BoundApp => ({ name, ...defined({ bindingName }), status, message });
  if (metadata.deletionTimestamp !== undefined) return shown('delete in progress');
  if (claimed?.status === 'False') return shown('create failed', claimed.message);
  if (isTrue(binding, conditionTypes.ready)) return shown('create succeeded');
  return shown('create in progress', findCondition(binding, conditionTypes.ready)?.message);
}

/** What a new instance waits for. */
function whyNotReady(instance: Stored<CFServiceInstance>): string {
  if (instance.status?.lastOperation !== undefined) return '';
  const ready = findCondition(instance, conditionTypes.ready);
  return ready?.status === 'False' ? ready.message : '';
}

/** An instance with its last operation and the apps that are bound to it. */
export async function describeService(session: SpaceSession, instance: Stored<CFServiceInstance>): Promise<ServiceDetails> {
  const { cluster, space, signal } = session;
  const [bindings, apps] = await Promise.all([
    cluster.list(kinds.serviceBinding, { ns: space.guid, labelSelector: selectorOf(instance), signal }),
    appNames(session),
  ]);
  const { spec, metadata, status } = instance;
  return {
    name: spec.displayName,
    guid: metadata.name,
    type: spec.type,
    ...defined({ fromSecret: followedSecret(instance) }),
    tags: spec.tags ?? [],
    routeServiceUrl: spec.routeServiceUrl ?? '',
    syslogDrainUrl: spec.syslogDrainUrl ?? '',
    lastOperation: {
      status: operationText(instance),
      message: status?.lastOperation?.description ?? whyNotReady(instance),
      startedAt: metadata.creationTimestamp ?? '',
      updatedAt: updatedAt(instance),
    },
    boundApps: bindings.items
      .filter(({ spec: { type } }) => type === 'app')
      .map((binding) => boundApp(binding, apps.get(binding.spec.appRef.name) ?? binding.spec.appRef.name))
      .toSorted((a, b) => (a.name < b.name ? -1 : 1)),
  };
}

/** A merge patch of a spec; null removes a field. */
type SpecPatch = { [F in keyof CFServiceInstanceSpec]?: CFServiceInstanceSpec[F] | null };

async function patchInstance(
  session: SpaceSession,
  instance: Stored<CFServiceInstance>,
  spec: SpecPatch,
  marks: Record<string, string | null> = {},
  isWanted: (live: Stored<CFServiceInstance>) => boolean = () => true,
): Promise<Stored<CFServiceInstance>> {
  const changedBy = await session.changedBy();
  const { displayName } = spec;
  const named = displayName === undefined || displayName === null ? {} : { [labels.displayName]: sha224(displayName) };
  const patch: ObjectPatch = {
    metadata: {
      labels: { ...named, [labels.updatedAt]: timeLabel(new Date()) },
      annotations: { [annotations.changedBy]: changedBy, ...marks },
    },
    spec,
  };
  const gone = (): KfError => new KfError('not-found', `Service instance '${instance.spec.displayName}' was deleted meanwhile.`);
  const read = { type: kinds.serviceInstance, object: instance, gone };
  return (await patchAsRead(session.cluster, read, (live) => (isWanted(live) ? patch : undefined), session.signal)).object;
}

export interface InstanceChange {
  /** They replace all present ones. */
  credentials?: Record<string, unknown> | undefined;
  /** A Secret of the space that something else maintains; it replaces the present credentials. */
  fromSecret?: string | undefined;
  tags?: string[] | undefined;
  /** '' removes it. */
  syslogDrainUrl?: string | undefined;
  routeServiceUrl?: string | undefined;
}

/** The instance's own Secret: never one that it follows, which has another writer. */
const ownSecretOf = (instance: Stored<CFServiceInstance>): string =>
  followedSecret(instance) === undefined ? instance.spec.secretName : `${instance.metadata.name}-credentials`;

/** The Secret with the credentials as it is to be, and as it is; undefined when it is gone. */
interface OwnSecret {
  wanted: Secret;
  present: Stored<Secret> | undefined;
}

async function ownSecret(
  session: SpaceSession,
  before: Stored<CFServiceInstance>,
  credentials: Record<string, unknown>,
): Promise<OwnSecret> {
  const { cluster, space, signal } = session;
  const secretName = ownSecretOf(before);
  const instance = { ...before, spec: { ...before.spec, secretName } };
  const wanted = buildCredentialsSecret(instance, credentials, { changedBy: await session.changedBy(), now: new Date() });
  return { wanted, present: await cluster.get(secretType, space.guid, secretName, signal) };
}

/** Writes the credentials into their Secret, which is made when it is gone. */
async function writeCredentials(session: SpaceSession, { wanted, present }: OwnSecret): Promise<void> {
  const { cluster, space, signal } = session;
  if (present === undefined) {
    await cluster.create(secretType, wanted, { signal });
    return;
  }
  const metadata = { uid: present.metadata.uid, annotations: { [annotations.changedBy]: await session.changedBy() } };
  await cluster.mergePatch(secretType, space.guid, present.metadata.name, { metadata, data: wanted.data }, { signal });
}

/** True when apps that are bound to the instance are to get something else with their next start. */
function isOther(instance: Stored<CFServiceInstance>, change: InstanceChange, own: OwnSecret | undefined): boolean {
  const { spec } = instance;
  const { fromSecret, tags = spec.tags ?? [], syslogDrainUrl = spec.syslogDrainUrl ?? '' } = change;
  const followed = followedSecret(instance);
  return (
    (own !== undefined && (followed !== undefined || !isDeepStrictEqual(own.present?.data, own.wanted.data))) ||
    (fromSecret !== undefined && fromSecret !== followed) ||
    !isDeepStrictEqual(tags, spec.tags ?? []) ||
    syslogDrainUrl !== (spec.syslogDrainUrl ?? '')
  );
}

/** Nobody needs the former credentials any more. The Secret is deleted with its instance. */
async function emptyOwnSecret({ cluster, space, signal }: SpaceSession, before: Stored<CFServiceInstance>): Promise<void> {
  if (followedSecret(before) !== undefined) return;
  const secret = await cluster.get(secretType, space.guid, before.spec.secretName, signal);
  if (secret === undefined) return;
  await cluster.mergePatch(
    secretType,
    space.guid,
    before.spec.secretName,
    { metadata: { uid: secret.metadata.uid }, data: null },
    { signal },
  );
}

/** Waits until the bindings contain what the instance and its Secret contain now; a late controller is a warning. */
async function untilBindingsFollow(session: SpaceSession, instance: Stored<CFServiceInstance>): Promise<void> {
  const { cluster, space, signal, report } = session;
  const secret = await cluster.get(secretType, space.guid, instance.spec.secretName, signal);
  const version = `${secret?.metadata.resourceVersion ?? ''}/${instance.metadata.generation ?? 0}`;
  const follows = ({ spec, metadata }: Stored<CFServiceBinding>): boolean =>
    spec.type !== 'app' || metadata.deletionTimestamp !== undefined || metadata.annotations?.[annotations.instanceVersion] === version;
  const check = (bindings: readonly Stored<CFServiceBinding>[]): true | undefined => {
    if (bindings.every(follows)) return true;
    report({ type: 'waiting', reason: 'the bindings get the change' });
    return undefined;
  };
  const options = { timeoutMs: bindingPatienceMs, signal, describe: 'the bindings' };
  const target = { ns: space.guid, selector: selectorOf(instance) };
  const done = await unlessLate(watchUntil(cluster, kinds.serviceBinding, target, check, options)).finally(() => report({ type: 'done' }));
  if (done !== undefined) return;
  const message = `The controller has not given the change to the apps bound to '${instance.spec.displayName}' yet; restage them when it has.`;
  report({ type: 'warning', message });
}

/**
 * Replaces the given parts of a user-provided instance.
 * @throws KfError `conflict` for a managed instance; if only the credentials were written, the error says so
 */
export async function updateUserProvided(
  session: SpaceSession,
  instance: Stored<CFServiceInstance>,
  change: InstanceChange,
): Promise<void> {
  const { displayName, type } = instance.spec;
  if (type !== 'user-provided') throw new KfError('conflict', `Service instance '${displayName}' is not user-provided.`);
  const { credentials, fromSecret, tags, syslogDrainUrl, routeServiceUrl } = change;
  if (fromSecret !== undefined) await requireFollowable(session, fromSecret);
  const orNone = (text: string | undefined): string | null | undefined => (text === '' ? null : text);
  const urls = { syslogDrainUrl: orNone(syslogDrainUrl), routeServiceUrl: orNone(routeServiceUrl) };
  const own = credentials === undefined ? undefined : await ownSecret(session, instance, credentials);
  if (isOther(instance, change, own)) await bindingsToChange(session, instance);
  if (own !== undefined) await writeCredentials(session, own);
  // After the Secret: this change makes the controller read it again.
  const secretName = fromSecret ?? (credentials === undefined ? undefined : ownSecretOf(instance));
  const marks = secretName === undefined ? {} : { [annotations.fromSecret]: fromSecret === undefined ? null : 'true' };
  const patch = patchInstance(session, instance, defined({ secretName, tags, ...urls }), marks);
  const changed = await patch.catch((error: unknown) => {
    if (error instanceof KfError && credentials !== undefined) error.hints.unshift(`The credentials of '${displayName}' are changed.`);
    throw error;
  });
  if (fromSecret !== undefined) await emptyOwnSecret(session, instance);
  await untilBindingsFollow(session, changed);
}

/** An app finds each binding under its name; a binding without a name of its own has the instance's. @throws KfError `conflict` */
async function assertBindingsFree(session: SpaceSession, instance: Stored<CFServiceInstance>, name: string): Promise<void> {
  const { cluster, space, signal } = session;
  const { items } = await cluster.list(kinds.serviceBinding, { ns: space.guid, signal });
  const ofApps = items.filter(({ spec, metadata }) => spec.type === 'app' && metadata.deletionTimestamp === undefined);
  const isUnnamed = ({ spec }: Stored<CFServiceBinding>): boolean => (spec.displayName ?? '') === '';
  const renamed = ofApps.filter((binding) => binding.spec.service.name === instance.metadata.name && isUnnamed(binding));
  const apps = new Set(renamed.map(({ spec }) => spec.appRef.name));
  const taken = ofApps.find(({ spec }) => spec.displayName === name && apps.has(spec.appRef.name));
  if (taken === undefined) return;
  const app = (await appNames(session)).get(taken.spec.appRef.name) ?? taken.spec.appRef.name;
  throw new KfError('conflict', `App '${app}' has another binding named '${name}'.`, {
    hints: [`${session.bin} service ${instance.spec.displayName}`],
  });
}

const nameTaken = ({ bin }: SpaceSession, name: string): KfError =>
  new KfError('conflict', `The service instance name is taken: ${name}`, { hints: [`${bin} service ${name}`] });

/**
 * Renames an instance, and waits until the controller has claimed the new name for it.
 * @throws KfError `conflict` for a name that another instance or another binding has (the instance then has its old name), and when another
 * command has set another name meanwhile
 */
export async function renameService(session: SpaceSession, instance: Stored<CFServiceInstance>, name: string): Promise<void> {
  const before = instance.spec.displayName;
  if (name === before) return;
  if ((await findServiceIfAny(session, name)) !== undefined) throw nameTaken(session, name);
  await assertBindingsFree(session, instance, name);
  await bindingsToChange(session, instance);
  const object = await patchInstance(session, instance, { displayName: name });
  const claimed = (seen: Stored<CFServiceInstance>) => currentCondition(seen, conditionTypes.claimed)?.status ?? 'Unknown';
  const hasName = ({ spec }: Stored<CFServiceInstance>): boolean => spec.displayName === name;
  const isJudged = (seen: Stored<CFServiceInstance>): boolean => !hasName(seen) || claimed(seen) !== 'Unknown';
  const written = { type: kinds.serviceInstance, object, what: `The new name '${name}'` };
  try {
    const judged = await waitForController(session, written, isJudged, () => ({ type: 'awaiting-controller' }));
    if (!hasName(judged)) throw renamedAgain(session.bin, 'service instance', 'service', judged.spec.displayName);
    if (claimed(judged) === 'True') return;
    await patchInstance(session, judged, { displayName: before }, {}, hasName);
    throw nameTaken(session, name);
  } finally {
    session.report({ type: 'done' });
  }
}

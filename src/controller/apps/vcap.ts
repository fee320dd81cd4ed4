// VCAP_APPLICATION and VCAP_SERVICES of an app, and the two Secrets with them for builds, tasks and other readers.

import { createHash } from 'node:crypto';
import { secretType } from '../../lib/api/core.ts';
import { webProcess } from '../../lib/api/app.ts';
import { findCondition, isReady } from '../../lib/api/conditions.ts';
import { conditionTypes, kinds, labels, reasons } from '../../lib/api/group.ts';
import { addressOf } from '../../lib/api/names.ts';
import { apiVersionOf, type Stored } from '../../lib/api/object.ts';
import type { BoundService, CFApp, CFProcess, CFServiceBinding, CFServiceInstance } from '../../lib/api/types.generated.ts';
import { defined } from '../../lib/defined.ts';
import { encoded, ownerReference } from '../../templates/metadata.ts';
import {
  databaseUrl,
  databaseUrlKey,
  vcapServicesKey,
  vcapServicesValue,
  type VcapApplication,
  type VcapService,
} from '../../templates/pod-env.ts';
import { BoundedMap } from '../runtime/bounded-map.ts';
import { Remembered } from '../runtime/memory.ts';
import type { Context } from '../runtime/reconciler.ts';
import { WaitingError } from '../runtime/result.ts';
import { byAge, notReadyText, routesByApp, spaceOf } from '../relations.ts';
import { liveProcesses } from './processes.ts';
import { readCredentials } from '../../lib/api/credentials.ts';
import { charactersOf, ensureSecret, paceMs } from '../runtime/secrets.ts';
import { renewMount } from '../services/binding.ts';

const vcapApplicationKey = 'VCAP_APPLICATION';
/** The `cf_api` of apps: their platform has no other API than the cluster's own. */
const platformApi = 'https://kubernetes.default.svc';
/** cf's limit of open files, as VCAP_APPLICATION reports it. */
const fileDescriptors = 16_384;
const rememberedObjects = 5_000;
const rememberedServices = 1_000;
/** Limit for an app's addresses in VCAP_APPLICATION: with a variable of more than 128 KiB a process cannot start. */
const mostUris = 100;

export function vcapApplicationSecretName(app: Stored<CFApp>): string {
  return `${app.metadata.name}-vcap-application`;
}

export function vcapServicesSecretName(app: Stored<CFApp>): string {
  return `${app.metadata.name}-vcap-services`;
}

/** Addresses of the app's routes, oldest first. */
function urisOf(context: Context, app: Stored<CFApp>): string[] {
  const routes = context.stores.of(kinds.route).by(routesByApp.name, `${app.metadata.namespace}/${app.metadata.name}`);
  return routes
    .filter((route) => findCondition(route, conditionTypes.claimed)?.status !== 'False')
    .toSorted(byAge)
    .slice(0, mostUris)
    .flatMap((route) => {
      // A route that was created together with the app may not have been reconciled yet.
      const domain = context.stores.of(kinds.domain).get(route.spec.domainRef.namespace, route.spec.domainRef.name ?? '');
      return route.status?.uri ?? (domain === undefined ? [] : addressOf(route, domain).uri);
    });
}

const limitsOf = ({ memoryMB, diskQuotaMB }: Pick<Stored<CFProcess>['spec'], 'memoryMB' | 'diskQuotaMB'>) => ({
  limits: { fds: fileDescriptors, mem: memoryMB, disk: diskQuotaMB },
});

/** The fields about a process. For the app as such (`cf env`, builds, tasks) they are about its web process. */
function vcapOfProcess(context: Context, app: Stored<CFApp>, process: Stored<CFProcess> | undefined): Record<string, unknown> {
  if (process !== undefined)
    return { process_id: process.metadata.name, process_type: process.spec.processType, ...limitsOf(process.spec) };
  const web = liveProcesses(context, app).find(({ spec }) => spec.processType === webProcess);
  return { ...limitsOf(web?.spec ?? context.info().processDefaults), users: null };
}

/** The VCAP_APPLICATION of all instances of the app, or of one of its processes; sorted by name, as cf shows it. */
export function vcapApplicationOf(context: Context, app: Stored<CFApp>, process?: Stored<CFProcess>): VcapApplication {
  const { name: appGuid, namespace: spaceGuid } = app.metadata;
  const space = spaceOf(context.stores, spaceGuid);
  const orgGuid = space?.metadata.namespace ?? '';
  const org = context.stores.of(kinds.org).get(context.info().root, orgGuid);
  const uris = urisOf(context, app);
  const version = app.spec.currentDropletRef?.name ?? '';
  const told = {
    application_id: appGuid,
    application_name: app.spec.displayName,
    application_uris: uris,
    application_version: version,
    cf_api: platformApi,
    name: app.spec.displayName,
    organization_id: orgGuid,
    organization_name: org?.spec.displayName ?? '',
    space_id: spaceGuid,
    space_name: space?.spec.displayName ?? '',
    uris,
    version,
    ...vcapOfProcess(context, app, process),
  };
  return Object.fromEntries(Object.entries(told).toSorted(([a], [b]) => (a < b ? -1 : 1))) as VcapApplication;
}

const nonEmpty = (text: string | undefined): string | undefined => (text === '' ? undefined : text);

function readyBinding({ stores }: Context, binding: Stored<CFServiceBinding>): Stored<CFServiceBinding> {
  if (isReady(binding)) return binding;
  throw new WaitingError(reasons.bindingNotReady, notReadyText(stores, binding));
}

/** Folder below the binding root: the binding's own name, otherwise that of its instance, if it is a valid folder name. */
function folderOf(context: Context, binding: Stored<CFServiceBinding>, secret: string): string {
  const instance = context.stores.of(kinds.serviceInstance).get(binding.metadata.namespace, binding.spec.service.name ?? '');
  const name = nonEmpty(binding.spec.displayName) ?? instance?.spec.displayName ?? '';
  return /^[A-Za-z0-9_][-\w.]{0,252}$/.test(name) ? name : secret;
}

/** `status.serviceBindings`: what is mounted, and under which name. Throws while a binding is not ready. */
export function boundServices(context: Context, bindings: readonly Stored<CFServiceBinding>[]): BoundService[] {
  return bindings.map((binding) => {
    const { status, metadata } = readyBinding(context, binding);
    const secret = status?.mountSecretRef?.name ?? metadata.name;
    return { guid: metadata.name, name: folderOf(context, binding, secret), secret };
  });
}

/** A service, and how many characters its Secret has. */
interface ReadService {
  service: VcapService;
  characters: number;
}

/** Limit for the Secrets of all services of one app together: more does not fit into the one with VCAP_SERVICES. */
const mostCharacters = 1024 * 1024;

/** @throws WaitingError when the Secret has more than `left` characters */
async function credentialsOf(
  context: Context,
  binding: Stored<CFServiceBinding>,
  instance: Stored<CFServiceInstance> | undefined,
  left: number,
): Promise<{ values: Record<string, unknown>; characters: number }> {
  const name = binding.status?.envSecretRef?.name;
  if (name === undefined || instance === undefined) return { values: {}, characters: 0 };
  const secret = await context.cluster.get(secretType, binding.metadata.namespace, name, context.signal);
  const characters = charactersOf(secret?.data ?? {});
  // Before it is parsed: some JSON takes twenty times as much memory as its text.
  if (characters > left)
    throw new WaitingError('EnvironmentTooLarge', "The credentials of the app's services have more than 768 KiB together.", tooLargeMs);
  const credentials = secret === undefined ? '' : readCredentials(instance, secret);
  // A developer may have changed the Secret; the instance's status then says what is wrong with it.
  if (secret === undefined || typeof credentials === 'string') return { values: {}, characters };
  // Of the same read, so that an app never has variables and files of different times.
  await renewMount(context, binding, instance, secret, credentials);
  return { values: credentials.values, characters };
}

const readServices = new Remembered(() => new BoundedMap<string, ReadService & { versions: string }>(rememberedServices));
const longestRemembered = 16 * 1024;
/** Each look at what is too large reads all of it. */
export const tooLargeMs = 10_000;

/** Reads the credentials again only when the binding or its instance changed, or after {@link forgetVcap}. */
async function vcapService(context: Context, binding: Stored<CFServiceBinding>, left: number): Promise<ReadService> {
  const instance = context.stores.of(kinds.serviceInstance).get(binding.metadata.namespace, binding.spec.service.name ?? '');
  const services = context.memory.of(readServices);
  const uid = binding.metadata.uid;
  const versions = `${binding.metadata.resourceVersion} ${instance?.metadata.resourceVersion ?? ''}`;
  const known = services.get(uid);
  if (known?.versions === versions) return known;
  const read = await readService(context, binding, instance, left);
  // A large value is read again each time, so that text of developers cannot fill the memory.
  if (JSON.stringify(read.service).length <= longestRemembered) services.set(uid, { versions, ...read });
  else services.delete(uid);
  return read;
}

/** The services of an app. One after the other: all of them at once could need too much memory. @throws WaitingError when they are too large */
async function vcapServicesOf(context: Context, bindings: readonly Stored<CFServiceBinding>[]): Promise<VcapService[]> {
  const services: VcapService[] = [];
  let left = mostCharacters;
  for (const binding of bindings) {
    const { service, characters } = await vcapService(context, binding, left);
    left -= characters;
    services.push(service);
  }
  return services;
}

async function readService(
  context: Context,
  binding: Stored<CFServiceBinding>,
  instance: Stored<CFServiceInstance> | undefined,
  left: number,
): Promise<ReadService> {
  const { values: credentials, characters } = await credentialsOf(context, binding, instance, left);
  const instanceName = instance?.spec.displayName ?? '';
  const bindingName = nonEmpty(binding.spec.displayName);
  const service = {
    label: nonEmpty(instance?.spec.serviceLabel) ?? instance?.spec.type ?? 'user-provided',
    name: bindingName ?? instanceName,
    tags: instance?.spec.tags ?? [],
    instance_guid: instance?.metadata.name ?? '',
    instance_name: instanceName,
    binding_guid: binding.metadata.name,
    binding_name: bindingName ?? null,
    credentials,
    syslog_drain_url: nonEmpty(instance?.spec.syslogDrainUrl) ?? null,
    volume_mounts: [],
  };
  return { service, characters };
}

/** What was last known to be written, and when, so that a reconcile without changes needs few requests. */
const writtenSecrets = new Remembered(() => new BoundedMap<string, { hash: string; at: number }>(rememberedObjects));
const secretsPerApp = 2;

/** Secrets are never watched, so those of an app are checked again after this time (see {@link paceMs}). */
export function vcapPaceMs(context: Context): number {
  return paceMs(context.stores.of(kinds.app).size, secretsPerApp);
}

async function ensure(context: Context, app: Stored<CFApp>, name: string, texts: Record<string, string>): Promise<void> {
  const written = context.memory.of(writtenSecrets);
  const ns = app.metadata.namespace;
  const known = `${app.metadata.uid} ${name}`;
  const hash = createHash('sha256').update(JSON.stringify(texts)).digest('hex');
  const last = written.get(known);
  if (last?.hash === hash && context.now() - last.at < vcapPaceMs(context) * 0.9) return;
  await ensureSecret(context, {
    apiVersion: apiVersionOf(secretType),
    kind: secretType.kind,
    metadata: {
      name,
      namespace: ns,
      labels: { [labels.appGuid]: app.metadata.name },
      ownerReferences: [ownerReference(kinds.app, app)],
    },
    type: 'Opaque',
    data: encoded(texts),
  });
  written.set(known, { hash, at: context.now() });
}

/** Drops the cached values of an app, so that the next reconcile reads them again. */
export function forgetVcap({ memory }: Context, app: Stored<CFApp>, bindings: readonly Stored<CFServiceBinding>[]): void {
  const [services, written] = [memory.of(readServices), memory.of(writtenSecrets)];
  for (const { metadata } of bindings) services.delete(metadata.uid);
  for (const name of [vcapApplicationSecretName(app), vcapServicesSecretName(app)]) written.delete(`${app.metadata.uid} ${name}`);
}

/** Writes both Secrets of the app from its present bindings, routes and names. */
export async function ensureVcapSecrets(
  context: Context,
  app: Stored<CFApp>,
  bindings: readonly Stored<CFServiceBinding>[],
): Promise<void> {
  const listed = await vcapServicesOf(context, bindings);
  const services = { [vcapServicesKey]: vcapServicesValue(listed), ...defined({ [databaseUrlKey]: databaseUrl(listed) }) };
  await Promise.all([
    ensure(context, app, vcapApplicationSecretName(app), { [vcapApplicationKey]: JSON.stringify(vcapApplicationOf(context, app)) }),
    ensure(context, app, vcapServicesSecretName(app), services),
  ]);
}

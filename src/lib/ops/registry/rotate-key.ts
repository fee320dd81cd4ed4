// `kf rotate registry-key`: replaces the key for credentials of the in-cluster registry. All credentials in use stay valid during the change.

import { secretType, type Secret } from '../../api/core.ts';
import { podType } from '../../api/pod-kind.ts';
import { kinds, places } from '../../api/group.ts';
import { requireCompatible, type KfInfo } from '../../api/kf-info.ts';
import { pushSecretName, registryKeyFields as fields, registryKeyId, registryPassword } from '../../api/registry-credentials.ts';
import type { Stored } from '../../api/object.ts';
import { KfError } from '../../errors.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { kfVersion } from '../../version.ts';
import { waitFor } from '../../wait.ts';
import { readGateStatus, readRegistryKeys } from './gate.ts';
import type { Report } from '../../events.ts';
import { isControllerSilent } from '../controller-wait.ts';
import { newRegistryKey } from './key.ts';

export interface RotateContext {
  cluster: Cluster;
  info: KfInfo;
  report: Report;
  signal: AbortSignal;
  /** The API server's clock, milliseconds. */
  now: () => number;
}

export interface RotateResult {
  /** The id of a key, not the key. */
  key: string;
  previousKey: string;
  /** ISO time of the registry's clock. */
  previousEnds: string;
  /** Spaces that have new credentials. */
  spaces: number;
  /** Spaces whose Secrets were not seen as the controller writes them. Their members can change them at any time. */
  leftOut: LateSpace[];
}

/** A space with a credential that another key signed, or none did. */
export interface LateSpace {
  space: string;
  /** Its namespace. */
  guid: string;
  /** Names of the Secrets. */
  secrets: string[];
}

/** Longer than a build's credential is valid, so credentials from before the change expire normally. */
const overlapSeconds = 30 * 60;
const gatePatienceMs = 180_000;
const spacesPatienceMs = 300_000;
/** Of many spaces: the controller takes its time for each, and some of them may then be left out. */
const manySpacesPatienceMs = (spaces: number): number => 120_000 + 2_000 * spaces;
/** The controller looks at each Secret again and again: in this time, and for each space in the time that it takes for one. */
const standstillMs = 60_000;
const standstillPerSpaceMs = 1_000;
const pollMs = 1_000;
/** A change of this annotation makes the kubelet sync the pod, and so the Secret, at once. */
const keyAnnotation = 'kf.cloudfoundry.org/registry-key';

const encode = (text: string): string => Buffer.from(text).toString('base64');
const decode = (text: string | undefined): Buffer => Buffer.from(text ?? '', 'base64');

async function until(
  context: RotateContext,
  what: string,
  patienceMs: number,
  look: () => Promise<boolean>,
  { hints, left = () => '' }: { hints: string[]; left?: () => string },
): Promise<void> {
  context.report({ type: 'awaiting', what });
  const isSo = async (): Promise<true | undefined> => ((await look()) ? true : undefined);
  const late = (): KfError => new KfError('timeout', `Waited ${patienceMs / 1000} s for ${what}${left()}.`, { hints });
  await waitFor(isSo, { timeoutMs: patienceMs, intervalMs: pollMs, describe: what, late, signal: context.signal });
}

async function writeKeys(context: RotateContext, secret: Stored<Secret>, data: Record<string, string>): Promise<Stored<Secret>> {
  // The resource version is a precondition: of two concurrent rotations the later one fails.
  return context.cluster.replace(secretType, { ...secret, apiVersion: 'v1', kind: 'Secret', data }, { signal: context.signal });
}

/** Makes sure that the gate knows all keys that may be needed before they are used. */
async function teachGate(context: RotateContext, current: Buffer, next: Buffer): Promise<void> {
  const { cluster, info, signal } = context;
  const { items } = await cluster.list(podType, { ns: info.registry.namespace, labelSelector: `app=${info.registry.service}`, signal });
  for (const { metadata } of items)
    await cluster.mergePatch(podType, metadata.namespace, metadata.name, {
      metadata: { annotations: { [keyAnnotation]: registryKeyId(next) } },
    });
  const id = registryKeyId(next);
  await until(
    context,
    'the registry to know the new key',
    gatePatienceMs,
    async () => (await readGateStatus(cluster, info.registry, current, signal)).keys.includes(id),
    { hints: [`kubectl -n ${info.registry.namespace} get pods -l app=${info.registry.service}`, 'kf rotate registry-key'] },
  );
}

function isSignedBy(key: Buffer, secret: Stored<Secret> | undefined): boolean {
  const [user, password] = [decode(secret?.data?.['username']).toString(), decode(secret?.data?.['password']).toString()];
  return password === registryPassword(key, user);
}

function isPullSignedBy(key: Buffer, secret: Stored<Secret> | undefined): boolean {
  const text = decode(secret?.data?.['.dockerconfigjson']).toString();
  const [, user = ''] = /"username":"([^"]+)"/.exec(text) ?? [];
  return text.includes(`"password":"${registryPassword(key, user)}"`);
}

/** Spaces whose credentials were signed with another key, except those that are known to be renewed. */
async function lateSpaces(
  { cluster, signal }: RotateContext,
  key: Buffer,
  renewed: ReadonlySet<string> = new Set(),
): Promise<{ late: LateSpace[]; all: string[] }> {
  const { items } = await cluster.list(kinds.space, { signal });
  const living = items.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  const late: LateSpace[] = [];
  for (const { metadata, spec } of living) {
    const guid = metadata.name;
    if (renewed.has(guid)) continue;
    const [push, pull] = await Promise.all([pushSecretName, places.pullSecret].map((name) => cluster.get(secretType, guid, name, signal)));
    const secrets = [...(isSignedBy(key, push) ? [] : [pushSecretName]), ...(isPullSignedBy(key, pull) ? [] : [places.pullSecret])];
    if (secrets.length > 0) late.push({ space: spec.displayName, guid, secrets });
  }
  return { late, all: living.map(({ metadata }) => metadata.name) };
}

const quoted = (names: readonly string[], between: string): string => names.map((name) => `'${name}'`).join(between);
const mostNamed = 10;

/**
 * Waits until all spaces have been seen with credentials of the key. Members of a space can replace its Secrets as often as the controller writes them, so
 * what is left when no other space is renewed any more is left out.
 */
async function awaitSpaces(context: RotateContext, key: Buffer): Promise<Pick<RotateResult, 'spaces' | 'leftOut'>> {
  const renewed = new Set<string>();
  let leftOut: LateSpace[] = [];
  let spaces = 0;
  let changedAt = performance.now();
  const areRenewed = async (): Promise<boolean> => {
    const { late, all } = await lateSpaces(context, key, renewed);
    const isLate = new Set(late.map(({ guid }) => guid));
    const before = renewed.size;
    for (const guid of all) if (!isLate.has(guid)) renewed.add(guid);
    if (renewed.size > before) changedAt = performance.now();
    [leftOut, spaces] = [late, all.length - late.length];
    if (late.length === 0) return true;
    const patience = standstillMs + all.length * standstillPerSpaceMs;
    // Without a controller no space is renewed, and none is to be blamed.
    return spaces > 0 && performance.now() - changedAt >= patience && !(await isControllerSilent(context));
  };
  const hints = [`kubectl -n ${context.info.controller.namespace} get deployment kf-controller`, 'kf rotate registry-key'];
  const left = (): string =>
    `; not renewed in ${quoted(
      leftOut.slice(0, mostNamed).map(({ guid }) => guid),
      ', ',
    )}${leftOut.length > mostNamed ? ', …' : ''}`;
  const { items } = await context.cluster.list(kinds.space, { signal: context.signal });
  const patienceMs = Math.max(spacesPatienceMs, manySpacesPatienceMs(items.length));
  await until(context, 'the controller to renew the credentials of all spaces', patienceMs, areRenewed, { hints, left });
  for (const { space, guid, secrets } of leftOut) {
    const are = secrets.length === 1 ? `Secret ${quoted(secrets, '')} was` : `Secrets ${quoted(secrets, ' and ')} were`;
    const message = `Space '${space}' (namespace '${guid}') has no new credentials: its ${are} not renewed, or others change ${secrets.length === 1 ? 'it' : 'them'} again and again.`;
    context.report({ type: 'warning', message });
  }
  return { spaces, leftOut };
}

/**
 * True when an earlier rotation ended before all spaces had new credentials; this one continues it. Throws while the previous key is still valid,
 * because it must be out of use before another change.
 */
async function isUnfinished(context: RotateContext, secret: Stored<Secret>, current: Buffer, now: number): Promise<boolean> {
  const previousUntil = Number(decode(secret.data?.[fields.previousUntil]).toString() || 0);
  if (now > previousUntil) return false;
  if ((await lateSpaces(context, current)).late.length > 0) return true;
  throw new KfError(
    'conflict',
    `The key was changed a short time ago; the previous key is valid until ${new Date(previousUntil * 1000).toISOString()}.`,
    { hints: ['Until then it cannot be changed again.'] },
  );
}

/**
 * Writes the next key, waits until the gate knows it, starts to sign with it, and waits until the controller has renewed every space's
 * credentials. A space whose Secrets others replace again and again is named in a warning.
 * @throws KfError
 */
export async function rotateRegistryKey(context: RotateContext): Promise<RotateResult> {
  const { cluster, info, report, signal } = context;
  requireCompatible(info, kfVersion());
  const { secret, current } = await readRegistryKeys(cluster, info);
  if (secret.immutable === true)
    throw new KfError('conflict', 'The key of this installation was made by an older kf and cannot be changed in place.', {
      hints: ['kf setup'],
    });
  const { now } = await readGateStatus(cluster, info.registry, current, signal);
  let live = secret;
  if (!(await isUnfinished(context, secret, current, now))) {
    const next = secret.data?.[fields.next] ?? encode(newRegistryKey());
    const known = await writeKeys(context, secret, { [fields.current]: secret.data?.[fields.current] ?? '', [fields.next]: next });
    await teachGate(context, current, decode(next));
    const gate = await readGateStatus(cluster, info.registry, current, signal);
    live = await writeKeys(context, known, {
      [fields.current]: next,
      [fields.previous]: known.data?.[fields.current] ?? '',
      [fields.previousUntil]: encode(String(gate.now + overlapSeconds)),
    });
  }
  const key = decode(live.data?.[fields.current]);
  const renewed = await awaitSpaces(context, key);
  report({ type: 'done' });
  return {
    key: registryKeyId(key),
    previousKey: registryKeyId(decode(live.data?.[fields.previous])),
    previousEnds: new Date(Number(decode(live.data?.[fields.previousUntil]).toString()) * 1000).toISOString(),
    ...renewed,
  };
}

// The environment of an app: the user's variables and those of the platform.

import { secretType, type Secret } from '../../api/core.ts';
import { hadVariables, processesOf } from '../../api/app.ts';
import { annotations, kinds, labels } from '../../api/group.ts';
import type { Stored } from '../../api/object.ts';
import type { EnvDetails } from '../../api/results.ts';
import { variableProblem } from '../../api/variables.ts';
import type { CFApp } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import { isAlreadyExists } from '../../kube/errors.ts';
import type { SpaceSession } from '../../session/session.ts';
import { buildEnvSecret } from '../../../templates/app.ts';
import { markUnapplied } from '../unapplied.ts';
import { changeApp } from './changes.ts';

/** @throws KfError `usage` for a variable that an app cannot have */
export function assertVariable(name: string, value: string): void {
  const problem = variableProblem(name, value);
  if (problem !== undefined) throw new KfError('usage', problem);
}

function decoded(secret: Stored<Secret> | undefined): Record<string, string> {
  return Object.fromEntries(Object.entries(secret?.data ?? {}).map(([key, value]) => [key, Buffer.from(value, 'base64').toString('utf8')]));
}

async function readSecret({ cluster, space, signal }: SpaceSession, name: string | undefined): Promise<Stored<Secret> | undefined> {
  return name === undefined || name === '' ? undefined : cluster.get(secretType, space.guid, name, signal);
}

function parsed(text: string | undefined): Record<string, unknown> {
  return text === undefined ? {} : (JSON.parse(text) as Record<string, unknown>);
}

/** The user's variables. */
export async function readVariables(session: SpaceSession, app: Stored<CFApp>): Promise<Record<string, string>> {
  return decoded(await readSecret(session, app.spec.envSecretName));
}

/** A first push writes the variables with the processes, after the build: before, or if it failed, the app has neither, and nothing is lost. */
export async function hasWrittenVariables({ cluster, space, signal }: SpaceSession, app: Stored<CFApp>): Promise<boolean> {
  if ((app.spec.currentDropletRef?.name ?? '') !== '') return true;
  const labelSelector = `${labels.appGuid}=${app.metadata.name}`;
  return processesOf(app, (await cluster.list(kinds.process, { ns: space.guid, labelSelector, signal })).items).length > 0;
}

export async function readEnv(session: SpaceSession, app: Stored<CFApp>): Promise<EnvDetails> {
  const [user, services, application] = await Promise.all([
    readSecret(session, app.spec.envSecretName),
    readSecret(session, app.status?.vcapServicesSecretName),
    readSecret(session, app.status?.vcapApplicationSecretName),
  ]);
  const variables = Object.entries(decoded(user)).toSorted(([a], [b]) => (a < b ? -1 : 1));
  const gone = (name: string | undefined, secret: Stored<Secret> | undefined): string | undefined =>
    name === undefined || name === '' || secret !== undefined ? undefined : name;
  const missing = Object.entries({
    vcapServices: gone(app.status?.vcapServicesSecretName, services),
    vcapApplication: gone(app.status?.vcapApplicationSecretName, application),
    variables: user !== undefined || (await hasWrittenVariables(session, app)) ? gone(app.spec.envSecretName, user) : undefined,
  }).filter(([, name]) => name !== undefined);
  return {
    ...(missing.length === 0 ? {} : { missing: Object.fromEntries(missing) }),
    vcapServices: parsed(decoded(services)['VCAP_SERVICES']),
    vcapApplication: parsed(decoded(application)['VCAP_APPLICATION']),
    variables: Object.fromEntries(variables),
  };
}

/**
 * The app's env Secret; created for an app of other tools that has none, and when it is gone.
 * @param onMissing called before it is created
 * @param data of one that is created: base64 by key
 */
export async function ensureEnvSecret(
  session: SpaceSession,
  app: Stored<CFApp>,
  { onMissing, data = {} }: { onMissing?: () => void; data?: Record<string, string> } = {},
): Promise<Stored<Secret>> {
  const found = await readSecret(session, app.spec.envSecretName);
  if (found !== undefined) return found;
  onMissing?.();
  const { cluster, signal } = session;
  const fresh = buildEnvSecret(app, {}, { changedBy: await session.changedBy(), now: new Date() });
  const created = await cluster.create(secretType, { ...fresh, data }, { signal }).catch(async (error: unknown) => {
    // Another start or a push has made it since it was read.
    const other = isAlreadyExists(error) ? await readSecret(session, fresh.metadata.name) : undefined;
    if (other === undefined) throw error;
    return other;
  });
  if (app.spec.envSecretName !== created.metadata.name) {
    await changeApp(session, app, () => ({ spec: { envSecretName: created.metadata.name } }));
  }
  return created;
}

/** Sets one key of the Secret; null removes it. Running instances keep the values from their start. */
async function patchKey(session: SpaceSession, secret: Stored<Secret>, name: string, value: string | null): Promise<void> {
  const { cluster, space, signal } = session;
  const metadata = { uid: secret.metadata.uid, annotations: { [annotations.changedBy]: await session.changedBy() } };
  const data = { [name]: value === null ? null : Buffer.from(value, 'utf8').toString('base64') };
  await cluster.mergePatch(secretType, space.guid, secret.metadata.name, { metadata, data }, { signal });
}

/** Tells that the Secret with the variables of an app that was started before is gone; it will be made again without them. */
export function warnOfLostVariables({ bin, report }: SpaceSession, app: Stored<CFApp>): void {
  if (!hadVariables(app)) return;
  const { displayName } = app.spec;
  const message = `The Secret with the variables of app '${displayName}' was gone, and is made again without them. '${bin} rollback ${displayName}' brings back those of the version that serves.`;
  report({ type: 'warning', message });
}

export async function setEnv(session: SpaceSession, app: Stored<CFApp>, name: string, value: string): Promise<void> {
  assertVariable(name, value);
  const secret = await ensureEnvSecret(session, app, { onMissing: () => warnOfLostVariables(session, app) });
  if (decoded(secret)[name] === value) return;
  await markUnapplied(session, app);
  await patchKey(session, secret, name, value);
}

/** Returns false when the variable was not set. */
export async function unsetEnv(session: SpaceSession, app: Stored<CFApp>, name: string): Promise<boolean> {
  const secret = await readSecret(session, app.spec.envSecretName);
  if (secret === undefined || !Object.hasOwn(secret.data ?? {}, name)) return false;
  await markUnapplied(session, app);
  await patchKey(session, secret, name, null);
  return true;
}

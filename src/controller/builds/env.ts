// The environment and the service bindings of a build.

import type { KubeObject, ResourceType, Stored } from '../../lib/api/object.ts';
import { secretType } from '../../lib/api/core.ts';
import { annotations, kinds, labels, places, reasons } from '../../lib/api/group.ts';
import type { BuildWorkloadSpec, CFApp, CFBuild, EnvVar } from '../../lib/api/types.generated.ts';
import { defined } from '../../lib/defined.ts';
import { ownerReference } from '../../templates/metadata.ts';
import { envProblem, secretData, variablesLookMs, variablesOf, type SecretData } from '../app-variables.ts';
import { bindingsOf } from '../relations.ts';
import type { Context } from '../runtime/reconciler.ts';
import { TerminalError, WaitingError } from '../runtime/result.ts';
import { ensureSecret } from '../runtime/secrets.ts';

/**
 * The CLI creates the Secret one request after the build. If the Secret is missing for this long, it was deleted or the CLI has ended, and the
 * build would wait for ever.
 */
const abandonedMs = 30_000;

const fromSecret = (secret: string, key: string, optional?: true): EnvVar => ({
  name: key,
  valueFrom: { secretKeyRef: { name: secret, key, ...defined({ optional }) } },
});

/** Of several variables with one name only the last one counts. */
export function lastOfEach(variables: readonly EnvVar[]): EnvVar[] {
  return [...new Map(variables.map((variable) => [variable.name, variable])).values()];
}

/** Since when the object is complete as far as this controller can know: after a gap, objects of that kind may arrive late. */
function since({ stores }: Context, { metadata }: Stored<KubeObject>, kind: ResourceType): number {
  return Math.max(Date.parse(metadata.creationTimestamp ?? '') || 0, stores.of(kind).steadySince);
}

/** The variables of the Secret that the build names. @throws TerminalError when the Secret does not appear */
async function ownVariables(context: Context, build: Stored<CFBuild>, name: string): Promise<SecretData> {
  const data = name === '' ? undefined : await secretData(context, build.metadata.namespace, name);
  if (data !== undefined) return data;
  if (context.now() - since(context, build, kinds.build) > abandonedMs)
    throw new TerminalError(
      'EnvironmentMissing',
      `The Secret '${name}' with the build's environment is missing: its push was interrupted, or the Secret was deleted.`,
    );
  throw new WaitingError('EnvironmentMissing', `The Secret '${name}' with the build's environment does not exist yet.`, 100);
}

/**
 * The installation's variables, then the build's own Secret (annotation env-secret) or else the app's environment, then VCAP_*. A build that names
 * a Secret waits for it: the CLI can create it only after the build.
 * @throws TerminalError when the Secret does not appear, or has too much
 * @throws WaitingError when the variables are missing
 */
export async function buildEnvironment(context: Context, build: Stored<CFBuild>, app: Stored<CFApp>): Promise<EnvVar[]> {
  const own = build.metadata.annotations?.[annotations.envSecret];
  const name = own ?? app.spec.envSecretName ?? '';
  const variables = await (own === undefined ? variablesOf(context, app, variablesLookMs) : ownVariables(context, build, own));
  const problem = envProblem(variables);
  if (problem !== undefined) throw new TerminalError('EnvironmentTooLarge', problem);
  const guid = app.metadata.name;
  return lastOfEach([
    ...(await ensureInstallationEnv(context, build)),
    ...Object.keys(variables).map((key) => fromSecret(name, key)),
    fromSecret(app.status?.vcapApplicationSecretName ?? `${guid}-vcap-application`, 'VCAP_APPLICATION', true),
    fromSecret(app.status?.vcapServicesSecretName ?? `${guid}-vcap-services`, 'VCAP_SERVICES', true),
  ]);
}

/** The environment that the operator sets for every build, in base64; it may hold credentials of mirrors. */
export async function installationEnv(context: Context): Promise<Record<string, string>> {
  const secret = await context.cluster.get(secretType, context.info().controller.namespace, places.installationEnv, context.signal);
  return secret?.data ?? {};
}

/** Puts these variables into a Secret that the build owns. Users with the right to read builds and pods cannot read the values there. */
async function ensureInstallationEnv(context: Context, build: Stored<CFBuild>): Promise<EnvVar[]> {
  const data = await installationEnv(context);
  const keys = Object.keys(data);
  if (keys.length === 0) return [];
  const { name: guid, namespace } = build.metadata;
  const name = `${guid}-installation-env`;
  const metadata = { name, namespace, ownerReferences: [ownerReference(kinds.build, build)], labels: { [labels.managedBy]: 'kf' } };
  await ensureSecret(context, { apiVersion: 'v1', kind: 'Secret', metadata, type: 'Opaque', immutable: true, data });
  return keys.map((key) => fromSecret(name, key));
}

/** The app's status usually lists a new binding within a moment. After this time a build or a task starts without a binding that does not become ready. */
const bindingPatienceMs = 15_000;

/**
 * Throws while the app's status does not list exactly the app's bindings: a build or a task may closely follow `bind-service`.
 * @param starting the build or the task
 * @throws WaitingError
 */
export function assertBindingsListed(context: Context, starting: Stored<KubeObject>, app: Stored<CFApp>): void {
  const listed = (app.status?.serviceBindings ?? []).map(({ guid }) => guid).toSorted();
  const bound = bindingsOf(context.stores, app).map(({ metadata }) => metadata.name);
  if (listed.join(' ') === bound.toSorted().join(' ')) return;
  if (context.now() - since(context, starting, kinds.serviceBinding) > bindingPatienceMs) return;
  throw new WaitingError(reasons.bindingNotReady, "The app's service bindings are not ready yet.", 1_000);
}

/** The Secrets of the app's bindings, which the build mounts. */
export function buildServices(app: CFApp): NonNullable<BuildWorkloadSpec['services']> {
  return (app.status?.serviceBindings ?? []).map(({ secret }) => ({ kind: 'Secret', apiVersion: 'v1', name: secret }));
}

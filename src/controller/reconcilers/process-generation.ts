// Making a generation: what it lives by, what is frozen into it, and the objects that hold it.

import { webProcess } from '../../lib/api/app.ts';
import { secretType, type Secret } from '../../lib/api/core.ts';
import { annotations, kinds } from '../../lib/api/group.ts';
import type { AppWorkload, CFApp, CFProcess, Droplet } from '../../lib/api/types.generated.ts';
import { isAlreadyExists } from '../../lib/kube/errors.ts';
import { encoded } from '../../templates/metadata.ts';
import { buildProcessEnv, databaseUrl, databaseUrlKey, vcapServicesKey, type VcapService } from '../../templates/pod-env.ts';
import {
  buildAppWorkload, buildFrozenSecrets, generationHash, generationNames, liveHash, liveInputs,
  type FrozenBinding, type FrozenInputs, type LiveInputs,
} from '../../templates/workload.ts'; // prettier-ignore
import { generationOf } from '../../templates/stateful-set.ts';
import { BoundedMap } from '../runtime/bounded-map.ts';
import type { Context } from '../runtime/reconciler.ts';
import { WaitingError } from '../runtime/result.ts';
import { routesTo, workloadsByProcess } from './app-indexes.ts';
import { vcapApplicationOf, vcapServicesSecretName } from './app-vcap.ts';

const defaultPort = 8080;
const retryMs = 500;

/** Ports of a process: those that routes name, oldest route first; `web` listens in any case. */
export function portsOf(process: CFProcess, droplet: Droplet, context: Context): number[] {
  const first = droplet.ports?.[0] ?? defaultPort;
  const mapped = routesTo(process, context.stores).map(({ destination }) => destination.port ?? first);
  const ports = [...new Set(mapped)];
  return ports.length === 0 && process.spec.processType === webProcess ? [first] : ports;
}

/** All generations of a process that are not about to go, oldest first. */
export function workloadsOf(process: CFProcess, context: Context): AppWorkload[] {
  return context.stores
    .of(kinds.appWorkload)
    .by(workloadsByProcess.name, `${process.metadata.namespace ?? ''}/${process.metadata.name ?? ''}`)
    .filter((workload) => workload.metadata.deletionTimestamp === undefined)
    .toSorted((a, b) => (a.metadata.creationTimestamp ?? '').localeCompare(b.metadata.creationTimestamp ?? ''));
}

export function liveInputsOf(app: CFApp, process: CFProcess, droplet: Droplet, context: Context): LiveInputs {
  return liveInputs(app, process, droplet, portsOf(process, droplet, context));
}

/** The newest generation with the same live inputs. */
export function findGeneration(workloads: readonly AppWorkload[], live: LiveInputs): AppWorkload | undefined {
  const hash = liveHash(live);
  return workloads.findLast((workload) => workload.metadata.annotations?.[annotations.liveHash] === hash);
}

async function secretData(context: Context, ns: string, name: string | undefined): Promise<Record<string, string>> {
  if (name === undefined || name === '') return {};
  const secret = await context.cluster.get(secretType, ns, name, context.signal);
  return secret?.data ?? {};
}

async function frozenBindings(context: Context, app: CFApp): Promise<FrozenBinding[]> {
  const ns = app.metadata.namespace ?? '';
  return Promise.all(
    (app.status?.serviceBindings ?? []).map(async ({ guid, name, secret }) => ({
      guid,
      name,
      data: await secretData(context, ns, secret),
    })),
  );
}

async function readFrozen(context: Context, app: CFApp, process: CFProcess): Promise<FrozenInputs> {
  const ns = app.metadata.namespace ?? '';
  const [env, services, bindings] = await Promise.all([
    secretData(context, ns, app.spec.envSecretName),
    secretData(context, ns, vcapServicesSecretName(app)),
    frozenBindings(context, app),
  ]);
  const vcapServices = services[vcapServicesKey];
  if (vcapServices === undefined) throw new WaitingError('VcapServicesNotWritten', 'VCAP_SERVICES of the app is not written yet.', retryMs);
  const listed = Object.values(JSON.parse(Buffer.from(vcapServices, 'base64').toString('utf8')) as Record<string, VcapService[]>).flat();
  const database = databaseUrl(listed);
  const fromServices = database === undefined || databaseUrlKey in env ? {} : encoded({ [databaseUrlKey]: database });
  return {
    env: { ...fromServices, ...env, [vcapServicesKey]: vcapServices },
    bindings: bindings.toSorted((a, b) => (a.guid < b.guid ? -1 : 1)),
    vcapApplication: vcapApplicationOf(context, app, process),
    drainSeconds: context.info().drainSeconds,
  };
}

async function createSecrets(context: Context, secrets: readonly Secret[]): Promise<void> {
  await Promise.all(
    secrets.map(async (secret) => {
      try {
        await context.cluster.create(secretType, secret, { signal: context.signal });
      } catch (error) {
        if (!isAlreadyExists(error)) throw error;
      }
    }),
  );
}

/** Uids of AppWorkloads whose Secrets are known to be there. */
const sealed = new BoundedMap<string, true>(5_000);

/**
 * Freezes env and bindings as they are now and creates the generation, without instances. The Secret with the env comes last: it being there
 * says that the generation is whole.
 */
export async function createGeneration(context: Context, app: CFApp, process: CFProcess, live: LiveInputs): Promise<AppWorkload> {
  const frozen = await readFrozen(context, app, process);
  const hash = generationHash(process.metadata.name ?? '', live, frozen);
  const names = generationNames(process, hash);
  const env = buildProcessEnv({
    secretName: names.env,
    secretKeys: Object.keys(frozen.env).toSorted(),
    vcapApplication: frozen.vcapApplication as { application_id: string; application_name: string },
    memoryMB: live.memoryMB,
    ports: live.ports,
    lifecycle: app.spec.lifecycle.type,
  });
  const wanted = buildAppWorkload({ app, process, live, frozen, env }, hash);
  const workload = await context.cluster.create(kinds.appWorkload, wanted, { signal: context.signal });
  const secrets = buildFrozenSecrets(workload, names, frozen);
  await createSecrets(context, secrets.slice(0, -1));
  await createSecrets(context, secrets.slice(-1));
  sealed.set(workload.metadata.uid ?? '', true);
  context.event(kinds.process, process, {
    type: 'Normal',
    reason: 'GenerationCreated',
    message: `Generation ${hash} was made from ${live.image}`,
  });
  return workload;
}

/**
 * False when the making of the generation was cut off: it is removed then, and made anew from what is there by now. Asks the API server once per
 * generation and process of the controller.
 */
export async function isWhole(context: Context, process: CFProcess, workload: AppWorkload): Promise<boolean> {
  const { uid = '', namespace = '', name = '', annotations: marks = {} } = workload.metadata;
  // A generation that somebody else made has no frozen Secrets of ours.
  if (sealed.has(uid) || workload.spec.instances > 0 || marks[annotations.liveHash] === undefined) return true;
  const secret = await context.cluster.get(secretType, namespace, generationNames(process, generationOf(workload)).env, context.signal);
  if (secret !== undefined) {
    sealed.set(uid, true);
    return true;
  }
  await context.cluster.delete(kinds.appWorkload, namespace, name, { uid, propagation: 'Background', signal: context.signal });
  return false;
}

// Creates the processes that an app's droplet names, and updates them when the droplet changes.

import type { Stored } from '../../lib/api/object.ts';
import { lacksWeb, processesOf, webProcess } from '../../lib/api/app.ts';
import { annotations, kinds, reasons } from '../../lib/api/group.ts';
import type { CFApp, CFProcess, Droplet } from '../../lib/api/types.generated.ts';
import { isAlreadyExists, isInvalid, type KubeError } from '../../lib/kube/errors.ts';
import { buildProcess } from '../../templates/app.ts';
import { ownerReference } from '../../templates/metadata.ts';
import type { Context } from '../runtime/reconciler.ts';
import { TerminalError } from '../runtime/result.ts';
import { defaultMemoryMB } from '../tenancy/quotas.ts';
import { processesByApp } from '../relations.ts';

/** The app's processes that are not being deleted: `web` first, then by type. */
export function liveProcesses(context: Context, app: Stored<CFApp>): Stored<CFProcess>[] {
  const stored = context.stores.of(kinds.process).by(processesByApp.name, `${app.metadata.namespace}/${app.metadata.name}`);
  return processesOf(
    app,
    stored.filter(({ metadata }) => metadata.deletionTimestamp === undefined),
  );
}

async function create(context: Context, app: Stored<CFApp>, type: string, detectedCommand: string, instances?: number): Promise<void> {
  const { diskQuotaMB } = context.info().processDefaults;
  const memoryMB = defaultMemoryMB(context, app.metadata.namespace);
  const built = buildProcess({ app, type, memoryMB, diskQuotaMB, instances }, { changedBy: '', now: new Date(context.now()) });
  // The controller creates the process, not the user who changed the app, and an admission policy forbids to name another user.
  delete built.metadata.annotations?.[annotations.changedBy];
  const process: CFProcess = { ...built, spec: { ...built.spec, ...(detectedCommand === '' ? {} : { detectedCommand }) } };
  try {
    await context.cluster.create(kinds.process, process, { signal: context.signal });
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
  }
}

/** Makes the app the process's owner and sets the detected command, as far as either differs. */
async function update(context: Context, app: Stored<CFApp>, process: Stored<CFProcess>, detectedCommand: string): Promise<void> {
  const { namespace, name, resourceVersion, ownerReferences = [] } = process.metadata;
  const isOwned = ownerReferences.some(({ uid }) => uid === app.metadata.uid);
  const isSame = (process.spec.detectedCommand ?? '') === detectedCommand;
  if (isOwned && isSame) return;
  const metadata = { resourceVersion, ...(isOwned ? {} : { ownerReferences: [...ownerReferences, ownerReference(kinds.app, app)] }) };
  const spec = isSame ? {} : { spec: { detectedCommand: detectedCommand === '' ? null : detectedCommand } };
  await context.cluster.mergePatch(kinds.process, namespace, name, { metadata, ...spec }, { signal: context.signal });
}

/**
 * Creates a process for each type that the droplet names, and `web` in any case. A droplet that names processes but no `web` has nothing that `web`
 * could start, so a new `web` gets no instances. Processes that the droplet does not name stay.
 * @throws TerminalError when the API server accepts no process with the name of a type; the others are there then
 */
export async function ensureProcesses(context: Context, app: Stored<CFApp>, droplet: Droplet): Promise<void> {
  const types = new Map((droplet.processTypes ?? []).map(({ type, command }) => [type, command]));
  const webInstances = lacksWeb(droplet) ? 0 : undefined;
  if (!types.has(webProcess)) types.set(webProcess, '');
  const present = new Map(liveProcesses(context, app).map((process) => [process.spec.processType, process]));
  const refused: KubeError[] = [];
  for (const [type, command] of types) {
    const process = present.get(type);
    if (process !== undefined) await update(context, app, process, command);
    else
      await create(context, app, type, command, type === webProcess ? webInstances : undefined).catch((error: unknown) => {
        if (!isInvalid(error)) throw error;
        refused.push(error);
      });
  }
  for (const [type, process] of present) {
    if (!types.has(type)) await update(context, app, process, process.spec.detectedCommand ?? '');
  }
  // Only another droplet can help.
  const [first] = refused;
  if (first !== undefined) throw new TerminalError(reasons.invalidProcess, first.message, { cause: first });
}

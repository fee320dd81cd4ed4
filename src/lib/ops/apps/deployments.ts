// `cancel-deployment` and `continue-deployment`: each is one patch of the CFApp; the controller does the rest.

import { desiredInstances, webProcess } from '../../api/app.ts';
import { configMapType } from '../../api/core.ts';
import { annotations, kinds, labels } from '../../api/group.ts';
import type { Stored } from '../../api/object.ts';
import { readRecords, revisionsName } from '../../api/revisions.ts';
import { canaryOf, deploymentStateOf, isCanaryUnderWay, isCanceled, rolloutOf, type RolloutPatch } from '../../api/rollout.ts';
import type { CFApp } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import type { SpaceSession } from '../../session/session.ts';
import { changeApp } from './changes.ts';
import { overtaken } from './rollout-wait.ts';

const deployIdOf = ({ metadata }: Stored<CFApp>): string => metadata.annotations?.[annotations.deployId] ?? '';

/** In cf's words. */
function noneActive({ bin }: SpaceSession, { spec: { displayName } }: Stored<CFApp>): KfError {
  return new KfError('not-found', 'No active deployment found for app.', { hints: [`${bin} app ${displayName}`] });
}

/** The droplet of the version that served last; undefined when none has. @throws KfError `not-found` when its revision is not recorded any more */
async function dropletBefore({ cluster, space, signal, bin }: SpaceSession, app: Stored<CFApp>): Promise<string | undefined> {
  const deployed = app.status?.revision?.deployed;
  if (deployed === undefined) return undefined;
  const records = readRecords(await cluster.get(configMapType, space.guid, revisionsName(app.metadata.name), signal));
  const record = records.find(({ version }) => version === deployed);
  if (record !== undefined) return record.droplet;
  const message = `Revision '${deployed}' served before this deployment, and its record is gone: the deployment cannot be canceled.`;
  throw new KfError('not-found', message, { hints: [`${bin} revisions ${app.spec.displayName}`] });
}

/**
 * Returns to the version before the app's present change: the app gets its droplet back, and the controller its instances. Variables and settings of
 * processes stay, as in cf; they take effect with the next start. Nothing is written when it is canceled already.
 * @throws KfError `not-found` when no change is under way, or no version has served before it, `conflict` when a later change has overtaken it
 */
export async function cancelDeployment(session: SpaceSession, app: Stored<CFApp>): Promise<Stored<CFApp>> {
  const id = deployIdOf(app);
  const state = deploymentStateOf(app);
  if (state === 'CANCELING') return app;
  const droplet = state === 'DEPLOYING' || state === 'PAUSED' ? await dropletBefore(session, app) : undefined;
  if (droplet === undefined) throw noneActive(session, app);
  return changeApp(session, app, (current) => {
    const now = deploymentStateOf(current);
    if (deployIdOf(current) !== id) throw overtaken(current);
    // Another cancellation was first.
    if (isCanceled(current)) return undefined;
    if (now !== 'DEPLOYING' && now !== 'PAUSED') throw noneActive(session, current);
    const asked: Omit<RolloutPatch, 'id'> = rolloutOf(current) ?? { strategy: null, maxInFlight: null, instanceSteps: null, step: null };
    return { spec: { currentDropletRef: { name: droplet }, rollout: { ...asked, id, canceled: true } } };
  });
}

/** Says that nobody can decide about a canary any more, when a restart replaces all instances. */
export function tellOfCanary({ report }: SpaceSession, app: Stored<CFApp>): void {
  if (!isCanaryUnderWay(app)) return;
  const message = `The canary deployment of app '${app.spec.displayName}' ends with this: all instances get its version.`;
  report({ type: 'warning', message });
}

/** @throws KfError `conflict` when web has no instance: a step would wait until there is one */
async function assertCanStep(session: SpaceSession, app: Stored<CFApp>): Promise<void> {
  const { cluster, space, signal } = session;
  const { items } = await cluster.list(kinds.process, { ns: space.guid, labelSelector: `${labels.appGuid}=${app.metadata.name}`, signal });
  const web = items.find(({ spec }) => spec.processType === webProcess);
  if (web === undefined || desiredInstances(web) > 0) return;
  const { displayName } = app.spec;
  const message = `App '${displayName}' has no instances, so there is nothing to try the new version with in the next step.`;
  throw new KfError('conflict', message, {
    hints: [`${session.bin} scale ${displayName} -i 1`, `${session.bin} cancel-deployment ${displayName}`],
  });
}

/**
 * Lets a paused canary go to its next step, or after the last one replace all instances. Wait with `waitUntilServing`.
 * @throws KfError `not-found` when no change is under way, `conflict` when it is not paused, or a later change has overtaken it
 */
export async function continueDeployment(session: SpaceSession, app: Stored<CFApp>): Promise<{ app: Stored<CFApp>; deployId: string }> {
  const id = deployIdOf(app);
  const { step, steps } = canaryOf(app) ?? {};
  if (step !== steps && deploymentStateOf(app) === 'PAUSED') await assertCanStep(session, app);
  const next = await changeApp(session, app, (current) => {
    // Another continuation has gone to this step already.
    if (deployIdOf(current) === id && step !== undefined && canaryOf(current)?.step === step + 1) return undefined;
    const state = deploymentStateOf(current);
    if (deployIdOf(current) !== id) throw overtaken(current);
    if (state === undefined || state === 'DEPLOYED' || state === 'CANCELED') throw noneActive(session, current);
    if (state !== 'PAUSED') {
      const message = `Cannot continue a deployment with status: ACTIVE and reason: ${state}`;
      throw new KfError('conflict', message, { hints: [`${session.bin} app ${current.spec.displayName}`] });
    }
    return { spec: { rollout: { id, step: (step ?? 1) + 1 } } };
  });
  return { app: next, deployId: id };
}

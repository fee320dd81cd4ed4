// The events of an app's deployments, in the words of cf. Pure.

import type { Seen } from './event-log.ts';
import { canaryOf, isCanceled, rolledBackTo, rolloutOf } from './rollout.ts';
import type { CFApp } from './types.generated.ts';

const canceled = 'canceled';

/** What a record keeps of the app's present deployment: up to which step it may go, or that it is canceled. */
export function rolloutSeen(app: CFApp): string {
  return isCanceled(app) ? canceled : String(rolloutOf(app)?.step ?? '');
}

/** `rolled back to revision: 4` when the app's present change is a rollback. */
function rollbackOf(app: CFApp): string[] {
  const version = rolledBackTo(app);
  return version === undefined ? [] : [`rolled back to revision: ${String(version)}`];
}

function created(app: CFApp): { type: string; description: string } {
  const strategy = rolloutOf(app)?.strategy;
  const isDeployment = strategy === 'rolling' || strategy === 'canary';
  const facts = [...(strategy === undefined ? [] : [`strategy: ${strategy}`]), ...rollbackOf(app)];
  return { type: isDeployment ? 'audit.app.deployment.create' : 'audit.app.restart', description: facts.join(', ') };
}

/** What happened to the deployment of an app that is started, before and after; undefined when nothing did. */
export function deploymentEvent(app: CFApp, before: Seen, after: Seen): { type: string; description: string } | undefined {
  if (after.state !== 'STARTED') return undefined;
  if (after.deployId !== before.deployId) return created(app);
  if (before.rollout === undefined || after.rollout === before.rollout) return undefined;
  if (after.rollout === canceled) return { type: 'audit.app.deployment.cancel', description: '' };
  const canary = canaryOf(app);
  const description = canary === undefined ? '' : `step: ${canary.step} of ${canary.steps}`;
  return { type: 'audit.app.deployment.continue', description };
}

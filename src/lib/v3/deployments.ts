// The last change of an app as a deployment.

import { annotations } from '../api/group.ts';
import type { Stored } from '../api/object.ts';
import { canaryOf, deploymentStateOf, isActive, maxInFlightOf, rolloutOf, strategyOf, type DeploymentState } from '../api/rollout.ts';
import type { CFApp } from '../api/types.generated.ts';
import { defined } from '../defined.ts';
import { identityOf, toOne, type LinkTo, type V3Resource } from './resource.ts';

/** The steps of a canary; the API has one step for a canary that named none. */
function canaryFields(app: Stored<CFApp>): { options: object; status: object } {
  if (strategyOf(app) !== 'canary') return { options: {}, status: {} };
  const steps = rolloutOf(app)?.instanceSteps?.map((weight) => ({ instance_weight: weight }));
  const at = canaryOf(app);
  return {
    options: defined({ canary: steps && { steps } }),
    status: defined({ canary: at && { steps: { current: at.step, total: at.steps } } }),
  };
}

function linksOf(app: Stored<CFApp>, id: string, state: DeploymentState, link: LinkTo): Record<string, unknown> {
  const action = (name: string) => ({ ...link(`/v3/deployments/${id}/actions/${name}`), method: 'POST' });
  return {
    self: link(`/v3/deployments/${id}`),
    app: link(`/v3/apps/${app.metadata.name}`),
    ...defined({ cancel: isActive(state) ? action('cancel') : undefined, continue: state === 'PAUSED' ? action('continue') : undefined }),
  };
}

function errorOf({ status }: Stored<CFApp>): { error?: string | null } {
  return status?.deployment?.phase === 'Failed' ? { error: status.deployment.message ?? null } : {};
}

/** The last change of an app as a deployment; undefined for an app that was never started, or was stopped last. */
export function presentDeployment(app: Stored<CFApp>, link: LinkTo): V3Resource | undefined {
  const known = app.status?.deployment;
  const id = app.metadata.annotations?.[annotations.deployId] ?? known?.id ?? '';
  const state = deploymentStateOf(app);
  if (id === '' || state === undefined || (known?.id === id && known.phase === 'Stopped')) return undefined;
  const { since } = known?.id === id ? known : {};
  const { created_at, updated_at } = identityOf(app);
  const canary = canaryFields(app);
  return {
    guid: id,
    created_at: since ?? created_at,
    updated_at: since ?? updated_at,
    status: {
      value: isActive(state) ? 'ACTIVE' : 'FINALIZED',
      reason: state,
      details: { last_status_change: since ?? null, ...errorOf(app) },
      ...canary.status,
    },
    strategy: strategyOf(app),
    options: { max_in_flight: maxInFlightOf(app), ...canary.options },
    droplet: { guid: app.spec.currentDropletRef?.name ?? null },
    previous_droplet: { guid: null },
    new_processes: [],
    relationships: { app: toOne(app.metadata.name) },
    metadata: { labels: {}, annotations: {} },
    links: linksOf(app, id, state, link),
  };
}

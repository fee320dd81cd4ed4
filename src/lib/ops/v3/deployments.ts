// Deployments: the last change of each app, a new one, and its cancellation and continuation.

import { kinds } from '../../api/group.ts';
import type { Stored } from '../../api/object.ts';
import { strategies, type RolloutOptions } from '../../api/rollout.ts';
import type { CFApp } from '../../api/types.generated.ts';
import { V3Error } from '../../v3/errors.ts';
import { presentDeployment } from '../../v3/deployments.ts';
import { pageOf } from '../../v3/pages.ts';
import type { V3Resource } from '../../v3/resource.ts';
import { cancelDeployment, continueDeployment } from '../apps/deployments.ts';
import { setDroplet } from '../apps/droplets.ts';
import { restartApp } from '../apps/lifecycle.ts';
import { fieldsOf, wholeNumber } from './body.ts';
import { get, post, V3Answer, type Asked, type V3Route } from './request.ts';

interface Deployment {
  app: Stored<CFApp>;
  resource: V3Resource;
}

/** The last deployment of each app. */
async function deployments({ reader, query, link }: Asked): Promise<Deployment[]> {
  const apps = await reader.list(kinds.app, query);
  return apps.flatMap((app) => {
    const resource = presentDeployment(app, link);
    return resource === undefined ? [] : [{ app, resource }];
  });
}

async function listDeployments(asked: Asked): Promise<unknown> {
  const { query, link } = asked;
  query.allow(['app_guids', 'space_guids', 'organization_guids', 'states', 'status_values', 'status_reasons']);
  const found = (await deployments(asked)).filter(({ app, resource }) => {
    const { value, reason } = resource['status'] as { value: string; reason: string };
    return (
      query.matches('app_guids', app.metadata.name) &&
      query.matches('status_values', value) &&
      query.matches('status_reasons', reason) &&
      query.matches('states', value, reason)
    );
  });
  return pageOf(
    found.map(({ resource }) => resource),
    query,
    link,
  );
}

async function find(asked: Asked): Promise<Deployment> {
  const found = (await deployments(asked)).find(({ resource }) => resource.guid === asked.part('guid'));
  if (found === undefined) throw new V3Error('not-found', 'Deployment not found');
  return found;
}

async function oneDeployment(asked: Asked): Promise<unknown> {
  asked.query.allow([], { isList: false });
  return (await find(asked)).resource;
}

async function cancel(asked: Asked): Promise<unknown> {
  const { app } = await find(asked);
  return presentDeployment(await cancelDeployment(await asked.reader.at(app), app), asked.link);
}

async function goOn(asked: Asked): Promise<unknown> {
  const { app } = await find(asked);
  const continued = await continueDeployment(await asked.reader.at(app), app);
  return presentDeployment(continued.app, asked.link);
}

const guidIn = (value: unknown, what: string): string => {
  const { guid } = fieldsOf(value, ['guid']);
  if (typeof guid !== 'string' || guid === '') throw new V3Error('unprocessable', `${what} must have a guid`);
  return guid;
};

function stepsOf(canary: unknown): number[] | undefined {
  if (canary === undefined) return undefined;
  const { steps } = fieldsOf(canary, ['steps']);
  if (!Array.isArray(steps)) throw new V3Error('unprocessable', 'Options.canary.steps must be an array');
  const weights = steps.map((step) => wholeNumber(fieldsOf(step, ['instance_weight'])['instance_weight'], 'Instance weight', 1, 100));
  const isAscending = weights.every((weight, at) => weight !== undefined && weight > (weights[at - 1] ?? 0));
  if (!isAscending) throw new V3Error('unprocessable', 'Options.canary.steps must have ascending instance weights');
  return weights.filter((weight) => weight !== undefined);
}

function rolloutIn(strategy: unknown, options: unknown): RolloutOptions {
  const named = strategies.find((one) => one === (strategy ?? 'rolling'));
  if (named === undefined) throw new V3Error('unprocessable', `Strategy '${String(strategy)}' is not a supported deployment strategy`);
  const { max_in_flight, canary } = fieldsOf(options ?? {}, ['max_in_flight', 'canary']);
  if (canary !== undefined && named !== 'canary')
    throw new V3Error('unprocessable', 'Options.canary are only valid for Canary deployments');
  return { strategy: named, maxInFlight: wholeNumber(max_in_flight, 'Max in flight', 1, 1000), instanceSteps: stepsOf(canary) };
}

/** A restart, with another droplet if the body names one. */
async function create(asked: Asked): Promise<unknown> {
  const body = fieldsOf(asked.body(), ['relationships', 'strategy', 'options', 'droplet']);
  const relation = fieldsOf(fieldsOf(body['relationships'], ['app'])['app'], ['data'])['data'];
  const guid = guidIn(relation, 'App');
  const rollout = rolloutIn(body['strategy'], body['options']);
  const app = await asked.reader.find(kinds.app, 'App', guid);
  const session = await asked.reader.at(app);
  if (body['droplet'] !== undefined) await setDroplet(session, app, guidIn(body['droplet'], 'Droplet'), { replacesChange: true });
  const current = body['droplet'] === undefined ? app : await asked.reader.find(kinds.app, 'App', guid);
  const restarted = await restartApp(session, current, rollout);
  return new V3Answer(201, presentDeployment(restarted.app, asked.link));
}

export const deploymentRoutes: readonly V3Route[] = [
  get('/v3/deployments', listDeployments),
  get('/v3/deployments/:guid', oneDeployment),
  post('/v3/deployments', create),
  post('/v3/deployments/:guid/actions/cancel', cancel),
  post('/v3/deployments/:guid/actions/continue', goOn),
];

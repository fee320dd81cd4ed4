// Quotas of orgs and spaces, and what they use.

import { desiredInstances } from '../../api/app.ts';
import { annotations, kinds } from '../../api/group.ts';
import type { Stored } from '../../api/object.ts';
import type { CFOrg, CFQuota, CFSpace } from '../../api/types.generated.ts';
import { V3Error } from '../../v3/errors.ts';
import { pageOf } from '../../v3/pages.ts';
import { presentOrgQuota, presentSpaceQuota, presentUsage, type Usage } from '../../v3/quotas.ts';
import type { V3Resource } from '../../v3/resource.ts';
import { taskDetails } from '../tasks/tasks.ts';
import { get, type Asked, type V3Route } from './request.ts';

const holders = (places: readonly (Stored<CFOrg> | Stored<CFSpace>)[], { metadata }: Stored<CFQuota>): string[] =>
  places.filter((place) => place.metadata.annotations?.[annotations.quota] === metadata.name).map((place) => place.metadata.name);

interface Held {
  quota: Stored<CFQuota>;
  by: string[];
  resource: V3Resource;
}

async function orgQuotas({ reader, link }: Asked): Promise<Held[]> {
  const [quotas, orgs] = await Promise.all([reader.listIn(kinds.quota, [reader.session.root]), reader.orgs()]);
  return quotas.map((quota) => {
    const by = holders(orgs, quota);
    return { quota, by, resource: presentOrgQuota(quota, by, link) };
  });
}

/** @param orgs GUIDs; left out: all that the caller may read */
async function spaceQuotas({ reader, link }: Asked, orgs?: readonly string[]): Promise<Held[]> {
  const guids = orgs ?? (await reader.orgs()).map(({ metadata }) => metadata.name);
  const [quotas, spaces] = await Promise.all([reader.listIn(kinds.quota, guids), reader.spaces(guids)]);
  return quotas.map((quota) => {
    const by = holders(
      spaces.filter(({ metadata }) => metadata.namespace === quota.metadata.namespace),
      quota,
    );
    return { quota, by, resource: presentSpaceQuota(quota, by, link) };
  });
}

const page = ({ query, link }: Asked, found: readonly Held[], holder: string): unknown =>
  pageOf(
    found
      .filter(
        ({ quota, by }) =>
          query.matches('names', quota.spec.displayName) && query.matches('guids', quota.metadata.name) && query.matches(holder, ...by),
      )
      .map(({ resource }) => resource),
    query,
    link,
  );

async function listOrgQuotas(asked: Asked): Promise<unknown> {
  asked.query.allow(['names', 'guids', 'organization_guids']);
  return page(asked, await orgQuotas(asked), 'organization_guids');
}

async function listSpaceQuotas(asked: Asked): Promise<unknown> {
  asked.query.allow(['names', 'guids', 'organization_guids', 'space_guids']);
  return page(asked, await spaceQuotas(asked, asked.query.words('organization_guids')), 'space_guids');
}

function named(found: readonly Held[], asked: Asked, what: string): V3Resource {
  asked.query.allow([], { isList: false });
  const one = found.find(({ quota }) => quota.metadata.name === asked.part('guid'));
  if (one === undefined) throw new V3Error('not-found', `${what} quota not found`);
  return one.resource;
}

/** Everything in the spaces; a part of it would be a wrong sum. @throws KfError `forbidden` when one of them may not be read */
async function usageIn({ reader }: Asked, spaces: readonly string[]): Promise<Usage> {
  const [apps, processes, tasks, routes, instances, bindings] = await Promise.all([
    reader.listWhole(kinds.app, spaces),
    reader.listWhole(kinds.process, spaces),
    reader.listWhole(kinds.task, spaces),
    reader.listWhole(kinds.route, spaces),
    reader.listWhole(kinds.serviceInstance, spaces),
    reader.listWhole(kinds.serviceBinding, spaces),
  ]);
  const started = new Set(apps.filter(({ spec }) => spec.desiredState === 'STARTED').map(({ metadata }) => metadata.name));
  const running = processes.filter(({ spec }) => started.has(spec.appRef.name));
  const busy = tasks.filter((task) => taskDetails(task).state === 'RUNNING');
  const memory = running.map((process) => desiredInstances(process) * process.spec.memoryMB);
  const ofTasks = busy.map((task) => task.status?.memoryMB ?? task.spec.memoryMB ?? 0);
  const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0);
  return {
    startedInstances: sum(running.map(desiredInstances)),
    memoryMB: sum([...memory, ...ofTasks]),
    routes: routes.length,
    serviceInstances: instances.length,
    runningTasks: busy.length,
    serviceKeys: bindings.filter(({ spec }) => spec.type === 'key').length,
  };
}

async function orgUsage(asked: Asked): Promise<unknown> {
  asked.query.allow([], { isList: false });
  const org = await asked.reader.org(asked.part('guid'));
  const spaces = await asked.reader.spaces([org.metadata.name]);
  const usage = await usageIn(
    asked,
    spaces.map(({ metadata }) => metadata.name),
  );
  return presentUsage('organization', `/v3/organizations/${org.metadata.name}`, usage, asked.link);
}

async function spaceUsage(asked: Asked): Promise<unknown> {
  asked.query.allow([], { isList: false });
  const { metadata } = await asked.reader.space(asked.part('guid'));
  return presentUsage('space', `/v3/spaces/${metadata.name}`, await usageIn(asked, [metadata.name]), asked.link);
}

export const quotaRoutes: readonly V3Route[] = [
  get('/v3/organization_quotas', listOrgQuotas),
  get('/v3/organization_quotas/:guid', async (asked) => named(await orgQuotas(asked), asked, 'Organization')),
  get('/v3/space_quotas', listSpaceQuotas),
  get('/v3/space_quotas/:guid', async (asked) => named(await spaceQuotas(asked), asked, 'Space')),
  get('/v3/organizations/:guid/usage_summary', orgUsage),
  get('/v3/spaces/:guid/usage_summary', spaceUsage),
];

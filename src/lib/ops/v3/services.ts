// Service instances and their bindings.

import { kinds } from '../../api/group.ts';
import type { Stored } from '../../api/object.ts';
import type { CFServiceBinding } from '../../api/types.generated.ts';
import { pageOf } from '../../v3/pages.ts';
import { presentBinding, presentServiceInstance } from '../../v3/services.ts';
import { deleteService } from '../services/user-provided.ts';
import { oneWithIncluded, withIncluded } from './included.ts';
import { get, remove, V3Answer, type Asked, type V3Route } from './request.ts';

const includes = ['app', 'service_instance'];

async function listInstances({ reader, query, link }: Asked): Promise<unknown> {
  query.allow(['names', 'guids', 'type', 'space_guids', 'organization_guids', 'label_selector']);
  const found = (await reader.list(kinds.serviceInstance, query)).filter(
    (instance) =>
      query.matches('names', instance.spec.displayName) &&
      query.matches('guids', instance.metadata.name) &&
      query.matches('type', instance.spec.type) &&
      query.matchesLabels(instance),
  );
  return pageOf(
    found.map((instance) => presentServiceInstance(instance, link)),
    query,
    link,
  );
}

async function oneInstance({ reader, part, link, query }: Asked): Promise<unknown> {
  query.allow([], { isList: false });
  return presentServiceInstance(await reader.find(kinds.serviceInstance, 'Service instance', part('guid')), link);
}

/** Deletes its bindings too. The answer has no body and no job: the instance is gone. */
async function removeInstance({ reader, part }: Asked): Promise<unknown> {
  const instance = await reader.find(kinds.serviceInstance, 'Service instance', part('guid'));
  await deleteService(await reader.at(instance), instance);
  return new V3Answer(204);
}

/** Names of objects by GUID, if the query has a filter that needs them. */
async function names(
  { query }: Asked,
  filter: string,
  list: () => Promise<Stored<{ metadata: object; spec: { displayName: string } }>[]>,
): Promise<Map<string, string>> {
  if (!query.has(filter)) return new Map();
  return new Map((await list()).map(({ metadata, spec }) => [metadata.name, spec.displayName]));
}

async function listBindings(asked: Asked): Promise<unknown> {
  const { reader, query, link } = asked;
  const ofApps = ['app_guids', 'app_names'];
  const ofInstances = ['service_instance_guids', 'service_instance_names'];
  query.allow(['names', 'guids', 'type', ...ofApps, ...ofInstances, 'label_selector', 'include']);
  const [bindings, apps, instances] = await Promise.all([
    reader.list(kinds.serviceBinding),
    names(asked, 'app_names', () => reader.list(kinds.app)),
    names(asked, 'service_instance_names', () => reader.list(kinds.serviceInstance)),
  ]);
  const isWanted = ({ metadata, spec }: Stored<CFServiceBinding>): boolean => {
    const instance = spec.service.name ?? '';
    return (
      query.matches('names', spec.displayName) &&
      query.matches('guids', metadata.name) &&
      query.matches('type', spec.type) &&
      query.matches('app_guids', spec.appRef.name) &&
      query.matches('app_names', apps.get(spec.appRef.name)) &&
      query.matches('service_instance_guids', instance) &&
      query.matches('service_instance_names', instances.get(instance))
    );
  };
  const found = bindings.filter((binding) => isWanted(binding) && query.matchesLabels(binding));
  const resources = found.map((binding) => presentBinding(binding, link));
  return withIncluded(asked, pageOf(resources, query, link), includes);
}

async function oneBinding(asked: Asked): Promise<unknown> {
  asked.query.allow(['include'], { isList: false });
  const binding = await asked.reader.find(kinds.serviceBinding, 'Service credential binding', asked.part('guid'));
  return oneWithIncluded(asked, presentBinding(binding, asked.link), includes);
}

export const serviceRoutes: readonly V3Route[] = [
  get('/v3/service_instances', listInstances),
  get('/v3/service_instances/:guid', oneInstance),
  remove('/v3/service_instances/:guid', removeInstance),
  get('/v3/service_credential_bindings', listBindings),
  get('/v3/service_credential_bindings/:guid', oneBinding),
];

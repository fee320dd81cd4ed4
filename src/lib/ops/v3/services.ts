// Service instances and their bindings.

import { secretType } from '../../api/core.ts';
import { readCredentials } from '../../api/credentials.ts';
import { kinds } from '../../api/group.ts';
import type { Stored } from '../../api/object.ts';
import type { CFServiceBinding, CFServiceInstance } from '../../api/types.generated.ts';
import { V3Error } from '../../v3/errors.ts';
import { pageOf } from '../../v3/pages.ts';
import { presentBinding, presentServiceInstance } from '../../v3/services.ts';
import { assertMetadata } from '../apps/metadata.ts';
import { changeMetadataOf } from '../labels.ts';
import { renameService } from '../services/instances.ts';
import { deleteService } from '../services/user-provided.ts';
import { fieldsOf, metadataIn } from './body.ts';
import { oneWithIncluded, withIncluded } from './included.ts';
import { get, patch, remove, V3Answer, type Asked, type V3Route } from './request.ts';

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

/** What the Secret of an instance has. @throws V3Error 404 for a managed instance, 422 when there are none yet */
async function credentialsOf({ reader }: Asked, instance: Stored<CFServiceInstance>): Promise<Record<string, unknown>> {
  const { cluster, signal } = reader.session;
  const { namespace } = instance.metadata;
  if (instance.spec.type !== 'user-provided') throw new V3Error('not-found', 'Service instance not found');
  const secret = await cluster.get(secretType, namespace, instance.spec.secretName, signal);
  const found = secret === undefined ? 'The credentials do not exist yet' : readCredentials(instance, secret);
  if (typeof found === 'string') throw new V3Error('unprocessable', `${found}.`);
  return found.values;
}

async function credentials(asked: Asked): Promise<unknown> {
  asked.query.allow([], { isList: false });
  return credentialsOf(asked, await asked.reader.find(kinds.serviceInstance, 'Service instance', asked.part('guid')));
}

/** What an app gets by a binding. */
async function details(asked: Asked): Promise<unknown> {
  asked.query.allow([], { isList: false });
  const { reader, part } = asked;
  const { metadata, spec } = await reader.find(kinds.serviceBinding, 'Service credential binding', part('guid'));
  const { cluster, signal } = reader.session;
  const instance = await cluster.get(kinds.serviceInstance, metadata.namespace, spec.service.name ?? '', signal);
  if (instance === undefined) throw new V3Error('not-found', 'Service credential binding not found');
  const drain = instance.spec.syslogDrainUrl ?? '';
  return { credentials: await credentialsOf(asked, instance), ...(drain === '' ? {} : { syslog_drain_url: drain }), volume_mounts: [] };
}

/** Name and metadata; `kf update-user-provided-service` changes the rest. */
async function changeInstance(asked: Asked): Promise<unknown> {
  const { name, metadata } = fieldsOf(asked.body(), ['name', 'metadata']);
  if (name !== undefined && (typeof name !== 'string' || name === '')) throw new V3Error('unprocessable', 'Name must be a text');
  const change = metadataIn(metadata);
  assertMetadata(change);
  const find = (): Promise<Stored<CFServiceInstance>> => asked.reader.find(kinds.serviceInstance, 'Service instance', asked.part('guid'));
  const instance = await find();
  const session = await asked.reader.at(instance);
  if (typeof name === 'string') await renameService(session, instance, name);
  const what = `Service instance '${instance.spec.displayName}'`;
  await changeMetadataOf(session, { type: kinds.serviceInstance, object: await find(), what }, change);
  return presentServiceInstance(await find(), asked.link);
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
  get('/v3/service_instances/:guid/credentials', credentials),
  patch('/v3/service_instances/:guid', changeInstance),
  remove('/v3/service_instances/:guid', removeInstance),
  get('/v3/service_credential_bindings', listBindings),
  get('/v3/service_credential_bindings/:guid', oneBinding),
  get('/v3/service_credential_bindings/:guid/details', details),
];

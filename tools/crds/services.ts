// Service instances, bindings, brokers and their catalogs. Fields: contract 4.10-4.14.

import {
  age,
  boolean,
  column,
  createdAt,
  freeForm,
  immutable,
  list,
  named,
  object,
  oneOf,
  rules,
  setOf,
  string,
  updatedAt,
} from './schema.ts';
import type { Kind } from './schema.ts';
import { brokerCatalog, localReference, objectReference, sizes, statusOf } from './shared.ts';

const displayName = column('Display Name', '.spec.displayName');
const name = column('Display Name', '.spec.name');
const available = column('Available', '.spec.available');

const instance: Kind = {
  kind: 'CFServiceInstance',
  plural: 'cfserviceinstances',
  description: 'A service instance: credentials given by the user, or provisioned by a broker.',
  columns: [createdAt, updatedAt, displayName, age],
  spec: object({
    'displayName!': string(),
    'type!': { ...oneOf('user-provided', 'managed'), ...immutable('The type of a service instance cannot be changed') },
    'secretName!': string(),
    'planGuid!': string(),
    parameters: localReference(),
    serviceLabel: string(),
    tags: list(string()),
    syslogDrainUrl: string({ maxLength: sizes.url }),
    routeServiceUrl: string({ maxLength: sizes.url }),
  }),
  status: statusOf({
    credentials: localReference(),
    credentialsObservedVersion: string(),
    lastOperation: named(
      'LastOperation',
      object({
        'type!': oneOf('create', 'update', 'delete'),
        'state!': oneOf('initial', 'in progress', 'succeeded', 'failed'),
        description: string({ maxLength: sizes.message }),
      }),
    ),
    maintenanceInfo: object({ 'version!': string() }),
    upgradeAvailable: boolean(),
  }),
};

const same = (path: string) => {
  const [object, key] = path.split('.') as [string, string];
  const text = (of: string) => `(has(${of}.${object}.${key}) ? ${of}.${object}.${key} : "")`;
  return `${text('self')} == ${text('oldSelf')}`;
};

const binding: Kind = {
  kind: 'CFServiceBinding',
  plural: 'cfservicebindings',
  description: 'A service instance bound to an app, or a key of it.',
  columns: [createdAt, updatedAt, displayName, age],
  spec: object(
    {
      'type!': oneOf('app', 'key'),
      'service!': objectReference(),
      'appRef!': localReference(),
      'parameters!': localReference(),
      displayName: string(),
    },
    rules(
      { rule: same('appRef.name'), message: 'The app of a binding cannot be changed; unbind and bind again' },
      { rule: same('service.name'), message: 'The service instance of a binding cannot be changed; unbind and bind again' },
      // `namespace` is a reserved word of CEL and is written with underscores.
      { rule: same('service.__namespace__'), message: 'The service instance of a binding cannot be changed; unbind and bind again' },
    ),
  ),
  status: statusOf({ envSecretRef: localReference(), mountSecretRef: localReference() }),
};

const broker: Kind = {
  kind: 'CFServiceBroker',
  plural: 'cfservicebrokers',
  description: 'A broker that offers managed services.',
  columns: [createdAt, updatedAt, name, age],
  spec: object({ 'name!': string(), 'url!': string({ maxLength: sizes.url }), 'credentials!': localReference() }),
  status: statusOf({ credentialsObservedVersion: string() }),
};

const offering: Kind = {
  kind: 'CFServiceOffering',
  plural: 'cfserviceofferings',
  description: "A service of a broker's catalog.",
  columns: [createdAt, updatedAt, name, column('Description', '.spec.description'), available, age],
  spec: object({
    'name!': string(),
    'description!': string({ maxLength: 16 * 1024 }),
    tags: list(string()),
    requires: list(string()),
    documentationUrl: string({ maxLength: sizes.url }),
    'brokerCatalog!': brokerCatalog(
      object({
        'allowContextUpdates!': boolean(),
        'bindable!': boolean(),
        'bindingsRetrievable!': boolean(),
        'instancesRetrievable!': boolean(),
        'planUpdateable!': boolean(),
      }),
      true,
    ),
  }),
};

const parameters = object({ parameters: freeForm() });

const plan: Kind = {
  kind: 'CFServicePlan',
  plural: 'cfserviceplans',
  description: 'A plan of a service offering.',
  columns: [createdAt, updatedAt, name, available, { ...column('Free', '.spec.free'), type: 'boolean' }, age],
  spec: object({
    'name!': string(),
    'free!': boolean(),
    description: string({ maxLength: 16 * 1024 }),
    'brokerCatalog!': brokerCatalog(object({ 'bindable!': boolean(), 'planUpdateable!': boolean() }), false),
    'maintenanceInfo!': object({ 'version!': string() }),
    'schemas!': object({
      'serviceInstance!': object({ 'create!': parameters, 'update!': parameters }),
      'serviceBinding!': object({ 'create!': parameters }),
    }),
    'visibility!': object({ 'type!': oneOf('admin', 'public', 'organization'), organizations: setOf(string(), { maxItems: 1000 }) }),
  }),
};

export const serviceKinds: Kind[] = [instance, binding, broker, offering, plan];

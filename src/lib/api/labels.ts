// Korifi's index labels, for filtering lists. The CLI sets them at creation, and the controller corrects them.

import { findCondition } from './conditions.ts';
import { group, labels } from './group.ts';
import { sha224, timeLabel } from './names.ts';
import type { KubeObject } from './object.ts';
import type {
  CFApp,
  CFBuild,
  CFDomain,
  CFOrg,
  CFPackage,
  CFProcess,
  CFRoute,
  CFServiceBinding,
  CFServiceBroker,
  CFServiceInstance,
  CFServiceOffering,
  CFServicePlan,
  CFSpace,
  CFTask,
} from './types.generated.ts';
import { defined } from '../defined.ts';

type Labels = Record<string, string | undefined>;

const readyStatus = (object: CFOrg | CFSpace): string | undefined => findCondition(object, 'Ready')?.status;
const space = (object: KubeObject): Labels => ({ [labels.spaceGuid]: object.metadata.namespace });
const ofApp = (object: CFBuild | CFPackage | CFProcess | CFTask | CFServiceBinding): Labels => ({
  ...space(object),
  [labels.appGuid]: object.spec.appRef?.name,
});
const displayed = (name: string | undefined): Labels => ({ [labels.displayName]: name === undefined ? undefined : sha224(name) });

/** A label value, or undefined for a text that is not a valid one (a wildcard host). */
const labelValue = (text: string | undefined): string | undefined =>
  text !== undefined && /^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/.test(text) ? text : undefined;

const byKind: Record<string, (object: never) => Labels> = {
  CFOrg: (org: CFOrg) => ({ [labels.orgName]: sha224(org.spec.displayName), [labels.ready]: readyStatus(org) }),
  CFSpace: (object: CFSpace) => ({
    [labels.spaceName]: sha224(object.spec.displayName),
    [labels.orgGuid]: object.metadata.namespace,
    [labels.ready]: readyStatus(object),
  }),
  CFApp: (app: CFApp) => ({
    ...space(app),
    ...displayed(app.spec.displayName),
    [labels.deploymentStatus]: findCondition(app, 'Ready')?.status === 'True' ? 'FINALIZED' : 'ACTIVE',
  }),
  CFPackage: (object: CFPackage) => ({
    ...ofApp(object),
    [labels.packageState]: findCondition(object, 'Ready')?.status === 'True' ? 'READY' : 'AWAITING_UPLOAD',
  }),
  CFBuild: (build: CFBuild) => ({
    ...ofApp(build),
    [labels.packageGuid]: build.spec.packageRef.name,
    [labels.dropletGuid]: build.metadata.name,
    [labels.buildState]: build.status?.state,
  }),
  CFProcess: (process: CFProcess) => ({ ...ofApp(process), [labels.processType]: process.spec.processType }),
  CFTask: (task: CFTask) => ({ ...ofApp(task), [labels.taskSequenceId]: task.status?.sequenceId?.toString() }),
  CFRoute: (route: CFRoute) => ({
    ...space(route),
    [labels.domainGuid]: route.spec.domainRef.name,
    [labels.routeHost]: labelValue(route.spec.host),
    [labels.routePath]: route.spec.path === undefined ? undefined : sha224(route.spec.path),
    [labels.unmapped]: route.spec.destinations === undefined ? undefined : String(route.spec.destinations.length === 0),
  }),
  CFDomain: (domain: CFDomain) => ({ [labels.domainName]: sha224(domain.spec.name) }),
  CFServiceInstance: (instance: CFServiceInstance) => ({
    ...space(instance),
    ...displayed(instance.spec.displayName),
    [labels.planGuid]: instance.spec.planGuid,
    [labels.serviceInstanceType]: instance.spec.type,
  }),
  CFServiceBinding: (binding: CFServiceBinding) => ({
    ...ofApp(binding),
    ...displayed(binding.spec.displayName),
    [labels.serviceInstanceGuid]: binding.spec.service.name,
    [labels.serviceBindingType]: binding.spec.type,
  }),
  CFServiceBroker: (broker: CFServiceBroker) => ({ [labels.serviceBrokerDisplayName]: sha224(broker.spec.name) }),
  CFServiceOffering: (offering: CFServiceOffering) => ({ [labels.serviceOfferingName]: sha224(offering.spec.name) }),
  CFServicePlan: (plan: CFServicePlan) => ({
    [labels.servicePlanName]: sha224(plan.spec.name),
    [labels.servicePlanAvailable]: String(plan.spec.visibility.type !== 'admin'),
  }),
  CFSecurityGroup: () => ({}),
};

export interface IndexOptions {
  /** Creation time of an object that is not on the server yet. */
  now?: Date;
  /** Time of the coming change of an existing object. */
  updated?: Date;
}

/** The index labels for a CF object; empty for kinds without index labels. A wildcard host has no label, because `*` is not a valid value. */
export function indexLabels(object: KubeObject, options: IndexOptions = {}): Record<string, string> {
  const ofKind = byKind[object.kind ?? ''];
  if (ofKind === undefined || object.apiVersion?.startsWith(`${group}/`) !== true) return {};
  const created = object.metadata.creationTimestamp ?? options.now ?? new Date();
  const all: Labels = {
    [labels.guid]: object.metadata.name,
    [labels.createdAt]: timeLabel(created),
    [labels.updatedAt]: options.updated === undefined ? undefined : timeLabel(options.updated),
    ...ofKind(object as never),
  };
  return defined(all) as Record<string, string>;
}

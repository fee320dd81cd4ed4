// The kinds that setup applies, by apiVersion and kind.

import { networkPolicyType } from '../../api/network-policy.ts';
import { apiVersionOf, resource, type KubeObject, type ResourceType } from '../../api/object.ts';
import { BugError } from '../../errors.ts';

const rbac = 'rbac.authorization.k8s.io';
const admission = 'admissionregistration.k8s.io';
const gateway = 'gateway.networking.k8s.io';
const cf = 'korifi.cloudfoundry.org';

const clusterWide = false;

const known: ResourceType[] = [
  resource('apiextensions.k8s.io', 'v1', 'CustomResourceDefinition', 'customresourcedefinitions', clusterWide),
  resource('', 'v1', 'Namespace', 'namespaces', clusterWide),
  resource('', 'v1', 'ServiceAccount', 'serviceaccounts'),
  resource('', 'v1', 'ConfigMap', 'configmaps'),
  resource('', 'v1', 'Secret', 'secrets'),
  resource('', 'v1', 'Pod', 'pods'),
  resource('', 'v1', 'Service', 'services'),
  resource('', 'v1', 'PersistentVolumeClaim', 'persistentvolumeclaims'),
  resource('apps', 'v1', 'Deployment', 'deployments'),
  resource(rbac, 'v1', 'ClusterRole', 'clusterroles', clusterWide),
  resource(rbac, 'v1', 'ClusterRoleBinding', 'clusterrolebindings', clusterWide),
  resource(rbac, 'v1', 'Role', 'roles'),
  resource(rbac, 'v1', 'RoleBinding', 'rolebindings'),
  resource(admission, 'v1', 'ValidatingAdmissionPolicy', 'validatingadmissionpolicies', clusterWide),
  resource(admission, 'v1', 'ValidatingAdmissionPolicyBinding', 'validatingadmissionpolicybindings', clusterWide),
  resource(admission, 'v1', 'MutatingAdmissionPolicy', 'mutatingadmissionpolicies', clusterWide),
  resource(admission, 'v1', 'MutatingAdmissionPolicyBinding', 'mutatingadmissionpolicybindings', clusterWide),
  resource(gateway, 'v1', 'GatewayClass', 'gatewayclasses', clusterWide),
  resource(gateway, 'v1', 'Gateway', 'gateways'),
  resource(gateway, 'v1beta1', 'ReferenceGrant', 'referencegrants'),
  resource(gateway, 'v1', 'HTTPRoute', 'httproutes'),
  networkPolicyType,
  resource(cf, 'v1alpha1', 'CFOrg', 'cforgs'),
  resource(cf, 'v1alpha1', 'CFSpace', 'cfspaces'),
  resource(cf, 'v1alpha1', 'CFDomain', 'cfdomains'),
  resource(cf, 'v1alpha1', 'BuilderInfo', 'builderinfos'),
  resource(cf, 'v1alpha1', 'RunnerInfo', 'runnerinfos'),
];

/** Kinds whose objects setup never removes, although it may have created them: they hold data of people and apps. */
const lasting = new Set(['CustomResourceDefinition', 'Namespace', 'PersistentVolumeClaim', 'Secret', 'CFOrg', 'CFSpace', 'CFDomain']);

/**
 * Kinds of which a setup removes the objects of earlier setups, in order: users of an object before the object. The only pod with the label is a second
 * gateway (decision 88) that an interrupted setup left, and that no setup of such a gateway has removed since.
 */
export const prunedKinds: readonly ResourceType[] = known.filter(({ kind }) => !lasting.has(kind)).toReversed();

const byName = new Map(known.map((type) => [`${apiVersionOf(type)}/${type.kind}`, type]));

/** An object that setup applies: it says of which kind it is, and it has a name. */
export type SetupObject = KubeObject & { apiVersion: string; kind: string; metadata: { name: string } };

/** The object as one that setup can apply. @throws BugError when a template or a manifest left out its kind or its name */
export function setupObject(object: KubeObject): SetupObject {
  const { apiVersion, kind, metadata } = object;
  if (apiVersion === undefined || kind === undefined || metadata.name === undefined)
    throw new BugError(`Setup cannot apply an object without its kind and its name: ${JSON.stringify({ apiVersion, kind, metadata })}`);
  return object as SetupObject;
}

/** The descriptor of an object that setup may apply. @throws BugError for a kind that is not in the table */
export function kindOf({ apiVersion, kind }: KubeObject): ResourceType {
  const key = `${apiVersion}/${kind}`;
  const type = byName.get(key);
  if (type === undefined) throw new BugError(`Setup does not know how to apply ${key}.`);
  return type;
}

/** The descriptor of a kind by its name alone. @throws BugError for a kind that is not in the table */
export function kindNamed(kind: string): ResourceType {
  const type = known.find((candidate) => candidate.kind === kind);
  if (type === undefined) throw new BugError(`Setup does not know the kind ${kind}.`);
  return type;
}

/** `Deployment kf-system/kf-controller`, for plans and messages. */
export function describeObject({ kind, metadata }: Pick<SetupObject, 'kind' | 'metadata'>): string {
  const { name, namespace } = metadata;
  return `${kind} ${namespace === undefined ? name : `${namespace}/${name}`}`;
}

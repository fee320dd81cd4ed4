// The namespaces of orgs and spaces, and the service accounts of apps and tasks.

import type { Stored } from '../lib/api/object.ts';
import type { Namespace, ServiceAccount } from '../lib/api/core.ts';
import { annotations, labels } from '../lib/api/group.ts';
import { sha224 } from '../lib/api/names.ts';
import { isSshEnabled } from '../lib/api/ssh.ts';
import type { CFOrg, CFSpace } from '../lib/api/types.generated.ts';

const podSecurity = { 'pod-security.kubernetes.io/enforce': 'restricted', 'pod-security.kubernetes.io/audit': 'restricted' };

function namespace(name: string, marks: Record<string, string>, notes: Record<string, string>): Namespace {
  return {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name, labels: { ...podSecurity, [labels.managedBy]: 'kf', ...marks }, annotations: notes },
  };
}

/** The namespace of an org, with the same labels and annotations as in Korifi. */
export function orgNamespace(org: Stored<CFOrg>): Namespace {
  const name = org.metadata.name;
  const marks = { [labels.orgName]: sha224(org.spec.displayName), [labels.orgGuid]: name };
  return namespace(name, marks, { [annotations.orgName]: org.spec.displayName });
}

/** `org` is the CFOrg of the space; without it the label with the org's name is left out. */
export function spaceNamespace(space: Stored<CFSpace>, org: Stored<CFOrg> | undefined): Namespace {
  const name = space.metadata.name;
  const marks = {
    [labels.spaceName]: sha224(space.spec.displayName),
    [labels.spaceGuid]: name,
    [labels.orgGuid]: space.metadata.namespace,
    [labels.ssh]: isSshEnabled(space) ? 'enabled' : 'disabled',
  };
  const orgName = org === undefined ? {} : { [annotations.orgName]: org.spec.displayName };
  return namespace(name, marks, { [annotations.spaceName]: space.spec.displayName, ...orgName });
}

/** Korifi's service accounts; neither gets a token of the API server. */
export const spaceAccounts = ['korifi-app', 'korifi-task'] as const;

export function spaceAccount(name: string, ns: string): ServiceAccount {
  return {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { name, namespace: ns, labels: { [labels.managedBy]: 'kf' } },
    automountServiceAccountToken: false,
  };
}

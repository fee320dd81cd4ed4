// What a controller that runs as a process needs from the API server: its account, its rights, and its configuration.

export const controllerAccount = { kind: 'ServiceAccount', name: 'kf-controller', namespace: 'kf-system' };

const rbac = 'rbac.authorization.k8s.io';

/** Binds a ClusterRole to a subject, in one namespace or in all. `suffix` makes the name of the binding unique. */
export function roleBinding(
  role: string,
  subject: object,
  { suffix, namespace }: { suffix: string; namespace?: string | undefined },
): object {
  return {
    apiVersion: `${rbac}/v1`,
    kind: namespace === undefined ? 'ClusterRoleBinding' : 'RoleBinding',
    metadata: { name: `${role}-${suffix}`, ...(namespace === undefined ? {} : { namespace }) },
    roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: role },
    subjects: [subject],
  };
}

/** The content of kf-info for a controller whose registry, builder and gateway do not exist. */
export const infoOf = (root: string): object => ({
  format: 1,
  controller: { version: '0.1.0', namespace: 'kf-system' },
  registry: { namespace: 'kf-system', service: 'kf-registry', port: 5000, pushHost: 'registry.invalid', pullPrefix: 'registry.invalid/' },
  builder: { name: 'kf-builder', image: 'builder' },
  defaultDomain: 'apps.localhost',
  gateway: { namespace: 'kf-node', name: 'kf', features: [] },
  processDefaults: { memoryMB: 64, diskQuotaMB: 64 },
  staging: { memoryMB: 64, diskMB: 64 },
  root,
});

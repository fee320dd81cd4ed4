// Every command of the cf CLI: the entries of help, the aliases, and alternatives for those that kf does not have yet.

/**
 * Name, alias; for a command that kf does not have: its label in help and the alternative. Both are empty for a command of kf, whose own summary
 * is the label.
 */
export type CfCommand = readonly [name: string, alias: string, label: string, instead: string];

/** By the headings of `cf help -a`, in its order. */
export const cfCommands: Readonly<Record<string, readonly CfCommand[]>> = {
  'GETTING STARTED': [
    ['help', 'h', 'show help', ''],
    ['version', '', 'show version', ''],
    ['login', 'l', '', ''],
    ['logout', 'lo', '', ''],
    ['passwd', 'pw', 'change own password', 'change the credentials where your kubeconfig gets them'],
    ['target', 't', '', ''],
    ['api', '', '', ''],
    ['auth', '', '', ''],
  ],
  APPS: [
    ['apps', 'a', '', ''],
    ['app', '', '', ''],
    ['create-app', '', '', ''],
    ['push', 'p', '', ''],
    ['scale', '', '', ''],
    ['delete', 'd', '', ''],
    ['rename', '', '', ''],
    ['cancel-deployment', '', '', ''],
    ['continue-deployment', '', '', ''],
    ['start', 'st', '', ''],
    ['stop', 'sp', '', ''],
    ['restart', 'rs', '', ''],
    ['stage-package', 'stage', '', ''],
    ['restage', 'rg', '', ''],
    ['restart-app-instance', '', '', ''],
    ['run-task', 'rt', '', ''],
    ['task', '', '', ''],
    ['tasks', '', '', ''],
    ['terminate-task', '', '', ''],
    ['packages', '', '', ''],
    ['create-package', '', '', ''],
    ['revision', '', '', ''],
    ['revisions', '', '', ''],
    ['rollback', '', '', ''],
    ['droplets', '', '', ''],
    ['set-droplet', '', '', ''],
    ['download-droplet', '', '', ''],
    ['events', '', '', ''],
    ['logs', '', '', ''],
    ['env', 'e', '', ''],
    ['set-env', 'se', '', ''],
    ['unset-env', 'ue', '', ''],
    ['stacks', '', '', ''],
    ['stack', '', '', ''],
    ['update-stack', '', 'update stack', 'kubectl get builderinfos -n cf -o yaml'],
    ['copy-source', '', '', ''],
    ['create-app-manifest', '', '', ''],
    ['get-health-check', '', '', ''],
    ['set-health-check', '', '', ''],
    ['get-readiness-health-check', '', '', ''],
    ['enable-ssh', '', '', ''],
    ['disable-ssh', '', '', ''],
    ['ssh-enabled', '', '', ''],
    ['ssh', '', '', ''],
  ],
  SERVICES: [
    ['marketplace', 'm', 'list service offerings', 'kf create-user-provided-service for what runs elsewhere'],
    ['services', 's', '', ''],
    ['service', '', '', ''],
    ['create-service', 'cs', 'create service', 'kf create-user-provided-service NAME -p CREDENTIALS'],
    ['update-service', '', 'update service', 'kf delete-service, then create it again'],
    ['upgrade-service', '', 'upgrade service', 'kf services'],
    ['delete-service', 'ds', '', ''],
    ['rename-service', '', '', ''],
    ['create-service-key', 'csk', 'create service key', 'kf env of an app that is bound'],
    ['service-keys', 'sk', 'service keys', 'kf env of an app that is bound'],
    ['service-key', '', 'service key', 'kf env of an app that is bound'],
    ['delete-service-key', 'dsk', 'delete service key', 'kf unbind-service APP SERVICE_INSTANCE'],
    ['bind-service', 'bs', '', ''],
    ['unbind-service', 'us', '', ''],
    ['cleanup-outdated-service-bindings', '', 'prune old bindings', 'kf unbind-service APP SERVICE_INSTANCE'],
    ['bind-route-service', 'brs', 'bind route service', 'an HTTPRoute filter of your gateway'],
    ['unbind-route-service', 'urs', 'unbind route service', 'an HTTPRoute filter of your gateway'],
    ['create-user-provided-service', 'cups', '', ''],
    ['update-user-provided-service', 'uups', '', ''],
    ['share-service', '', 'share service', 'kf create-user-provided-service in the other space'],
    ['unshare-service', '', 'unshare service', 'kf delete-service in the other space'],
  ],
  ORGS: [
    ['orgs', 'o', '', ''],
    ['org', '', '', ''],
    ['create-org', 'co', '', ''],
    ['delete-org', '', '', ''],
    ['rename-org', '', '', ''],
  ],
  SPACES: [
    ['spaces', '', '', ''],
    ['space', '', '', ''],
    ['create-space', 'csp', '', ''],
    ['delete-space', '', '', ''],
    ['rename-space', '', '', ''],
    ['apply-manifest', '', '', ''],
    ['allow-space-ssh', '', '', ''],
    ['disallow-space-ssh', '', '', ''],
    ['space-ssh-allowed', '', '', ''],
  ],
  DOMAINS: [
    ['domains', '', '', ''],
    ['create-private-domain', 'create-domain', '', ''],
    ['delete-private-domain', 'delete-domain', '', ''],
    ['create-shared-domain', '', '', ''],
    ['delete-shared-domain', '', '', ''],
    ['router-groups', '', 'router groups', 'kubectl get gateways -A'],
  ],
  ROUTES: [
    ['routes', 'r', '', ''],
    ['route', 'ro', '', ''],
    ['create-route', '', '', ''],
    ['update-route', '', '', ''],
    ['check-route', '', '', ''],
    ['map-route', '', '', ''],
    ['unmap-route', '', '', ''],
    ['delete-route', '', '', ''],
    ['delete-orphaned-routes', '', '', ''],
    ['update-destination', '', '', ''],
    ['share-route', '', '', ''],
    ['unshare-route', '', '', ''],
    ['move-route', '', '', ''],
    ['route-policies', '', 'route policies', 'kf routes, kf map-route, kf unmap-route'],
    ['add-route-policy', '', 'add route policy', 'kf routes, kf map-route, kf unmap-route'],
    ['remove-route-policy', '', 'remove route policy', 'kf routes, kf map-route, kf unmap-route'],
  ],
  'NETWORK POLICIES': [
    ['network-policies', '', '', ''],
    ['add-network-policy', '', '', ''],
    ['remove-network-policy', '', '', ''],
  ],
  BUILDPACKS: [
    ['buildpacks', '', '', ''],
    ['create-buildpack', '', 'create buildpack', 'another builder: images.builder in setup.yaml, then kf setup'],
    ['update-buildpack', '', 'update buildpack', 'another builder: images.builder in setup.yaml, then kf setup'],
    ['delete-buildpack', '', 'delete buildpack', 'another builder: images.builder in setup.yaml, then kf setup'],
  ],
  'USER ADMIN': [
    [
      'create-user',
      '',
      'create user',
      'users are those of the cluster and need no creation: kf set-space-role USER ORG SPACE SpaceDeveloper gives one a role',
    ],
    [
      'delete-user',
      '',
      'delete user',
      'users are those of the cluster: kf unset-space-role USER ORG SPACE ROLE and kf unset-org-role take the roles away',
    ],
    ['org-users', '', '', ''],
    ['set-org-role', '', '', ''],
    ['unset-org-role', '', '', ''],
    ['space-users', '', '', ''],
    ['set-space-role', '', '', ''],
    ['unset-space-role', '', '', ''],
  ],
  'ORG ADMIN': [
    ['org-quotas', 'quotas', '', ''],
    ['org-quota', 'quota', '', ''],
    ['set-org-quota', 'set-quota', '', ''],
    ['create-org-quota', 'create-quota', '', ''],
    ['delete-org-quota', 'delete-quota', '', ''],
    ['update-org-quota', 'update-quota', '', ''],
    ['share-private-domain', '', '', ''],
    ['unshare-private-domain', '', '', ''],
  ],
  'SPACE ADMIN': [
    ['space-quotas', '', '', ''],
    ['space-quota', '', '', ''],
    ['create-space-quota', '', '', ''],
    ['update-space-quota', '', '', ''],
    ['delete-space-quota', '', '', ''],
    ['set-space-quota', '', '', ''],
    ['unset-space-quota', '', '', ''],
  ],
  'SERVICE ADMIN': [
    ['service-brokers', '', 'service brokers', 'kf create-user-provided-service'],
    ['create-service-broker', 'csb', 'register broker', 'kf create-user-provided-service'],
    ['update-service-broker', '', 'update service broker', 'kf create-user-provided-service'],
    ['delete-service-broker', '', 'delete service broker', 'kf create-user-provided-service'],
    ['rename-service-broker', '', 'rename service broker', 'kf create-user-provided-service'],
    ['purge-service-offering', '', 'purge service offering', 'kf create-user-provided-service'],
    ['purge-service-instance', '', 'purge service instance', 'kf create-user-provided-service'],
    ['service-access', '', 'plan visibility', 'kf create-user-provided-service'],
    ['enable-service-access', '', 'grant plan access', 'kf create-user-provided-service'],
    ['disable-service-access', '', 'revoke plan access', 'kf create-user-provided-service'],
  ],
  'SECURITY GROUP': [
    ['security-group', '', 'show ASG', "kubectl with NetworkPolicies in the space's namespace"],
    ['security-groups', '', 'list ASGs', "kubectl with NetworkPolicies in the space's namespace"],
    ['create-security-group', '', 'create security group', "kubectl with NetworkPolicies in the space's namespace"],
    ['update-security-group', '', 'update security group', "kubectl with NetworkPolicies in the space's namespace"],
    ['delete-security-group', '', 'delete security group', "kubectl with NetworkPolicies in the space's namespace"],
    ['bind-security-group', '', 'bind security group', "kubectl with NetworkPolicies in the space's namespace"],
    ['unbind-security-group', '', 'unbind security group', "kubectl with NetworkPolicies in the space's namespace"],
    ['bind-staging-security-group', '', 'bind staging ASG', "kubectl with NetworkPolicies in the space's namespace"],
    ['staging-security-groups', '', 'list staging ASGs', "kubectl with NetworkPolicies in the space's namespace"],
    ['unbind-staging-security-group', '', 'unbind staging ASG', "kubectl with NetworkPolicies in the space's namespace"],
    ['bind-running-security-group', '', 'bind running ASG', "kubectl with NetworkPolicies in the space's namespace"],
    ['running-security-groups', '', 'list running ASGs', "kubectl with NetworkPolicies in the space's namespace"],
    ['unbind-running-security-group', '', 'unbind running ASG', "kubectl with NetworkPolicies in the space's namespace"],
  ],
  'ENVIRONMENT VARIABLE GROUPS': [
    ['running-environment-variable-group', 'revg', 'show running group', 'kf set-env per app'],
    ['staging-environment-variable-group', 'sevg', 'show staging group', 'kf set-env per app'],
    ['set-staging-environment-variable-group', 'ssevg', 'set staging group', 'kf set-env per app'],
    ['set-running-environment-variable-group', 'srevg', 'set running group', 'kf set-env per app'],
  ],
  'ISOLATION SEGMENTS': [
    ['isolation-segments', '', 'isolation segments', 'node selectors and taints of the cluster'],
    ['create-isolation-segment', '', 'create isolation segment', 'node selectors and taints of the cluster'],
    ['delete-isolation-segment', '', 'delete isolation segment', 'node selectors and taints of the cluster'],
    ['enable-org-isolation', '', 'enable org isolation', 'node selectors and taints of the cluster'],
    ['disable-org-isolation', '', 'disable org isolation', 'node selectors and taints of the cluster'],
    ['set-org-default-isolation-segment', '', 'org default segment', 'node selectors and taints of the cluster'],
    ['reset-org-default-isolation-segment', '', 'clear org segment', 'node selectors and taints of the cluster'],
    ['set-space-isolation-segment', '', 'set space segment', 'node selectors and taints of the cluster'],
    ['reset-space-isolation-segment', '', 'clear space segment', 'node selectors and taints of the cluster'],
  ],
  'FEATURE FLAGS': [
    ['feature-flags', '', '', ''],
    ['feature-flag', '', '', ''],
    ['enable-feature-flag', '', '', ''],
    ['disable-feature-flag', '', '', ''],
  ],
  METADATA: [
    ['labels', '', '', ''],
    ['set-label', '', '', ''],
    ['unset-label', '', '', ''],
  ],
  ADVANCED: [
    ['curl', '', '', ''],
    ['config', '', '', ''],
    ['oauth-token', '', 'print bearer token', 'kubectl create token, or the exec plugin of your kubeconfig'],
    ['ssh-code', '', 'one-time SSH passcode', 'kubectl exec -it -n SPACE_GUID POD -- /bin/sh'],
  ],
  'ADD/REMOVE PLUGIN REPOSITORY': [
    ['add-plugin-repo', '', 'add plugin repo', 'kf install-plugin NPM_PACKAGE: plugins come from npm'],
    ['remove-plugin-repo', '', 'remove plugin repo', 'kf install-plugin NPM_PACKAGE: plugins come from npm'],
    ['list-plugin-repos', '', 'list plugin repos', 'kf install-plugin NPM_PACKAGE: plugins come from npm'],
    ['repo-plugins', '', 'list repo plugins', 'kf install-plugin NPM_PACKAGE: plugins come from npm'],
  ],
  'ADD/REMOVE PLUGIN': [
    ['plugins', '', '', ''],
    ['install-plugin', '', '', ''],
    ['uninstall-plugin', '', '', ''],
  ],
};

/** Commands that only kf has. */
export const kfCommands: readonly CfCommand[] = [
  ['setup', '', '', ''],
  ['rotate', '', '', ''],
  ['prune', '', '', ''],
  ['rebuild', '', '', ''],
  ['ca-certificate', '', '', ''],
  ['migrate', '', '', ''],
  ['uninstall', '', '', ''],
  ['completion', '', '', ''],
  ['open', '', '', ''],
  ['why', '', '', ''],
  ['autoscale', '', '', ''],
  ['releases', '', '', ''],
  ['diff', '', '', ''],
];

/** The command of that name or alias, with its heading. */
export function findCommand(nameOrAlias: string): { group: string; command: CfCommand } | undefined {
  for (const [group, commands] of Object.entries({ ...cfCommands, KF: kfCommands })) {
    const command = commands.find(([name, alias]) => name === nameOrAlias || (alias !== '' && alias === nameOrAlias));
    if (command !== undefined) return { group, command };
  }
  return undefined;
}

/** True for the name or alias of a command that kf has. */
export function isKfCommand(nameOrAlias: string): boolean {
  const [, , , instead] = findCommand(nameOrAlias)?.command ?? [];
  return instead === '';
}

/** All names and aliases, for "did you mean". */
export function allNames(): string[] {
  return [...Object.values(cfCommands), kfCommands].flat().flatMap(([name, alias]) => (alias === '' ? [name] : [name, alias]));
}

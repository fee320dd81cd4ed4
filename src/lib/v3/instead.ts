// What to use for requests of the v3 API that kf does not answer.

interface Instead {
  method?: RegExp;
  path: RegExp;
  instead: string;
}

const guid = '[^/]+';
const at = (path: string): RegExp => new RegExp(`^/v3/${path.replaceAll(':guid', guid)}(/|$)`);
const post = /^POST$/;
const remove = /^DELETE$/;
const change = /^(POST|PATCH|PUT|DELETE)$/;

/** The first that fits counts. Each names a command of kf, or who does it. */
const table: readonly Instead[] = [
  { method: post, path: /^\/v3\/apps$/, instead: 'kf create-app APP_NAME' },
  { path: at('apps/:guid/manifest'), instead: 'kf app APP_NAME --json' },
  { method: post, path: at('apps/:guid/tasks'), instead: 'kf run-task APP_NAME --command COMMAND' },
  { path: at('apps/:guid/actions/clear_buildpack_cache'), instead: 'kf restage APP_NAME' },
  { path: at('apps/:guid/relationships/current_droplet'), instead: 'kf push APP_NAME' },
  { method: change, path: at('(processes|apps/:guid/processes)/:guid'), instead: 'kf set-health-check APP_NAME, or kf push APP_NAME' },
  { path: at('(builds|packages|droplets|resource_matches)'), instead: 'kf push APP_NAME' },
  { path: at('deployments'), instead: 'kf push APP_NAME, kf restart APP_NAME, or kf rollback APP_NAME --version N' },
  { path: at('revisions'), instead: 'kf revision APP_NAME --version N' },
  { method: post, path: /^\/v3\/routes$/, instead: 'kf create-route DOMAIN --hostname HOST' },
  { method: remove, path: at('routes/:guid/destinations'), instead: 'kf unmap-route APP_NAME DOMAIN --hostname HOST' },
  { method: remove, path: /^\/v3\/spaces\/[^/]+\/routes$/, instead: 'kf delete-orphaned-routes' },
  { path: at('routes/:guid/relationships/space'), instead: 'kf move-route DOMAIN --hostname HOST -s SPACE' },
  { path: at('routes'), instead: 'kf map-route APP_NAME DOMAIN --hostname HOST' },
  { method: post, path: at('organizations'), instead: 'kf create-org ORG' },
  { method: post, path: at('spaces/:guid/actions/apply_manifest'), instead: 'kf push -f MANIFEST' },
  { method: post, path: at('spaces'), instead: 'kf create-space SPACE' },
  { method: post, path: at('domains'), instead: 'kf create-shared-domain DOMAIN, or kf create-private-domain ORG DOMAIN' },
  { method: change, path: at('domains'), instead: 'kf delete-shared-domain DOMAIN, or kf delete-private-domain DOMAIN' },
  { method: change, path: at('roles'), instead: 'kf set-org-role USERNAME ORG ROLE, or kf set-space-role USERNAME ORG SPACE ROLE' },
  { path: at('users'), instead: 'kubectl: the users are those of the cluster' },
  { method: post, path: at('organization_quotas/:guid/relationships'), instead: 'kf set-org-quota ORG QUOTA' },
  {
    method: change,
    path: at('organization_quotas'),
    instead: 'kf create-org-quota QUOTA, kf update-org-quota QUOTA, or kf delete-org-quota QUOTA',
  },
  {
    method: change,
    path: at('space_quotas/:guid/relationships'),
    instead: 'kf set-space-quota SPACE QUOTA, or kf unset-space-quota SPACE QUOTA',
  },
  {
    method: change,
    path: at('space_quotas'),
    instead: 'kf create-space-quota QUOTA, kf update-space-quota QUOTA, or kf delete-space-quota QUOTA',
  },
  { path: at('(service_offerings|service_plans|service_brokers)'), instead: 'kf create-user-provided-service SERVICE_INSTANCE' },
  { path: at('service_instances/:guid/parameters'), instead: 'kf env APP_NAME' },
  { path: at('service_instances'), instead: 'kf create-user-provided-service SERVICE_INSTANCE' },
  { path: at('service_route_bindings'), instead: 'kf services' },
  { method: remove, path: at('service_credential_bindings'), instead: 'kf unbind-service APP_NAME SERVICE_INSTANCE' },
  { path: at('service_credential_bindings'), instead: 'kf bind-service APP_NAME SERVICE_INSTANCE' },
  { path: at('security_groups'), instead: 'kf setup: appEgress in setup.yaml says where apps may connect to' },
  { path: at('environment_variable_groups'), instead: 'kf set-env APP_NAME NAME VALUE' },
  { method: change, path: at('feature_flags'), instead: 'kf enable-feature-flag FEATURE_NAME, or kf disable-feature-flag FEATURE_NAME' },
  { path: at('isolation_segments'), instead: 'kubectl: labels and taints of nodes' },
  { path: at('(audit_events|app_usage_events|service_usage_events)'), instead: 'kf events APP_NAME' },
  { path: at('apps/:guid/(actions|relationships)'), instead: 'kf push APP_NAME, or kf restart APP_NAME' },
  { path: at('(buildpacks|stacks)'), instead: 'kf setup: images.builder in setup.yaml names the builder' },
  { path: at('sidecars'), instead: 'kf push APP_NAME' },
  { path: /^\/(api\/v1\/read|read)\//, instead: 'kf logs APP_NAME --recent' },
  { path: /^\/v2(\/|$)/, instead: 'kf curl /v3: the API has no version 2 any more' },
];

/** What does this request's work, as the end of a sentence; undefined when nothing is known. */
export function insteadOf(method: string, path: string): string | undefined {
  return table.find((entry) => entry.path.test(path) && entry.method?.test(method) !== false)?.instead;
}

/** All answers, for the test that compares them with kf's commands. */
export const allInstead: readonly string[] = table.map(({ instead }) => instead);

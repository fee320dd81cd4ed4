// Flags of cf v8 that kf's commands do not have yet, each with the way out meanwhile. Loaded only when a command line names an unknown flag.

const rollout = {
  'instance-steps': 'a rolling update goes on by itself once the new instances serve',
  'max-in-flight': 'one instance is replaced at a time',
};
const quota = 'kubectl edit resourcequota kf-limits -n GUID';
const labels = 'kubectl get COMMAND -l SELECTOR in the namespace of the space or org';

/** By command, then by the flag as it is typed without its dashes. */
export const cfFlagsToCome: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  login: {
    'skip-ssl-validation': 'the kubeconfig says how the server is verified',
    sso: 'the kubeconfig says how a credential is got, for example by an exec plugin',
    'sso-passcode': 'the kubeconfig says how a credential is got, for example by an exec plugin',
    origin: 'kf auth USER takes another user of the kubeconfig',
  },
  auth: {
    'client-credentials': 'a user of the kubeconfig with a token',
    origin: 'kf auth USER takes another user of the kubeconfig',
    assertion: 'a user of the kubeconfig with an exec plugin',
  },
  apps: { labels: labels.replace('COMMAND', 'cfapps') },
  orgs: { labels: labels.replace('COMMAND', 'cforgs') },
  spaces: { labels: labels.replace('COMMAND', 'cfspaces') },
  domains: { labels: labels.replace('COMMAND', 'cfdomains') },
  routes: { labels: labels.replace('COMMAND', 'cfroutes'), 'org-level': 'kf target -s SPACE, then kf routes, for each space' },
  push: {
    ...rollout,
    'docker-username': 'an image that the nodes may pull without a user',
    droplet: 'kf push APP --docker-image IMAGE, or the source of that droplet',
    lifecycle: 'source is built with Cloud Native Buildpacks, --docker-image is run as it is',
    'log-rate-limit': 'logs have no limit',
    l: 'logs have no limit',
    'redact-env': 'kf prints no values of the environment while it pushes',
    task: 'a process type of its own in the Procfile: kf scale APP --process TYPE -i 1',
  },
  scale: { l: 'logs have no limit' },
  restart: rollout,
  restage: rollout,
  'bind-service': {
    c: 'bindings of user-provided services take no parameters',
    strategy: 'kf unbind-service, then kf bind-service again',
  },
  'unbind-service': { guid: 'kf unbind-service APP SERVICE_INSTANCE' },
  'create-org': { quota, q: quota },
  'create-space': { quota, q: quota },
  'map-route': { port: 'HTTP routes only', option: 'what the gateway does by itself', o: 'what the gateway does by itself' },
  'unmap-route': { port: 'HTTP routes only' },
};

// Flags of cf that kf's commands do not have, each with an alternative. Loaded only for a command line with an unknown flag.

import { KfError } from '../errors.ts';
import { noDockerfiles } from '../dockerfile.ts';
import { notThereYet } from './usage.ts';

/** A flag that kf will never have: where kf decides this, and the command for it. */
interface Elsewhere {
  because: string;
  hint: string;
}

const evenly = 'the gateway spreads requests evenly over the instances';
const httpOnly = (command: string): string => `kf has HTTP routes only: kf ${command} DOMAIN -n HOST --path PATH`;
const noLogRate = 'logs have no rate limit';
const credentials: Elsewhere = {
  because: 'the kubeconfig says where credentials come from, for example from an exec plugin',
  hint: 'kubectl config set-credentials USER --exec-command=COMMAND --exec-api-version=client.authentication.k8s.io/v1',
};

const roleUsers = {
  client: {
    because: 'a service account is named like a user',
    hint: 'system:serviceaccount:NAMESPACE:NAME in place of USERNAME',
  },
  origin: { because: 'a user is whoever the API server calls by that name', hint: 'kubectl auth whoami prints the name of a user' },
};
const ofBuilder: Elsewhere = { because: 'stacks and buildpacks are those of the builder, which has no labels', hint: 'kf buildpacks' };

const ofBroker: Elsewhere = {
  because: 'kf has user-provided services only, which have no offering and no broker',
  hint: 'kf labels service-instance NAME',
};
/** Flags of the commands about labels: they tell resources apart that kf does not have. */
const ofLabels = {
  ...{ stack: ofBuilder, s: ofBuilder, lifecycle: ofBuilder, l: ofBuilder },
  ...{ broker: ofBroker, b: ofBroker, offering: ofBroker, e: ofBroker },
};

/** Flags of cf v6, which manifests have replaced. */
const named: Elsewhere = {
  because: "routes are named in the manifest, or mapped by 'map-route'",
  hint: 'kf push APP --no-route, then kf map-route APP DOMAIN -n HOST',
};

/** By command, then by the typed flag without its dashes; a text is the alternative until kf has the flag. */
export const cfFlags: Readonly<Record<string, Readonly<Record<string, string | Elsewhere>>>> = {
  plugins: { checksum: 'npm view PLUGIN dist.integrity', outdated: 'npm outdated in the folder of the plugins' },
  'install-plugin': { r: 'kf install-plugin NPM_PACKAGE: plugins come from npm' },
  login: { sso: credentials, 'sso-passcode': credentials },
  auth: { assertion: credentials },
  space: { 'security-group-rules': 'kubectl get networkpolicies -n SPACE_GUID -o yaml (kf space SPACE --guid prints the GUID)' },
  ...{ labels: ofLabels, 'set-label': ofLabels, 'unset-label': ofLabels },
  stacks: { labels: ofBuilder },
  buildpacks: { labels: ofBuilder },
  push: {
    dockerfile: noDockerfiles,
    droplet: 'kf push APP --docker-image IMAGE, or the source of that droplet',
    lifecycle: 'source is built with Cloud Native Buildpacks, --docker-image is run as it is',
    'log-rate-limit': noLogRate,
    l: noLogRate,
    ...{ hostname: named, n: named, 'no-hostname': named, 'route-path': named, d: named },
    task: 'a process type of its own in the Procfile, and kf scale APP --process TYPE -i 1',
  },
  scale: { l: noLogRate },
  'run-task': { l: noLogRate },
  'bind-service': {
    c: 'bindings of user-provided services take no parameters',
    strategy: 'kf unbind-service, then kf bind-service again',
  },
  'unbind-service': { guid: 'kf unbind-service APP SERVICE_INSTANCE' },
  service: { params: { because: 'user-provided services have no parameters', hint: 'kf env APP, for the credentials of a bound app' } },
  ...{ 'set-org-role': roleUsers, 'unset-org-role': roleUsers, 'set-space-role': roleUsers, 'unset-space-role': roleUsers },
  'map-route': {
    port: 'kf has HTTP routes only: kf map-route APP DOMAIN -n HOST --path PATH',
    ...{ option: evenly, o: evenly },
  },
  'create-shared-domain': {
    'router-group': 'one gateway serves all domains',
  },
  'create-route': { port: httpOnly('create-route'), option: evenly, o: evenly },
  'check-route': { port: httpOnly('check-route') },
  route: { port: httpOnly('route') },
  'delete-route': { port: httpOnly('delete-route') },
  'unmap-route': { port: 'kf has HTTP routes only: kf unmap-route APP DOMAIN -n HOST --path PATH' },
};

/** Commands that took one argument more in an older version of cf, or to which users often give one, with the present form. */
export const formerArguments: Readonly<Record<string, string>> = {
  'run-task': 'kf run-task APP_NAME --command COMMAND',
  ssh: 'kf ssh APP_NAME -c COMMAND',
  'create-route': 'kf create-route DOMAIN -n HOST: the space is the targeted one',
  'check-route': 'kf check-route DOMAIN -n HOST',
};

/** The error for a flag that cf has and kf does not; undefined for a flag that cf does not have either. @param typed without its dashes */
export function cfFlagError(command: string, typed: string): KfError | undefined {
  const found = cfFlags[command]?.[typed];
  if (found === undefined) return undefined;
  const flag = typed.length === 1 ? `-${typed}` : `--${typed}`;
  const subject = `'${flag}' of '${command}'`;
  if (typeof found === 'string') return notThereYet(subject, found, { flag });
  return new KfError('usage', `${subject} has no effect in kf: ${found.because}.`, { hints: [found.hint], details: { flag } });
}

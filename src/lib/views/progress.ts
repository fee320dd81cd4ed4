// The sentences for the progress events of ops.

import { webProcess } from '../api/app.ts';
import { counted, formatBytes } from '../api/sizes.ts';
import type { ByteProgress, GatewayFinding, InstallStep, OpEvent } from '../events.ts';
import { deploymentLines } from './apps.ts';

/** The output of an event, in this order. */
export type Shown =
  /** A line of cf's text. */
  | { say: string }
  /** The current step, which replaces the previous one. */
  | { step: string }
  | { bytes: ByteProgress }
  /** A line of a build's log. */
  | { log: string }
  | { warn: string }
  /** Ends the step. */
  | { done: true };

const say = (...lines: string[]): Shown[] => lines.map((line) => ({ say: line }));
const step = (text: string): Shown[] => [{ step: text }];
const warn = (text: string): Shown[] => [{ warn: text }];

const installSteps: Record<InstallStep, string> = {
  inspect: 'Looking at the cluster',
  plan: 'Planning',
  namespaces: 'Creating the namespaces',
  registry: 'Installing the registry',
  'registry-proof': 'Checking that nodes can pull what was pushed',
  kinds: 'Installing the custom resource definitions',
  controller: 'Installing the controller',
  gateway: 'Installing the gateway',
  'gateway-handover': 'Starting a second gateway, which answers while the first one is replaced',
  org: 'Creating the default domain and org',
  space: 'Creating the default space',
  'network-proof': 'Checking whether the network enforces NetworkPolicies',
  'gateway-proof': 'Sending a request through the gateway',
  'remove-programs': 'Removing gateway, controller and registry',
  'remove-kinds': 'Removing policies, namespaces and custom resource definitions',
  'remove-controller': 'Removing the controller; apps, registry and gateway stay',
};

const directly: Record<Extract<OpEvent, { type: 'acted-directly' }>['what'], string> = {
  stopped: 'the instances were stopped directly.',
  started: 'the last version was started directly.',
  restarted: 'the instances were restarted directly, as the version that ran.',
  scaled: 'the instances were scaled directly.',
};

const largeBytes = 1024 ** 3;

/** Advice for a source so large that most of it is probably not part of the app. */
function sizeAdvice(files: number, bytes: number): Shown[] {
  if (bytes < largeBytes) return [];
  const size = `${formatBytes(bytes)} in ${counted(files, 'file')}`;
  return warn(`The folder has ${size}; what the app does not need can be named in a file .cfignore.`);
}

const readyOf = (ready = 0, wanted = 0): string => (wanted > 0 ? ` (${ready} of ${wanted} ready)` : '');

function scaling(running: number, wanted: number): string {
  return running > wanted
    ? `Instances stopping... (${running - wanted} more than ${wanted})`
    : `Instances starting... (${running} of ${wanted} running)`;
}

function noWebProcess({ app, found, push, isPushed }: Extract<OpEvent, { type: 'no-web-process' }>, bin: string): Shown[] {
  // A user who has not just pushed also needs the place.
  const where = isPushed ? '' : ", in the folder of the app's source,";
  const first = found[0] ?? '';
  return [
    ...warn(`The build found no process 'web', only: ${found.join(', ')}. No web instance is started; \`${push}\`${where} starts one.`),
    ...warn(`To start process '${first}': \`${bin} scale ${app} --process ${first} -i 1\`.`),
  ];
}

function endingOnlyInstance({ app, process }: Extract<OpEvent, { type: 'ending-only-instance' }>): Shown[] {
  const [who, does] = process === webProcess ? [`app '${app}'`, 'answer'] : [`process '${process}' of app '${app}'`, 'run'];
  return warn(`The controller does not answer, and ${who} has one instance: it does not ${does} until that instance is ready again.`);
}

const takesRoutes = ({ namespace, name }: GatewayFinding): string => `The Gateway '${namespace}/${name}' takes routes of`;
const listenerAdvice = ({ label }: GatewayFinding): string =>
  `Let its listeners take routes of the namespaces with the label ${label} only (allowedRoutes.namespaces, from: Selector).`;

type Renderers = { [T in OpEvent['type']]: (event: Extract<OpEvent, { type: T }>, bin: string) => Shown[] };

/** One renderer for every type of event; the compiler finds a missing one. */
const renderers: Renderers = {
  'manifest-applied': () => say('Manifest applied'),
  'stack-replaced': ({ app, stack, builtOn }) =>
    warn(`App '${app}' names the stack '${stack}' of Cloud Foundry; it is built on '${builtOn}' here.`),
  'awaiting-other-push': () => step('Waiting for another push that writes its settings'),
  'reading-source': () => step('Reading files'),
  packaging: ({ files, bytes }) => [
    ...say('Packaging files to upload...'),
    ...sizeAdvice(files, bytes),
    ...step(`Packing ${counted(files, 'file')}`),
  ],
  uploading: () => [...say('Uploading files...'), ...step('Uploading')],
  bytes: ({ done, total }) => [{ bytes: { done, total } }],
  uploaded: ({ bytes }) => [{ done: true }, ...(bytes === 0 ? say('All files found in remote cache; nothing to upload.') : [])],
  'resolving-image': ({ image }) => step(`Looking at image ${image}`),
  'writing-settings': () => step('Writing settings'),

  staging: () => [...say('', 'Staging app and tracing logs...'), ...step('Staging')],
  'build-log': ({ line }) => [{ log: line }],
  'build-log-lost': ({ cause }) => warn(`The build log was lost: ${cause}`),
  'no-web-process': noWebProcess,

  'starting-app': ({ app, asked }) => say(...(asked ? deploymentLines(app) : ['', `Waiting for app ${app} to start...`, ''])),
  'stopping-app': () => say('Stopping Application...'),
  'app-stopped': () => say('Application Stopped'),
  waiting: ({ reason, ready, wanted }) => step(`Waiting: ${reason}${readyOf(ready, wanted)}`),
  'instances-pending': ({ ready, wanted }) => step(`Instances pending...${readyOf(ready, wanted)}`),
  'instances-starting': ({ ready, wanted }) => step(`Instances starting...${readyOf(ready, wanted)}`),
  'instances-scaling': ({ running, wanted }) => step(scaling(running, wanted)),
  'api-server-away': () => step('The API server does not answer; trying again'),
  'settings-not-kept': ({ version }) =>
    warn(`Variables, commands and sidecars of revision ${String(version)} are not kept any more, so they are not compared.`),
  'variables-hidden': ({ cause }) => warn(`The variables of the revision are not shown: ${cause}`),
  'awaiting-fallback': () => step('Waiting for the version that served last'),
  'fell-back': ({ app, cause }, bin) => [
    ...warn(`The newest version of app '${app}' failed: ${cause}`),
    ...warn(`App '${app}' runs as the version that served last. Why the newest one failed: \`${bin} logs ${app} --recent\``),
  ],
  'ending-only-instance': endingOnlyInstance,
  'acted-directly': ({ what }) => warn(`The controller does not answer: ${directly[what]} What else has changed waits for it.`),
  'still-unrouted': ({ app }) => warn(`The routes of app '${app}' lead to it only when the controller works again: it was stopped by it.`),

  'awaiting-claim': ({ url }) => step(`Waiting for the controller to claim ${url}`),
  'awaiting-route': ({ url }) => step(`Waiting for the controller to take up ${url}`),
  'awaiting-gateway': ({ url }) => step(`Waiting for the gateway to load ${url}`),
  'awaiting-unrouted': () => step('Waiting for the gateway to send no more requests'),
  'still-routed': ({ app }) => warn(`The gateway may still send requests to '${app}' until its instances have ended.`),
  'still-loaded': ({ url }) => warn(`The gateway has not confirmed that it sends no more requests for ${url}; this may take a moment.`),
  'awaiting-controller': () => step('Waiting for the controller'),
  'awaiting-binding': () => step('Waiting for the controller to bind'),
  'awaiting-deletion': ({ name }) => step(`Waiting: '${name}' is being deleted`),

  'awaiting-task': ({ task, isRunning }) => step(isRunning ? `Task ${task} is running` : `Waiting for task ${task} to start`),

  'install-step': ({ step: name }) => step(installSteps[name]),
  'install-part': ({ part }) => step(`Installing ${part.replaceAll('-', ' ')}`),
  awaiting: ({ what }) => step(`Waiting for ${what}`),
  'info-broken': ({ fault }) => warn(`${fault} Setup writes it again.`),
  'internal-domain-left-out': ({ namespace }) =>
    warn(`The namespace '${namespace}' exists and is not kf's, so there is no domain apps.internal, which needs it.`),
  'gateway-gap': ({ why }) => warn(`Apps cannot be reached for some seconds, while the gateway is replaced: ${why}`),
  'registry-full': ({ free, total }, bin) =>
    warn(
      `The registry is nearly full: ${formatBytes(free)} of ${formatBytes(total)} are free, and pushes are refused. Remove what nothing uses (${bin} prune), delete apps (this also deletes their images), or give it more space: registrySize in setup.yaml.`,
    ),
  'gateway-closed': (gateway) =>
    warn(`${takesRoutes(gateway)} its own namespace only, so no app will be reached. ${listenerAdvice(gateway)}`),
  'gateway-open': (gateway) =>
    warn(
      `${takesRoutes(gateway)} every namespace: whoever may create HTTPRoutes anywhere in the cluster can take an app's host. ${listenerAdvice(gateway)}`,
    ),
  'gateway-without-pods': ({ namespace, name, label }) =>
    warn(
      `No pod in namespace '${namespace}' says that it serves the Gateway '${name}' (label ${label}). If its pods run in another namespace, add that namespace, or if they run on nodes, the address ranges of the nodes, in appIngress of setup.yaml. Otherwise no app is reached.`,
    ),
  'credentials-end': ({ day }, bin) =>
    warn(
      `The credentials with which nodes pull the images of apps are not renewed any more: they expire on ${day}. The next ${bin} setup renews them.`,
    ),

  warning: ({ message }) => warn(message),
  done: () => [{ done: true }],
};

/** @param bin the name of the program as it was started */
export function renderEvent(event: OpEvent, bin: string): Shown[] {
  const render = renderers[event.type] as (event: OpEvent, bin: string) => Shown[];
  return render(event, bin);
}

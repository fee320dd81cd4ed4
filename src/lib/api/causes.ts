// The fixed codes for the causes of failures, and the code for what kubelets, schedulers and builds say. Pure: the controller and the CLI use it.

import { reasons } from './group.ts';

/** Each code with its meaning. `unknown` is said when nothing names the cause; it is never guessed. */
export const causeMeanings = {
  'image-not-found': 'the registry has no such image, or its name is not valid',
  'image-unauthorized': 'the registry refuses the credentials, or asks for some',
  'registry-unreachable': 'the registry does not answer',
  'registry-certificate': 'the certificate of the registry is not trusted',
  'wrong-architecture': 'the image or its program is for another kind of processor',
  'image-user': 'the image runs as root, as a user without a number, or as the one of kf itself',
  'no-buildpack': 'no buildpack recognises the source',
  'no-builder': 'the builder is missing or its image cannot be pulled',
  'source-fetch': 'the build could not fetch the source',
  'build-registry': 'the registry side of the build failed',
  'build-failed': 'a build step failed',
  'build-oom': 'the build used more memory than it may',
  'build-timeout': 'the build took too long',
  'exit-code': 'the app ended by itself',
  signal: 'a signal ended the app',
  oom: 'the app used more memory than it may',
  disk: 'the app used more disk than it may, or the node has none left',
  evicted: 'the node ended the app because it ran short of something',
  'start-timeout': 'the app was not ready in time, and nothing says why',
  'wrong-port': 'the app listens on another port than the expected one',
  'not-listening': 'nothing listens at the expected port',
  'health-http': 'the health check got no good answer',
  'health-port': 'the expected port took no connection',
  'not-serving': 'requests through the gateway are not answered by the app',
  'command-not-found': 'the start command does not exist',
  quota: 'a quota is used up',
  'no-room': 'no node can run the instance',
  admission: 'a policy of the cluster refuses it',
  volume: 'a volume cannot be mounted',
  'node-lost': 'the node of the instance does not answer',
  'route-taken': 'another route has this host and path',
  'route-not-programmed': 'the gateway has not taken the route',
  'gateway-down': 'no gateway looks at the route',
  'binding-not-ready': 'a service binding is not ready',
  'secret-missing': 'a Secret that the app needs does not exist',
  'droplet-missing': 'the droplet was deleted',
  'environment-too-large': 'the environment of the app is too large',
  'controller-absent': 'no controller takes up the change',
  'name-taken': 'another object has this name',
  cancelled: 'somebody ended it',
  unknown: 'nothing names the cause',
} as const;

/** The cause of a failure, for programs. */
export type CauseCode = keyof typeof causeMeanings;

/** The code in a text of another version; `unknown` when this version does not know it. */
export function readCause(text: string | undefined): CauseCode {
  return text !== undefined && Object.hasOwn(causeMeanings, text) ? (text as CauseCode) : 'unknown';
}

/** The code in a deployment's status. The controller of an earlier kf wrote none. */
export function causeOfDeployment({ cause, reason }: { cause?: string; reason?: string }): CauseCode {
  return cause === undefined ? causeOfReason(reason) : readCause(cause);
}

type Rule = readonly [pattern: RegExp, code: CauseCode];

const firstOf = (rules: readonly Rule[], text: string): CauseCode => rules.find(([pattern]) => pattern.test(text))?.[1] ?? 'unknown';

/** Names in a message are chosen by others, and may contain any of the words that are looked for. */
const withoutNames = (text: string, names: readonly string[]): string =>
  names
    .filter((name) => name !== '')
    .reduce((left, name) => left.replaceAll(name, ''), text)
    .replaceAll(/"[^"]*"/g, '""');

/** In the words of kf's own client, containerd (docker's resolver), CRI-O and the kubelet (kubernetes/pkg/kubelet/images). */
const imageRules: readonly Rule[] = [
  [/InvalidImageName|invalid reference|image reference .*is not valid|ErrImageNeverPull/i, 'image-not-found'],
  [/x509|certificate|tls: |HTTP response to HTTPS client/i, 'registry-certificate'],
  [/does not exist for linux\/|no match for platform|no matching manifest|image operating system/i, 'wrong-architecture'],
  [/no space left on device/i, 'disk'],
  [/unauthorized|denied|forbidden|authorization failed|insufficient_scope|authentication required|\b40[13]\b/i, 'image-unauthorized'],
  [
    /connection refused|no such host|server misbehaving|i\/o timeout|no route to host|network is unreachable|connection reset|connection timed out|TLS handshake timeout|deadline exceeded|unexpected EOF|: EOF|RegistryUnavailable|\b(500|502|503|504)\b|Service Unavailable|Bad Gateway/i,
    'registry-unreachable',
  ],
  [/not found|manifest unknown|name unknown|does not exist/i, 'image-not-found'],
];

/** Why an image cannot be pulled. @param image its name, which counts as no word of the message */
export function causeOfPull(message: string, image = ''): CauseCode {
  return firstOf(imageRules, withoutNames(message, [image, image.split('/')[0] ?? '']));
}

/** In the words of the kubelet and of runc. */
const createRules: readonly Rule[] = [
  [/non-root|runAsNonRoot|will run as root|non-numeric user/i, 'image-user'],
  [/^secret "[^"]*" not found|secret\s+\S+ not found|find key \S+ in Secret/i, 'secret-missing'],
  [/exec format error/i, 'wrong-architecture'],
  [/executable file not found|no such file or directory|permission denied: unknown|is a directory: unknown/i, 'command-not-found'],
  [/no space left on device/i, 'disk'],
];

/** Why a container cannot be created or started. */
export const causeOfCreation = (message: string): CauseCode => firstOf(createRules, message);

/** Why the API server made no pod of a StatefulSet or a Job, or another object: in its own words, or in those of kf's client. */
export function causeOfRefusal(message: string): CauseCode {
  if (/exceeded quota|would exceed the quota/.test(message)) return 'quota';
  return /forbidden|denied|admission|violates|failed calling webhook/i.test(message) ? 'admission' : 'unknown';
}

/** Why a pod has no node yet. @param reason of its condition; only with `Unschedulable` the scheduler has looked at the nodes and found none */
export function causeOfScheduling(message: string, reason = 'Unschedulable'): CauseCode {
  if (reason !== 'Unschedulable') return 'unknown';
  return /persistentvolumeclaim|volume node affinity|unbound immediate/i.test(message) ? 'volume' : 'no-room';
}

/** Why a volume of a pod cannot be mounted, in the words of the kubelet. */
export const causeOfMount = (message: string): CauseCode => (/: secret "[^"]*" not found/.test(message) ? 'secret-missing' : 'volume');

/** Reasons with which a kubelet refuses a pod that was assigned to its node (kubernetes/pkg/kubelet/lifecycle). */
const kubeletRefusals = /^(OutOf\w+|NodeAffinity|NodeName|NodePorts|UnexpectedAdmissionError|TaintToleration)$/;

/** Why a kubelet ended a whole pod. */
export function causeOfPodEnd(reason: string | undefined, message = ''): CauseCode {
  if (reason === 'Evicted') return /ephemeral|emptydir|disk|inodes|storage/i.test(message) ? 'disk' : 'evicted';
  if (reason === 'NodeLost' || reason === 'NodeShutdown' || reason === 'Terminated') return 'node-lost';
  return kubeletRefusals.test(reason ?? '') ? 'no-room' : 'unknown';
}

/** Linux, signal(7). */
const signals: Readonly<Record<number, string>> = {
  1: 'SIGHUP', 2: 'SIGINT', 3: 'SIGQUIT', 4: 'SIGILL', 5: 'SIGTRAP', 6: 'SIGABRT', 7: 'SIGBUS', 8: 'SIGFPE', 9: 'SIGKILL', 10: 'SIGUSR1', 11: 'SIGSEGV',
  12: 'SIGUSR2', 13: 'SIGPIPE', 14: 'SIGALRM', 15: 'SIGTERM', 24: 'SIGXCPU', 25: 'SIGXFSZ', 31: 'SIGSYS',
}; // prettier-ignore

/** The number of the signal in an exit code, by the convention of shells and container runtimes. */
export const signalOf = (exitCode: number): number | undefined => (exitCode > 128 && exitCode <= 128 + 64 ? exitCode - 128 : undefined);

/** ` (signal 11, SIGSEGV)`, or nothing. */
export function signalNote(exitCode: number): string {
  const signal = signalOf(exitCode);
  if (signal === undefined) return '';
  const name = signals[signal];
  return ` (signal ${String(signal)}${name === undefined ? '' : `, ${name}`})`;
}

/** How a program ended by itself. */
export const causeOfExit = (exitCode: number): CauseCode => (signalOf(exitCode) === undefined ? 'exit-code' : 'signal');

/** Exit codes of a shell whose command does not exist, or cannot be executed (POSIX, 2.8.2). */
const shellCodes = new Set([126, 127]);
const shellSaysMissing = /not found|no such file or directory|cannot execute|permission denied/i;

/** The code of an end, now that the last lines of the program are known: a shell says there that its command is missing. */
export function causeWithLines(code: CauseCode, exitCode: number | undefined, lines: readonly string[]): CauseCode {
  if (code !== 'exit-code') return code;
  const last = lines.slice(-5).join('\n');
  if (/exec format error/i.test(last)) return 'wrong-architecture';
  return shellCodes.has(exitCode ?? 0) && shellSaysMissing.test(last) ? 'command-not-found' : code;
}

/** Lines about another program, about a port beside that of the app, or about a failure. */
const isOfOther =
  /\b(?:connect(?:s|ed|ing)?|connections? (?:to|from|with|pool)|reconnect\w*|wait(?:s|ing)? for|retry\w*|using|calling|fetch\w*|forward\w*|upstream|databases?|db|postgres\w*|mysql|mariadb|mongo\w*|redis|valkey|memcached|rabbit\w*|kafka|amqp|nats|queue|broker|cache|elasticsearch|smtp|debugg\w+|inspector|transport|metrics|prometheus|pprof|health|management|admin|actuator|workers?|livereload|not|cannot|fail\w*|error|refused|in use)\b/i;

const verb = String.raw`\b(?:listen(?:s|ing)|running|serving|start(?:ed|ing)|bound|launched|responding|ready|up)\b`;
/** What may stand between the verb and the place; anything else could be about something else. */
const filler = String.raw`(?:[\s:"',=]|\b(?:now|and|for|from|on|at|to|serving|running|https?|tcp|web|development|server|requests|connections|addr|address|url)\b){0,20}?`;
const anyAddress = String.raw`(?:0\.0\.0\.0|\[::\]|::|\*)`;
/** Own addresses. A name could be that of another host. */
const address = String.raw`(?:${anyAddress}|localhost|\[[\da-f:.]+\]|(?:\d{1,3}\.){3}\d{1,3})`;
/** No part of a time, an address, or a longer number. */
const port = String.raw`(\d{2,5})(?![\w]|[.:,-]\d)`;
const scheme = String.raw`(?:(?:https?|h2c|tcp):\/\/)?`;

/** In the words of common frameworks: Spring Boot, Express, Fastify, gunicorn, Uvicorn, Puma, Go's, Flask, Django, ASP.NET, Jetty, PHP. */
const listens: readonly RegExp[] = [
  String.raw`${verb}${filler}\bports?(?:\(s\))?["']?\s{0,3}[:=]?\s{0,3}["']?${port}`,
  String.raw`${verb}${filler}(?<![\w.-])${scheme}${address}(?::|\s{1,3}port\s{1,3})${port}`,
  String.raw`${verb}${filler}(?<![\w.\]:/-]):${port}`,
  // Only somebody who listens has this address.
  String.raw`${verb}.{0,80}?(?<![\w.:-])${scheme}${anyAddress}(?::|\s{1,3}port\s{1,3})${port}`,
  String.raw`\bserver \(${scheme}${address}:${port}\) started`,
  String.raw`\b(?:listening|running)\s+on\s+(\d{4,5}|80)[\s.!"'})]*$`,
].map((pattern) => new RegExp(pattern, 'i'));

const portOf = (line: string): number => Number(listens.map((pattern) => pattern.exec(line)?.[1]).find((text) => text !== undefined) ?? 0);

/** The port on which a program says that it listens. A number in a line about anything else is none. */
export function portIn(lines: readonly string[]): { port: number; line: string } | undefined {
  for (const line of lines) {
    const found = isOfOther.test(line) ? 0 : portOf(line);
    if (found > 0 && found <= 65_535) return { port: found, line };
  }
  return undefined;
}

/** A line says that something listens on this port, whatever else it is about. */
export const isNamed = (port: number, lines: readonly string[]): boolean => lines.some((line) => portOf(line) === port);

const ofReasons: Readonly<Record<string, CauseCode>> = {
  [reasons.bindingNotReady]: 'binding-not-ready',
  VcapServicesNotWritten: 'binding-not-ready',
  [reasons.environmentLost]: 'secret-missing',
  EnvironmentTooLarge: 'environment-too-large',
  [reasons.cannotResolveDroplet]: 'droplet-missing',
  [reasons.duplicateName]: 'name-taken',
  OutOfMemory: 'oom',
  OOMKilled: 'oom',
  [reasons.quotaExceeded]: 'quota',
  [reasons.generationRefused]: 'admission',
  [reasons.unschedulable]: 'no-room',
  [reasons.nodeLost]: 'node-lost',
  TaskCanceled: 'cancelled',
};

/** The code of a reason in a status, where the reason alone says it. */
export const causeOfReason = (reason: string | undefined): CauseCode => ofReasons[reason ?? ''] ?? 'unknown';

const ofBuilds: Readonly<Record<string, CauseCode>> = {
  [reasons.noBuildpackMatched]: 'no-buildpack',
  [reasons.outOfMemory]: 'build-oom',
  [reasons.buildTimeout]: 'build-timeout',
  [reasons.buildFailed]: 'build-failed',
  [reasons.builderNotFound]: 'no-builder',
  [reasons.sourceFetchFailed]: 'source-fetch',
  [reasons.registryRefused]: 'build-registry',
  [reasons.nodeLost]: 'node-lost',
};

/** What a build is said to be whose pod waits for a node for another reason than that none has room. */
export const buildWithoutNode = 'The build gets no node';

/** With this begins the text of a build whose Job, or whose pod, the cluster does not create. */
export const buildRefused = 'The build cannot start';
export const buildPodRefused = "The build's pod cannot be made";

/** The code of a failed build. @param message the sentence of its condition */
export function causeOfBuild(reason: string | undefined, message: string): CauseCode {
  if (message.includes('exceeded quota')) return 'quota';
  if ([buildRefused, buildPodRefused].some((start) => message.startsWith(`${start}: `))) return causeOfRefusal(message);
  if (reason === reasons.unschedulable) return message.startsWith(buildWithoutNode) ? 'unknown' : causeOfScheduling(message);
  if (reason === reasons.buildFailed && message.includes('pod was ended (Evicted)')) return causeOfPodEnd('Evicted', message);
  // Of an image that is not built, but read from its registry.
  if (reason === reasons.stagingFailed)
    return / runs as (root|the user) /.test(` ${message.replace(/[,']/g, ' ')}`)
      ? 'image-user'
      : causeOfPull(message.replaceAll(/'[^']*'/g, ''));
  return ofBuilds[reason ?? ''] ?? 'unknown';
}

/** The code in the status of a failed build. The controller of an earlier kf wrote none. */
export const causeOfFailedBuild = ({ cause, reason }: { cause?: string; reason?: string }, message: string): CauseCode =>
  cause === undefined ? causeOfBuild(reason, message) : readCause(cause);

/** The code of a failed task. @param message the sentence of its condition */
export function causeOfTask(reason: string | undefined, message: string): CauseCode {
  // Names of Secrets are no words of the kubelet.
  if (reason === 'ImagePull')
    return causeOfPull(message.replace(/ The pod names Secrets? '.*$/s, ''), /^The image (\S+) cannot/.exec(message)?.[1]);
  if (reason === 'CreateContainer') return causeOfCreation(message.replace(/^[^:]*: /, ''));
  const exitCode = /exit code:? (\d+)/.exec(message)?.[1];
  const known = causeOfReason(reason);
  return known === 'unknown' && exitCode !== undefined ? causeOfExit(Number(exitCode)) : known;
}

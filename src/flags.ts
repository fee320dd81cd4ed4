// Common flags and arguments, and the flags of every command.

import * as Args from '@oclif/core/args';
import * as Flags from '@oclif/core/flags';
import type { Frame } from './frame.ts';
import { instanceLimits } from './lib/api/app.ts';
import { strategies, type Strategy } from './lib/api/rollout.ts';
import type { GivenPlace } from './lib/cf/same-place.ts';
import { parseChoice, parsePortRange, parseSize, parseTaskId, parseWholeNumber, type PortRange } from './lib/cf/values.ts';
import { defined } from './lib/defined.ts';
import type { AppProtocol } from './lib/ops/routes/destinations.ts';

const GLOBAL = 'GLOBAL';

/** `-i`: up to the maximum of instances of a process. */
export const instancesFlag = () =>
  numberFlag({
    char: 'i',
    name: 'instances',
    least: 0,
    most: instanceLimits.most,
    summary: `number of instances, at most ${instanceLimits.most}`,
    helpValue: 'INSTANCES',
  });

/** On every command. `--org` and `--space` override the target without changing it. */
export const globalFlags = {
  json: Flags.boolean({ summary: 'print one JSON document', helpGroup: GLOBAL }),
  context: Flags.string({ summary: 'context of the kubeconfig', helpValue: 'CONTEXT', env: 'KF_CONTEXT', helpGroup: GLOBAL }),
  org: Flags.string({ summary: 'org instead of the targeted one', helpValue: 'ORG', env: 'KF_ORG', helpGroup: GLOBAL }),
  space: Flags.string({ summary: 'space instead of the targeted one', helpValue: 'SPACE', env: 'KF_SPACE', helpGroup: GLOBAL }),
  verbose: Flags.boolean({ char: 'v', summary: 'print API requests', helpGroup: GLOBAL }),
};

/** What was typed of context, org and space. The environment, from which they may come too, is the same for the next command. */
export function typedPlace({ context, org, space }: GivenPlace, env: Frame['env']): GivenPlace {
  const typed = (value: string | undefined, variable: string): string | undefined => (value === env[variable] ? undefined : value);
  return defined({ context: typed(context, 'KF_CONTEXT'), org: typed(org, 'KF_ORG'), space: typed(space, 'KF_SPACE') });
}

/** Accepts a detached negative value: `-i -1`. */
function numeric<T extends object>(flag: T): T {
  return Object.assign(flag, { numeric: true });
}

interface FlagOptions {
  char?: 'i' | 'k' | 'm' | 'l' | 't';
  summary: string;
  helpValue: string;
}

const words = ({ char, summary, helpValue }: FlagOptions) => ({ summary, helpValue, ...defined({ char }) });

/** `-m 256M` → 256. */
export const sizeFlag = (options: FlagOptions) =>
  numeric(Flags.custom<number>({ parse: (text) => Promise.resolve(parseSize(text)), ...words(options) })());

/** A whole number of at least `least` and at most `most`. */
export function numberFlag(options: FlagOptions & { name: string; least: number; most?: number }) {
  const typed = options.char === undefined ? `--${options.name}` : `-${options.char}`;
  return numeric(
    Flags.custom<number>({
      parse: (text) => Promise.resolve(parseWholeNumber(text, typed, options.least, options.most)),
      ...words(options),
    })(),
  );
}

const mostPort = 65_535;

/** `--gateway-port`, `--app-port`. */
export const portFlag = (name: string, summary: string) => numberFlag({ name, least: 1, most: mostPort, summary, helpValue: 'PORT' });

/** How a command replaces instances. Without `--strategy` all commands do what `rolling` does. */
export const rolloutFlags = () => ({
  'instance-steps': Flags.string({ summary: 'percentages after which a canary pauses (20,60)', helpValue: 'STEPS' }),
  'max-in-flight': numberFlag({
    name: 'max-in-flight',
    least: 1,
    most: instanceLimits.most,
    summary: 'instances that are replaced at a time, default 1; needs --strategy',
    helpValue: 'NUMBER',
  }),
  strategy: Flags.custom<Strategy>({
    parse: (text) => Promise.resolve().then(() => parseChoice(text, '--strategy', strategies)),
    summary: 'how instances are replaced (rolling, canary, recreate)',
    helpValue: 'STRATEGY',
  })(),
});

const version = { name: 'version', least: 1, helpValue: 'VERSION' } as const;

/** `--version` of `revision` and `rollback`. */
export const versionFlag = (summary: string) => numberFlag({ ...version, summary });

export const processFlag = () => Flags.string({ summary: 'process type', helpValue: 'PROCESS', default: 'web' });
export const forceFlag = () => Flags.boolean({ char: 'f', summary: 'do not ask' });
export const noWaitFlag = () => Flags.boolean({ summary: 'return when the first new instance of web serves' });

/** Scripts pass a password to `auth` and `login`, because cf needs one there. */
export const passwordNotUsed = 'The password is not used: the kubeconfig holds the credentials.';

/** Flags of cf that scripts give to login, auth and api, and what decides in their place. */
const decidedByKubeconfig: Readonly<Record<string, string>> = {
  'skip-ssl-validation': 'the kubeconfig says how the server is verified',
  origin: 'the users are those of the kubeconfig',
  'client-credentials': 'the users are those of the kubeconfig, also those of programs',
};

/** Such a flag, which is accepted. */
export const ofKubeconfig = (name: string) => Flags.boolean({ summary: `no effect: ${decidedByKubeconfig[name] ?? ''}` });

/** The same with a value. */
export const originFlag = () => Flags.string({ summary: `no effect: ${decidedByKubeconfig['origin'] ?? ''}`, helpValue: 'ORIGIN' });

/** One sentence on stderr for all of these flags that were given; undefined for none. */
export function withoutEffect(flags: Readonly<Record<string, unknown>>): string | undefined {
  const given = Object.entries(decidedByKubeconfig).filter(([name]) => flags[name] !== undefined && flags[name] !== false);
  if (given.length === 0) return undefined;
  return given.map(([name, why]) => `'--${name}' has no effect: ${why}.`).join(' ');
}

/** A required argument; stdin is never read for it. */
export const requiredArg = (description: string) => Args.string({ required: true, ignoreStdin: true, description });
/** Number of a revision. */
export const revisionArg = (description: string) =>
  Args.custom<number>({
    parse: (text) => Promise.resolve(parseWholeNumber(text, 'the revision', version.least)),
    ignoreStdin: true,
    description,
  })();
/** The last argument, once or several times. */
export const repeatableArg = (description: string) => Args.string({ required: true, multiple: true, ignoreStdin: true, description });
export const optionalArg = (description: string) => Args.string({ ignoreStdin: true, description });
/** Number of a task. */
export const taskIdArg = () =>
  Args.custom<number>({
    parse: (text) => Promise.resolve(parseTaskId(text, "invalid argument for flag 'TASK_ID' (expected int)")),
    ignoreStdin: true,
    description: 'number of the task',
  })({ required: true });

/** A required whole number of at least 0. */
export const indexArg = (name: string, description: string, most: number) =>
  Args.custom<number>({ parse: (text) => Promise.resolve().then(() => parseWholeNumber(text, name, 0, most)) })({
    required: true,
    ignoreStdin: true,
    description,
  });

/** A required argument with one of these values, in any case. */
export const choiceArg = <T extends string>(name: string, description: string, values: readonly T[]) =>
  Args.custom<T>({ parse: (text) => Promise.resolve().then(() => parseChoice(text, name, values)) })({
    required: true,
    ignoreStdin: true,
    description,
  });

export const appArg = () => requiredArg('app');

/** A leading slash is added when missing. */
export const pathFlag = () =>
  Flags.custom<string>({
    parse: (text) => Promise.resolve(text.startsWith('/') || text === '' ? text : `/${text}`),
    summary: 'path of the route',
    helpValue: 'PATH',
  })();

/** `--labels`: the API server reads the selector. */
export const labelsFlag = () =>
  Flags.string({ summary: 'only those with these labels (env=prod, tier!=web, "env in (a,b)")', helpValue: 'SELECTOR' });

/** `-n` of the commands about routes. */
export const hostnameFlag = () => Flags.string({ char: 'n', summary: 'host', helpValue: 'HOSTNAME', default: '' });

const protocols = ['tcp', 'udp'] as const;
type Protocol = (typeof protocols)[number];

/** `on` or `off`; undefined when the flag is not given. */
export const switchFlag = (name: string, summary: string) =>
  Flags.custom<boolean>({
    parse: (text) => Promise.resolve().then(() => parseChoice(text, `--${name}`, ['on', 'off']) === 'on'),
    summary,
    helpValue: 'on|off',
  })();

const appProtocols: readonly AppProtocol[] = ['http1', 'http2'];

/** What the gateway speaks to the app behind a route. */
export const appProtocolFlag = () =>
  Flags.custom<AppProtocol>({
    parse: (text) => Promise.resolve().then(() => parseChoice(text, '--app-protocol', appProtocols)),
    summary: 'protocol between gateway and app (http1 or http2), default http1',
    helpValue: 'PROTOCOL',
  })();

/** `--protocol` of a network policy. */
export const protocolFlag = (summary: string) =>
  Flags.custom<Protocol>({
    parse: (text) => Promise.resolve().then(() => parseChoice(text, 'PROTOCOL', protocols)),
    summary,
    helpValue: 'PROTOCOL',
  });

/** `--port` of a network policy. */
export const portRangeFlag = (summary: string) =>
  Flags.custom<PortRange>({ parse: (text) => Promise.resolve().then(() => parsePortRange(text)), summary, helpValue: 'RANGE' });

/** `-o` and `-s` of a network policy. */
export const destinationFlags = {
  'destination-org': Flags.string({ char: 'o', summary: 'org of that app, default the targeted one', helpValue: 'DESTINATION_ORG_NAME' }),
  'destination-space': Flags.string({
    char: 's',
    summary: 'space of that app, default the targeted one',
    helpValue: 'DESTINATION_SPACE_NAME',
  }),
};

// The flags of `push`, and their names in its plan.

import * as Flags from '@oclif/core/flags';
import type { InferredFlags } from '@oclif/core/interfaces';
import type { Frame } from '../frame.ts';
import type { globalFlags } from '../flags.ts';
import { instancesFlag, noWaitFlag, numberFlag, rolloutFlags, sizeFlag, typedPlace } from '../flags.ts';
import { mostStartSeconds } from '../lib/api/app.ts';
import { KfError } from '../lib/errors.ts';
import { parseChoice } from '../lib/cf/values.ts';
import type { AppPlan, PushFlags } from '../lib/manifest/plan.ts';

type HealthCheckType = NonNullable<PushFlags['healthCheckType']>;

/** `-u`: `none` is an old name for `process`. @throws KfError `usage` */
function parseHealthCheckType(text: string): HealthCheckType {
  const type = parseChoice(text, '--health-check-type', ['http', 'port', 'process', 'none']);
  return type === 'none' ? 'process' : type;
}

const several = (summary: string, helpValue: string) => Flags.string({ multiple: true, multipleNonGreedy: true, summary, helpValue });

/** Of the commands that read a manifest. */
export const manifestFlags = {
  manifest: Flags.string({ char: 'f', summary: 'manifest, or the folder that holds it', helpValue: 'PATH' }),
  var: several('value of a ((variable))', 'KEY=VALUE'),
  'vars-file': several('file with values of ((variables))', 'FILE'),
  'redact-env': Flags.boolean({ summary: 'do not show values of variables of a manifest' }),
};

/** The folder that the command was started in. @throws KfError `usage` when it was removed after the shell had entered it */
export function workingFolder(): string {
  try {
    return process.cwd();
  } catch (error) {
    throw new KfError('usage', 'The working directory has been removed: nothing can be pushed from it.', {
      hints: ['cd DIRECTORY'],
      cause: error,
    });
  }
}

export const pushFlags = {
  buildpack: Flags.string({
    char: 'b',
    multiple: true,
    multipleNonGreedy: true,
    summary: 'buildpack, in order; "default" detects',
    helpValue: 'NAME',
  }),
  'start-command': Flags.string({ char: 'c', summary: 'start command; "null" goes back to the detected one', helpValue: 'COMMAND' }),
  manifest: manifestFlags.manifest,
  'no-manifest': Flags.boolean({ summary: 'ignore a manifest' }),
  var: manifestFlags.var,
  'vars-file': manifestFlags['vars-file'],
  path: Flags.string({ char: 'p', summary: 'folder to push, or a zip, jar or war', helpValue: 'PATH' }),
  'redact-env': manifestFlags['redact-env'],
  'docker-image': Flags.string({ char: 'o', summary: 'ready image instead of source', helpValue: 'IMAGE' }),
  'docker-username': Flags.string({ summary: "user of the image's registry; the password is CF_DOCKER_PASSWORD", helpValue: 'USERNAME' }),
  stack: Flags.string({ char: 's', summary: 'stack', helpValue: 'STACK' }),
  instances: instancesFlag(),
  memory: sizeFlag({ char: 'm', summary: 'memory limit (256M, 1G)', helpValue: 'SIZE' }),
  disk: sizeFlag({ char: 'k', summary: 'disk limit (256M, 1G)', helpValue: 'SIZE' }),
  'app-start-timeout': numberFlag({
    char: 't',
    name: 'app-start-timeout',
    least: 1,
    most: mostStartSeconds,
    summary: 'seconds an instance may take to start',
    helpValue: 'SECONDS',
  }),
  'health-check-type': Flags.custom<HealthCheckType>({
    char: 'u',
    parse: (text) => Promise.resolve().then(() => parseHealthCheckType(text)),
    summary: 'health check (http, port, process)',
    helpValue: 'TYPE',
  })(),
  endpoint: Flags.string({ summary: 'path of an http health check', helpValue: 'PATH' }),
  'no-route': Flags.boolean({ summary: 'unmap all routes, make none' }),
  'random-route': Flags.boolean({ summary: 'route with a random host' }),
  'no-start': Flags.boolean({ summary: 'neither build nor start; start does both later' }),
  'no-wait': noWaitFlag(),
  ...rolloutFlags(),
  force: Flags.boolean({ summary: 'build and restart even if nothing changed' }),
};

/** The password for users of registries, unless no app has one. @throws KfError `usage` if it is not given */
export async function imagePassword(
  { terminal, env, signal }: Pick<Frame, 'terminal' | 'env' | 'signal'>,
  apps: readonly Pick<AppPlan, 'docker'>[],
): Promise<string | undefined> {
  if (apps.every(({ docker }) => docker?.username === undefined)) return undefined;
  const given = env['CF_DOCKER_PASSWORD'] ?? '';
  if (given !== '') return given;
  const { askSecret } = await import('../lib/output/prompt.ts');
  terminal.ask('Environment variable CF_DOCKER_PASSWORD not set.\n');
  return askSecret(terminal, { name: 'Docker password', otherwise: 'CF_DOCKER_PASSWORD', signal });
}

/** The command line under the names of the plan. */
export function planFlags(
  name: string | undefined,
  flags: InferredFlags<typeof pushFlags> & InferredFlags<Pick<typeof globalFlags, 'context' | 'org' | 'space'>>,
  env: Frame['env'],
): PushFlags {
  return {
    name,
    ...typedPlace(flags, env),
    buildpacks: flags.buildpack,
    command: flags['start-command'],
    manifest: flags.manifest,
    noManifest: flags['no-manifest'],
    vars: flags.var,
    varsFiles: flags['vars-file'],
    path: flags.path,
    redactEnv: flags['redact-env'],
    dockerImage: flags['docker-image'],
    dockerUsername: flags['docker-username'] === '' ? undefined : flags['docker-username'],
    stack: flags.stack,
    instances: flags.instances,
    memoryMB: flags.memory,
    diskQuotaMB: flags.disk,
    timeoutSeconds: flags['app-start-timeout'],
    healthCheckType: flags['health-check-type'],
    endpoint: flags.endpoint,
    noRoute: flags['no-route'],
    randomRoute: flags['random-route'],
    noStart: flags['no-start'],
    noWait: flags['no-wait'],
    strategy: flags.strategy,
    maxInFlight: flags['max-in-flight'],
    instanceSteps: flags['instance-steps'],
  };
}

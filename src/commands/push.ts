import * as Flags from '@oclif/core/flags';
import { KfCommand } from '../base-command.ts';
import { instancesFlag, noWaitFlag, numberFlag, optionalArg, sizeFlag, strategyFlag } from '../flags.ts';
import { mostStartSeconds } from '../lib/api/app.ts';
import { KfError } from '../lib/errors.ts';
import type { PushedDetails } from '../lib/ops/push/all.ts';
import { openPushOutput } from '../lib/output/push-output.ts';
import { parseHealthCheckType, planFlags } from '../lib/cf/push-flags.ts';

/** @throws KfError `usage` when it was removed after the shell had entered it */
function workingFolder(): string {
  try {
    return process.cwd();
  } catch (error) {
    throw new KfError('usage', 'The working directory has been removed: nothing can be pushed from it.', {
      hints: ['cd DIRECTORY'],
      cause: error,
    });
  }
}

const several = (summary: string, helpValue: string) => Flags.string({ multiple: true, multipleNonGreedy: true, summary, helpValue });
export default class Push extends KfCommand<{ apps: PushedDetails[] }> {
  static override summary = 'push source code or an image, and run it';
  static override examples = [
    'kf push example-app -p ./example-app -m 256M',
    'kf push example-app --docker-image registry.example.com/example-app:1.2',
    'kf push -f manifest.yml --var instances=3',
  ];
  static override aliases = ['p'];
  static override seeAlso = ['apps', 'logs', 'restage', 'scale'];
  static override environment: [string, string][] = [
    ['CF_STAGING_TIMEOUT', 'minutes a build may take, default 15'],
    ['CF_STARTUP_TIMEOUT', 'minutes a start may take, default 5'],
  ];
  static override args = { APP_NAME: optionalArg('app') };
  static override flags = {
    buildpack: Flags.string({
      char: 'b',
      multiple: true,
      multipleNonGreedy: true,
      summary: 'buildpack, in order; "default" detects',
      helpValue: 'NAME',
    }),
    'start-command': Flags.string({ char: 'c', summary: 'start command; "null" goes back to the detected one', helpValue: 'COMMAND' }),
    manifest: Flags.string({ char: 'f', summary: 'manifest, or the folder that holds it', helpValue: 'PATH' }),
    'no-manifest': Flags.boolean({ summary: 'ignore a manifest' }),
    var: several('value of a ((variable))', 'KEY=VALUE'),
    'vars-file': several('file with values of ((variables))', 'FILE'),
    path: Flags.string({ char: 'p', summary: 'folder to push', helpValue: 'PATH' }),
    'redact-env': Flags.boolean({ summary: 'do not show values of variables of a manifest' }),
    'docker-image': Flags.string({ char: 'o', summary: 'ready image instead of source', helpValue: 'IMAGE' }),
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
    'health-check-type': Flags.custom({
      char: 'u',
      parse: parseHealthCheckType,
      summary: 'health check (http, port, process)',
      helpValue: 'TYPE',
    })(),
    endpoint: Flags.string({ summary: 'path of an http health check', helpValue: 'PATH' }),
    'no-route': Flags.boolean({ summary: 'unmap all routes, make none' }),
    'random-route': Flags.boolean({ summary: 'route with a random host' }),
    'no-start': Flags.boolean({ summary: 'neither build nor start; start does both later' }),
    'no-wait': noWaitFlag(),
    strategy: strategyFlag(),
    force: Flags.boolean({ summary: 'build and roll even when nothing changed' }),
  };

  async run(): Promise<{ apps: PushedDetails[] }> {
    const { args, flags } = await this.parse(Push);
    const { pushAll, readPushPlan } = await import('../lib/ops/push/index.ts');
    const plan = await readPushPlan(workingFolder(), { name: args.APP_NAME, ...planFlags(flags) });
    const session = await this.spaceSession();
    const names = plan.apps.map((app) => app.name);
    this
      .say`Pushing app${names.length > 1 ? 's' : ''} ${names.join(', ')} to org ${session.org.name} / space ${session.space.name} as ${session.user}...`;
    if (plan.manifest !== undefined) this.say`Applying manifest file ${plan.manifest.asGiven}...`;
    for (const warning of plan.warnings) this.display.warn(warning);
    const outputOf = openPushOutput({ terminal: this.terminal, display: this.display, bin: this.frame.bin }, names);
    return { apps: await pushAll(session, plan, { force: flags.force }, outputOf) };
  }
}

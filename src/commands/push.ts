import { KfCommand } from '../base-command.ts';
import { optionalArg } from '../flags.ts';
import { imagePassword, planFlags, pushFlags, workingFolder } from '../flags/push.ts';
import type { PushedDetails } from '../lib/ops/push/index.ts';
import { openPushOutput } from '../lib/output/push-output.ts';

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
    ['CF_DOCKER_PASSWORD', 'password of --docker-username'],
    ['CF_STAGING_TIMEOUT', 'minutes a build may take, default 15'],
    ['CF_STARTUP_TIMEOUT', 'minutes a start may take, default 5'],
  ];
  static override args = { APP_NAME: optionalArg('app') };
  static override flags = pushFlags;

  async run(): Promise<{ apps: PushedDetails[] }> {
    const { args, flags } = await this.parse(Push);
    const { pushAll, readPushPlan } = await import('../lib/ops/push/index.ts');
    const plan = await readPushPlan(workingFolder(), planFlags(args.APP_NAME, flags, this.frame.env));
    const password = await imagePassword(this.frame, plan.apps);
    const session = await this.spaceSession();
    const { org, space, user } = session;
    const names = plan.apps.map((app) => app.name);
    this.say`Pushing app${names.length > 1 ? 's' : ''} ${names.join(', ')} to org ${org.name} / space ${space.name} as ${user}...`;
    if (plan.manifest !== undefined) this.say`Applying manifest file ${plan.manifest.asGiven}...`;
    for (const warning of plan.warnings) this.warn(warning);
    const outputOf = openPushOutput({ terminal: this.terminal, display: this.display, bin: this.frame.bin }, names);
    return { apps: await pushAll(session, plan, { force: flags.force, imagePassword: password }, outputOf) };
  }
}

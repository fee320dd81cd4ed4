import * as Flags from '@oclif/core/flags';
import { KfCommand } from '../base-command.ts';
import { numberFlag, optionalArg, versionFlag } from '../flags.ts';
import type { WhyDetails } from '../lib/api/results.ts';
import { incorrectUsage } from '../lib/cf/usage.ts';
import { renderWhy } from '../lib/views/why.ts';

export default class Why extends KfCommand<WhyDetails> {
  static override summary = 'show why an app, a build, a task, a route or a service fails';
  static override examples = [
    'kf why example-app',
    'kf why example-app --version 12',
    'kf why example-app --build',
    'kf why example-app --task 3',
    'kf why --route shop.apps.example.com',
    'kf why --service example-db',
  ];
  static override seeAlso = ['app', 'events', 'logs', 'revisions'];
  static override args = { APP_NAME: optionalArg('app; left out with --route and --service') };
  static override flags = {
    version: versionFlag('a revision of the app; left out: as the app is now'),
    build: Flags.boolean({ summary: 'the newest build of the app' }),
    task: numberFlag({ name: 'task', least: 1, summary: 'a task of the app', helpValue: 'TASK_ID' }),
    route: Flags.string({ summary: 'a route of the space', helpValue: 'HOST.DOMAIN/PATH' }),
    service: Flags.string({ summary: 'a service instance of the space', helpValue: 'SERVICE_INSTANCE' }),
  };

  async run(): Promise<WhyDetails> {
    const { args, flags } = await this.parse(Why);
    const { version, build, task, route, service } = flags;
    const app = args.APP_NAME;
    const given = [version !== undefined, build, task !== undefined, route !== undefined, service !== undefined].filter(Boolean).length;
    if (given > 1) throw incorrectUsage("Only one of '--version', '--build', '--task', '--route' and '--service' can be used.");
    const isOfSpace = route !== undefined || service !== undefined;
    if (app === undefined && !isOfSpace) throw incorrectUsage('the required argument `APP_NAME` was not provided');
    if (app !== undefined && isOfSpace) throw incorrectUsage("APP_NAME cannot be used together with '--route' or '--service'.");
    const [session, { why }] = await this.inSpace(import('../lib/ops/why/why.ts'));
    this.announceList`Explaining ${route ?? service ?? app ?? ''}`;
    const found = await why(session, { app, version, build, task, route, service });
    const details = { ...found, next: await this.inSamePlace(found.next) };
    this.print(renderWhy(details));
    return details;
  }
}

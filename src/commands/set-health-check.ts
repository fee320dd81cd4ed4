import * as Flags from '@oclif/core/flags';
import { KfCommand } from '../base-command.ts';
import { appArg, choiceArg, numberFlag, processFlag } from '../flags.ts';
import { incorrectUsage } from '../lib/cf/usage.ts';
import { KfError } from '../lib/errors.ts';
import { line } from '../lib/views/block.ts';

const types = ['http', 'port', 'process'] as const;
type CheckType = (typeof types)[number];

interface Result {
  app: string;
  process: string;
  type: CheckType;
  endpoint?: string;
}

export default class SetHealthCheck extends KfCommand<Result> {
  static override summary = 'set a health check for the next start';
  static override changes = true;
  static override examples = [
    'kf set-health-check example-app http --endpoint /health',
    'kf set-health-check example-app process --process worker',
  ];
  static override seeAlso = ['get-health-check', 'restart'];
  static override args = {
    APP_NAME: appArg(),
    HEALTH_CHECK_TYPE: choiceArg('HEALTH_CHECK_TYPE', 'http, port or process', types),
  };
  static override flags = {
    endpoint: Flags.string({ summary: 'path of an http check', helpValue: 'PATH', default: '/' }),
    'invocation-timeout': numberFlag({
      name: 'invocation-timeout',
      least: 1,
      summary: 'seconds that one check may take',
      helpValue: 'SECONDS',
    }),
    process: processFlag(),
  };

  async run(): Promise<Result> {
    const { args, flags } = await this.parse(SetHealthCheck);
    const { APP_NAME: app, HEALTH_CHECK_TYPE: type } = args;
    const { endpoint, process } = flags;
    if (type !== 'http' && endpoint !== '/')
      throw new KfError('usage', "Health check type must be 'http' to set a health check HTTP endpoint.");
    if (!endpoint.startsWith('/')) throw incorrectUsage(`--endpoint must begin with '/', and it is '${endpoint}'.`);
    const [session, { setHealthCheck }] = await this.inSpace(import('../lib/ops/apps/health-checks.ts'));
    this.announceList`Updating health check type for app ${app} process ${process}`;
    const found = await this.findApp(session, app);
    await setHealthCheck(session, found, { process, type, endpoint, invocationTimeoutSeconds: flags['invocation-timeout'] });
    this.ok();
    if (found.spec.desiredState === 'STARTED') this.print([line('TIP: An app restart is required for the change to take effect.')]);
    return { app, process, type, ...(type === 'http' ? { endpoint } : {}) };
  }
}

import { KfCommand } from '../base-command.ts';
import { appArg } from '../flags.ts';
import type { ProcessHealthCheck } from '../lib/api/results.ts';
import { renderHealthChecks } from '../lib/views/health-checks.ts';

export default class GetHealthCheck extends KfCommand<{ app: string; processes: ProcessHealthCheck[] }> {
  static override summary = 'show the health check of each process';
  static override examples = ['kf get-health-check example-app'];
  static override seeAlso = ['get-readiness-health-check', 'set-health-check'];
  static override args = { APP_NAME: appArg() };

  async run(): Promise<{ app: string; processes: ProcessHealthCheck[] }> {
    const { args } = await this.parse(GetHealthCheck);
    const app = args.APP_NAME;
    const [session, { healthChecks }] = await this.inSpace(import('../lib/ops/apps/health-checks.ts'));
    this.announceList`Getting health check type for app ${app}`;
    const processes = await healthChecks(session, await this.findApp(session, app));
    this.print(renderHealthChecks(processes));
    return { app, processes };
  }
}

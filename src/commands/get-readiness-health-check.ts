import { KfCommand } from '../base-command.ts';
import { appArg } from '../flags.ts';
import type { ProcessHealthCheck } from '../lib/api/results.ts';
import { renderReadinessHealthChecks } from '../lib/views/health-checks.ts';

export default class GetReadinessHealthCheck extends KfCommand<{ app: string; processes: ProcessHealthCheck[] }> {
  static override summary = 'show the readiness health check of each process';
  static override examples = ['kf get-readiness-health-check example-app'];
  static override seeAlso = ['get-health-check'];
  static override args = { APP_NAME: appArg() };

  async run(): Promise<{ app: string; processes: ProcessHealthCheck[] }> {
    const { args } = await this.parse(GetReadinessHealthCheck);
    const app = args.APP_NAME;
    const [session, { readinessHealthChecks }] = await this.inSpace(import('../lib/ops/apps/health-checks.ts'));
    this.announceList`Getting readiness health check type for app ${app}`;
    const processes = await readinessHealthChecks(session, await this.findApp(session, app));
    this.print(renderReadinessHealthChecks(processes));
    return { app, processes };
  }
}

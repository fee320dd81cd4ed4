import * as Flags from '@oclif/core/flags';
import { KfCommand } from '../base-command.ts';
import { labelsFlag } from '../flags.ts';
import type { AppSummary } from '../lib/api/results.ts';
import { renderApps } from '../lib/views/apps.ts';

export default class Apps extends KfCommand<AppSummary[]> {
  static override summary = 'list all apps in the targeted space';
  static override examples = ['kf apps', 'kf apps --no-stats', 'kf apps --labels env=production', 'kf apps --json'];
  static override aliases = ['a'];
  static override seeAlso = ['app', 'logs', 'map-route', 'push', 'scale', 'start', 'stop'];
  static override flags = { 'no-stats': Flags.boolean({ summary: 'leave out the processes' }), labels: labelsFlag() };

  async run(): Promise<AppSummary[]> {
    const { flags } = await this.parse(Apps);
    const [session, { listApps }] = await this.inSpace(import('../lib/ops/apps/list.ts'));
    this.announceList`Getting apps`;
    const apps = await listApps(session, flags.labels);
    this.print(renderApps(apps, { stats: !flags['no-stats'] }));
    return apps;
  }
}

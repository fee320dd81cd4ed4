import { KfCommand } from '../base-command.ts';
import { appArg } from '../flags.ts';
import type { RevisionSummary } from '../lib/api/results.ts';
import { line } from '../lib/views/block.ts';
import { renderRevisions } from '../lib/views/revisions.ts';

export default class Revisions extends KfCommand<RevisionSummary[]> {
  static override summary = 'list the revisions of an app, newest first';
  static override examples = ['kf revisions example-app'];
  static override seeAlso = ['revision', 'rollback'];
  static override args = { APP_NAME: appArg() };

  async run(): Promise<RevisionSummary[]> {
    const { args } = await this.parse(Revisions);
    const [session, { listRevisions }] = await this.inSpace(import('../lib/ops/apps/revisions.ts'));
    this.announce`Getting revisions for app ${args.APP_NAME}`;
    const app = await this.findApp(session, args.APP_NAME);
    const revisions = await listRevisions(session, app);
    const stopped = 'Info: this app is in a stopped state. It is not possible to determine which revision is currently deployed.';
    this.print([...(app.spec.desiredState === 'STARTED' ? [] : [line(), line(stopped)]), line(), ...renderRevisions(revisions)]);
    return revisions;
  }
}

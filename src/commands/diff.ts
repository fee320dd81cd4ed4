import { KfCommand } from '../base-command.ts';
import { appArg, revisionArg } from '../flags.ts';
import type { RevisionDiff } from '../lib/api/results.ts';
import { renderRevisionDiff } from '../lib/views/revisions.ts';

export default class Diff extends KfCommand<RevisionDiff> {
  static override summary = 'compare two revisions of an app, by default the two newest';
  static override examples = ['kf diff example-app', 'kf diff example-app 12 13'];
  static override seeAlso = ['releases', 'revision', 'rollback'];
  static override args = {
    APP_NAME: appArg(),
    FROM: revisionArg('revision to compare with; left out: the one before the newest'),
    TO: revisionArg('revision; left out: the newest'),
  };

  async run(): Promise<RevisionDiff> {
    const { args } = await this.parse(Diff);
    const [session, { diffRevisions }] = await this.inSpace(import('../lib/ops/apps/revision-diff.ts'));
    this.announceList`Comparing revisions of app ${args.APP_NAME}`;
    const diff = await diffRevisions(session, await this.findApp(session, args.APP_NAME), { from: args.FROM, to: args.TO });
    this.print(renderRevisionDiff(diff));
    return diff;
  }
}

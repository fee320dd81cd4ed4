import { KfCommand } from '../base-command.ts';
import { appArg, versionFlag } from '../flags.ts';
import type { RevisionDetails } from '../lib/api/results.ts';
import { renderRevision } from '../lib/views/revisions.ts';

export default class Revision extends KfCommand<RevisionDetails> {
  static override summary = 'show one revision of an app';
  static override examples = ['kf revision example-app', 'kf revision example-app --version 3'];
  static override seeAlso = ['revisions', 'rollback'];
  static override args = { APP_NAME: appArg() };
  static override flags = { version: versionFlag('revision to show, default the deployed one') };

  async run(): Promise<RevisionDetails> {
    const { args, flags } = await this.parse(Revision);
    const [session, { showRevision }] = await this.inSpace(import('../lib/ops/apps/revisions.ts'));
    const { version } = flags;
    if (version === undefined) this.announceList`Showing revisions for app ${args.APP_NAME}`;
    else this.announceList`Showing revision ${String(version)} for app ${args.APP_NAME}`;
    const revision = await showRevision(session, await this.findApp(session, args.APP_NAME), version);
    this.print(renderRevision(revision));
    return revision;
  }
}

import { KfCommand } from '../base-command.ts';
import { appArg } from '../flags.ts';
import type { RevisionSummary } from '../lib/api/results.ts';
import { renderReleases } from '../lib/views/revisions.ts';

export default class Releases extends KfCommand<RevisionSummary[]> {
  static override summary = 'list who released what: user, commit, CI run, droplet';
  static override examples = ['kf releases example-app', 'kf releases example-app --json'];
  static override seeAlso = ['diff', 'revisions', 'rollback'];
  static override args = { APP_NAME: appArg() };

  async run(): Promise<RevisionSummary[]> {
    const { args } = await this.parse(Releases);
    const [session, { listRevisions }] = await this.inSpace(import('../lib/ops/apps/revisions.ts'));
    this.announceList`Getting releases of app ${args.APP_NAME}`;
    const revisions = await listRevisions(session, await this.findApp(session, args.APP_NAME));
    this.print(renderReleases(revisions));
    return revisions;
  }
}

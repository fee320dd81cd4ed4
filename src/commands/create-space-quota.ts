import { KfCommand } from '../base-command.ts';
import { requiredArg } from '../flags.ts';
import { idleFlags, limitsOfFlags, quotaFlags } from '../flags/quotas.ts';
import type { QuotaSummary } from '../lib/api/results.ts';

interface Result extends QuotaSummary {
  created: boolean;
}

export default class CreateSpaceQuota extends KfCommand<Result> {
  static override summary = 'create a quota of spaces';
  static override changes = true;
  static override examples = [
    'kf create-space-quota small -m 2G -i 512M -r 20 -s 5',
    'kf create-space-quota large -m -1 -r -1 -s -1 -a 40',
  ];
  static override seeAlso = ['space-quotas', 'set-space-quota', 'update-space-quota'];
  static override args = { SPACE_QUOTA_NAME: requiredArg('name of the quota') };
  static override flags = quotaFlags;

  async run(): Promise<Result> {
    const { args, flags } = await this.parse(CreateSpaceQuota);
    const idle = idleFlags(flags);
    const [session, { createQuota, ofSpaces }] = await this.inOrg(import('../lib/ops/tenancy/quotas.ts'));
    this.say`Creating space quota ${args.SPACE_QUOTA_NAME} for org ${session.org.name} as ${session.user}...`;
    for (const note of idle) this.warn(note);
    const { quota, created } = await createQuota(session, ofSpaces(session), args.SPACE_QUOTA_NAME, limitsOfFlags(flags));
    if (!created) this.warn(`Space Quota '${args.SPACE_QUOTA_NAME}' already exists.`);
    this.ok();
    return { ...quota, created };
  }
}

import { KfCommand } from '../base-command.ts';
import { requiredArg } from '../flags.ts';

interface Result {
  org: string;
  quota: string;
}

export default class SetOrgQuota extends KfCommand<Result> {
  static override summary = 'give an org a quota';
  static override changes = true;
  static override examples = ['kf set-org-quota example-org small', 'kf set-org-quota example-org default'];
  static override aliases = ['set-quota'];
  static override seeAlso = ['org', 'org-quotas', 'orgs'];
  static override args = { ORG: requiredArg('org'), QUOTA: requiredArg('quota of orgs; default for none') };

  async run(): Promise<Result> {
    const { args } = await this.parse(SetOrgQuota);
    const [session, { setOrgQuota }] = await this.inCluster(import('../lib/ops/tenancy/quotas.ts'));
    this.say`Setting quota ${args.QUOTA} to org ${args.ORG} as ${session.user}...`;
    const unapplied = await setOrgQuota(session, args.ORG, args.QUOTA);
    for (const { space, why } of unapplied) this.warn(`The quota is not in force in space '${space}': ${why}.`);
    this.ok();
    return { org: args.ORG, quota: args.QUOTA };
  }
}

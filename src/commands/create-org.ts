import * as Flags from '@oclif/core/flags';
import { KfCommand } from '../base-command.ts';
import { requiredArg } from '../flags.ts';
import type { PlaceSummary } from '../lib/api/results.ts';
import { line } from '../lib/views/block.ts';

interface Result extends PlaceSummary {
  created: boolean;
}

export default class CreateOrg extends KfCommand<Result> {
  static override summary = 'create an org';
  static override changes = true;
  static override examples = ['kf create-org example-org', 'kf create-org example-org -q small'];
  static override aliases = ['co'];
  static override seeAlso = ['create-space', 'orgs', 'target'];
  static override args = { ORG: requiredArg('name of the org') };
  static override flags = { quota: Flags.string({ char: 'q', summary: 'quota that the org gets', helpValue: 'ORG_QUOTA' }) };

  async run(): Promise<Result> {
    const { args, flags } = await this.parse(CreateOrg);
    const [session, { assignOwnRole, createOrg }] = await this.inCluster(import('../lib/ops/tenancy/orgs-and-spaces.ts'));
    this.announce`Creating org ${args.ORG}`;
    const quotas = flags.quota === undefined ? undefined : await import('../lib/ops/tenancy/quotas.ts');
    // Before the org is made: nothing is half done.
    await quotas?.showQuota(session, quotas.ofOrgs(session), flags.quota ?? '');
    const { place, created } = await createOrg(session, args.ORG);
    if (!created) this.warn(`Organization '${args.ORG}' already exists.`);
    this.ok();
    if (created && flags.quota !== undefined) {
      this.say`Setting org quota ${flags.quota} to org ${args.ORG} as ${session.user}...`;
      await quotas?.setOrgQuota(session, args.ORG, flags.quota);
      this.ok();
    }
    if (created) {
      this.say`Assigning role OrgManager to user ${session.user} in org ${args.ORG} as ${session.user}...`;
      await Promise.all([
        assignOwnRole(session, 'organizationManager', place.guid),
        assignOwnRole(session, 'organizationUser', place.guid),
        assignOwnRole(session, 'cfUser', session.root),
      ]);
      this.ok();
    }
    this.print([line(`TIP: Use '${this.frame.bin} target -o "${args.ORG}"' to target new org`)]);
    return { ...place, created };
  }
}

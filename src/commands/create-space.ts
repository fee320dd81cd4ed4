import * as Flags from '@oclif/core/flags';
import { KfCommand } from '../base-command.ts';
import { requiredArg } from '../flags.ts';
import type { PlaceSummary } from '../lib/api/results.ts';
import { line } from '../lib/views/block.ts';

interface Result extends PlaceSummary {
  org: PlaceSummary;
  created: boolean;
}

const roles = [
  ['SpaceManager', 'spaceManager'],
  ['SpaceDeveloper', 'spaceDeveloper'],
] as const;

export default class CreateSpace extends KfCommand<Result> {
  static override summary = 'create a space in an org';
  static override changes = true;
  static override examples = ['kf create-space example-space', 'kf create-space example-space -o example-org -q small'];
  static override aliases = ['csp'];
  static override seeAlso = ['create-org', 'spaces', 'target'];
  static override args = { SPACE: requiredArg('name of the space') };
  static override flags = {
    org: Flags.string({ char: 'o', summary: 'org, default the targeted one', helpValue: 'ORG', env: 'KF_ORG' }),
    quota: Flags.string({ char: 'q', summary: 'quota that the space gets', helpValue: 'QUOTA' }),
  };

  async run(): Promise<Result> {
    const { args, flags } = await this.parse(CreateSpace);
    const [session, { assignOwnRole, createSpace }] = await this.inOrg(import('../lib/ops/tenancy/orgs-and-spaces.ts'));
    const { org, user } = session;
    const name = args.SPACE;
    this.announce`Creating space ${name}`;
    const quotas = flags.quota === undefined ? undefined : await import('../lib/ops/tenancy/quotas.ts');
    // Before the space is made: nothing is half done.
    await quotas?.showQuota(session, quotas.ofSpaces(session), flags.quota ?? '');
    const { place, created } = await createSpace(session, org, name);
    if (!created) this.warn(`Space '${name}' already exists.`);
    this.ok();
    if (created && flags.quota !== undefined) {
      this.say`Setting space quota ${flags.quota} to space ${name} as ${user}...`;
      await quotas?.setSpaceQuota(session, name, flags.quota);
      this.ok();
    }
    for (const [title, role] of created ? roles : []) {
      this.say`Assigning role ${title} to user ${user} in org ${org.name} / space ${name} as ${user}...`;
      await assignOwnRole(session, role, place.guid);
      this.ok();
    }
    this.print([line(`TIP: Use '${this.frame.bin} target -o "${org.name}" -s "${name}"' to target new space`)]);
    return { ...place, org, created };
  }
}

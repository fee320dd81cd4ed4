import { KfCommand } from '../base-command.ts';
import { requiredArg } from '../flags.ts';

interface Result {
  space: string;
  enabled: boolean;
  changed: boolean;
}

export default class DisallowSpaceSsh extends KfCommand<Result> {
  static override summary = 'forbid ssh to the apps of a space';
  static override changes = true;
  static override examples = ['kf disallow-space-ssh example-space'];
  static override seeAlso = ['allow-space-ssh', 'disable-ssh', 'space-ssh-allowed', 'ssh'];
  static override args = { SPACE: requiredArg('name of the space') };

  async run(): Promise<Result> {
    const { args } = await this.parse(DisallowSpaceSsh);
    const name = args.SPACE;
    const [session, { findSpaceObject, setSpaceSsh }] = await this.inOrg(import('../lib/ops/apps/ssh-access.ts'));
    this.say`Disabling ssh support for space ${name} as ${session.user}...`;
    const changed = await setSpaceSsh(session, await findSpaceObject(session, name), false);
    if (!changed) this.say`ssh support for space '${name}' is already disabled.`;
    this.ok();
    return { space: name, enabled: false, changed };
  }
}

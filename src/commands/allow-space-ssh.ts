import { KfCommand } from '../base-command.ts';
import { requiredArg } from '../flags.ts';

interface Result {
  space: string;
  enabled: boolean;
  changed: boolean;
}

export default class AllowSpaceSsh extends KfCommand<Result> {
  static override summary = 'allow ssh to the apps of a space';
  static override changes = true;
  static override examples = ['kf allow-space-ssh example-space'];
  static override seeAlso = ['disallow-space-ssh', 'enable-ssh', 'space-ssh-allowed', 'ssh'];
  static override args = { SPACE: requiredArg('name of the space') };

  async run(): Promise<Result> {
    const { args } = await this.parse(AllowSpaceSsh);
    const name = args.SPACE;
    const [session, { findSpaceObject, setSpaceSsh }] = await this.inOrg(import('../lib/ops/apps/ssh-access.ts'));
    this.say`Enabling ssh support for space ${name} as ${session.user}...`;
    const changed = await setSpaceSsh(session, await findSpaceObject(session, name), true);
    if (!changed) this.say`ssh support for space '${name}' is already enabled.`;
    this.ok();
    return { space: name, enabled: true, changed };
  }
}

import { KfCommand } from '../base-command.ts';
import { requiredArg } from '../flags.ts';
import { isSshEnabled } from '../lib/api/ssh.ts';

interface Result {
  space: string;
  enabled: boolean;
}

export default class SpaceSshAllowed extends KfCommand<Result> {
  static override summary = 'show whether ssh to the apps of a space is allowed';
  static override examples = ['kf space-ssh-allowed example-space'];
  static override seeAlso = ['allow-space-ssh', 'ssh', 'ssh-enabled'];
  static override args = { SPACE: requiredArg('name of the space') };

  async run(): Promise<Result> {
    const { args } = await this.parse(SpaceSshAllowed);
    const name = args.SPACE;
    const [session, { findSpaceObject }] = await this.inOrg(import('../lib/ops/apps/ssh-access.ts'));
    const enabled = isSshEnabled(await findSpaceObject(session, name));
    this.say`ssh support is ${enabled ? 'enabled' : 'disabled'} in space '${name}'.`;
    return { space: name, enabled };
  }
}

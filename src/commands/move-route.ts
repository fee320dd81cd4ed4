import * as Flags from '@oclif/core/flags';
import { KfCommand } from '../base-command.ts';
import { hostnameFlag, pathFlag, requiredArg } from '../flags.ts';
import { incorrectUsage } from '../lib/cf/usage.ts';

interface Result {
  url: string;
  space: string;
  moved: boolean;
}

export default class MoveRoute extends KfCommand<Result> {
  static override summary = 'move a route without apps to another space';
  static override changes = true;
  static override examples = [
    'kf move-route apps.example.com -n shop -s other-space',
    'kf move-route apps.example.com -n shop -s other-space -o other-org',
  ];
  static override seeAlso = ['create-route', 'map-route', 'routes', 'unmap-route'];
  static override args = { DOMAIN: requiredArg('domain') };
  static override flags = {
    hostname: hostnameFlag(),
    path: pathFlag(),
    'other-org': Flags.string({ char: 'o', summary: 'org of that space, default the targeted one', helpValue: 'OTHER_ORG' }),
    'other-space': Flags.string({ char: 's', summary: 'space that gets the route', helpValue: 'OTHER_SPACE' }),
  };

  async run(): Promise<Result> {
    const { args, flags } = await this.parse(MoveRoute);
    const { 'other-org': toOrg, 'other-space': toSpace = '' } = flags;
    if (toSpace === '') throw incorrectUsage("the required flag `-s' was not specified");
    const [session, { moveRoute }] = await this.inSpace(import('../lib/ops/routes/move.ts'));
    const address = { domain: args.DOMAIN, host: flags.hostname, path: flags.path ?? '' };
    let url = '';
    const moved = await moveRoute(session, { ...address, toOrg, toSpace }, (found) => {
      url = found;
      this.say`Move ownership of route ${url} to space ${toSpace} as ${session.user}`;
    });
    if (!moved) this.warn(`Space '${toSpace}' has the route '${url}' already.`);
    this.ok();
    return { url, space: toSpace, moved };
  }
}

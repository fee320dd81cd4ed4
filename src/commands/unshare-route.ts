import * as Flags from '@oclif/core/flags';
import { KfCommand } from '../base-command.ts';
import { hostnameFlag, pathFlag, requiredArg } from '../flags.ts';
import { incorrectUsage } from '../lib/cf/usage.ts';

interface Result {
  url: string;
  space: string;
  unshared: boolean;
}

export default class UnshareRoute extends KfCommand<Result> {
  static override summary = 'stop leading a route to apps of another space';
  static override changes = true;
  static override examples = [
    'kf unshare-route apps.example.com -n shop -s other-space',
    'kf unshare-route apps.example.com -n shop -s other-space -o other-org',
  ];
  static override seeAlso = ['create-route', 'map-route', 'routes', 'unmap-route'];
  static override args = { DOMAIN: requiredArg('domain') };
  static override flags = {
    hostname: hostnameFlag(),
    path: pathFlag(),
    'other-org': Flags.string({ char: 'o', summary: 'org of that space, default the targeted one', helpValue: 'OTHER_ORG' }),
    'other-space': Flags.string({ char: 's', summary: 'the other space', helpValue: 'OTHER_SPACE' }),
  };

  async run(): Promise<Result> {
    const { args, flags } = await this.parse(UnshareRoute);
    const { 'other-org': otherOrg, 'other-space': other = '' } = flags;
    if (other === '') throw incorrectUsage("the required flag `-s' was not specified");
    const [session, { unshareRoute }] = await this.inSpace(import('../lib/ops/routes/share.ts'));
    const address = { domain: args.DOMAIN, host: flags.hostname, path: flags.path ?? '' };
    let url = '';
    const unshared = await unshareRoute(session, { ...address, otherOrg, otherSpace: other }, (found) => {
      url = found;
      this.say`Unsharing route ${url} from space ${other} as ${session.user}`;
    });
    if (!unshared) this.warn(`Route '${url}' is not shared with space '${other}'.`);
    this.ok();
    return { url, space: other, unshared };
  }
}

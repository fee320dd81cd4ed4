import * as Flags from '@oclif/core/flags';
import { KfCommand } from '../base-command.ts';
import { hostnameFlag, pathFlag, requiredArg } from '../flags.ts';
import { incorrectUsage } from '../lib/cf/usage.ts';

interface Result {
  url: string;
  space: string;
  shared: boolean;
}

export default class ShareRoute extends KfCommand<Result> {
  static override summary = 'let another space lead a route to apps of its own';
  static override changes = true;
  static override examples = [
    'kf share-route apps.example.com -n shop -s other-space',
    'kf share-route apps.example.com -n shop -s other-space -o other-org',
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
    const { args, flags } = await this.parse(ShareRoute);
    const { 'other-org': otherOrg, 'other-space': other = '' } = flags;
    if (other === '') throw incorrectUsage("the required flag `-s' was not specified");
    const [session, { shareRoute }] = await this.inSpace(import('../lib/ops/routes/share.ts'));
    const address = { domain: args.DOMAIN, host: flags.hostname, path: flags.path ?? '' };
    let url = '';
    const shared = await shareRoute(session, { ...address, otherOrg, otherSpace: other }, (found) => {
      url = found;
      this.say`Sharing route ${url} to space ${other} as ${session.user}`;
    });
    if (!shared) this.warn(`Route '${url}' is shared with space '${other}' already.`);
    this.ok();
    return { url, space: other, shared };
  }
}

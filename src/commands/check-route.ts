import { KfCommand } from '../base-command.ts';
import { hostnameFlag, pathFlag, requiredArg } from '../flags.ts';
import { line } from '../lib/views/block.ts';

interface Result {
  url: string;
  exists: boolean;
}

export default class CheckRoute extends KfCommand<Result> {
  static override summary = 'say whether a route exists, in whatever space';
  static override examples = ['kf check-route apps.example.com -n shop', 'kf check-route apps.example.com -n shop --path cart'];
  static override seeAlso = ['create-route', 'delete-route', 'routes'];
  static override args = { DOMAIN: requiredArg('domain') };
  static override flags = { hostname: hostnameFlag(), path: pathFlag() };

  async run(): Promise<Result> {
    const { args, flags } = await this.parse(CheckRoute);
    const [session, { routeExists }, { urlOf }] = await this.inOrg(
      import('../lib/ops/routes/create.ts'),
      import('../lib/ops/routes/routes.ts'),
    );
    const address = { domain: args.DOMAIN, host: flags.hostname, path: flags.path ?? '' };
    const url = urlOf(address);
    this.say`Checking for route...`;
    const exists = await routeExists(session, address);
    this.print([line(`Route '${url}' does ${exists ? '' : 'not '}exist.`)]);
    this.ok();
    return { url, exists };
  }
}

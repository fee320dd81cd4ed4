import { KfCommand } from '../base-command.ts';
import { hostnameFlag, pathFlag, requiredArg } from '../flags.ts';
import type { RouteDetails } from '../lib/api/results.ts';
import { renderRoute } from '../lib/views/routes.ts';

export default class Route extends KfCommand<RouteDetails> {
  static override summary = 'show a route with the apps behind it';
  static override examples = ['kf route apps.example.com -n shop', 'kf route apps.example.com -n shop --path cart'];
  static override aliases = ['ro'];
  static override seeAlso = ['create-route', 'delete-route', 'routes'];
  static override args = { DOMAIN: requiredArg('domain') };
  static override flags = { hostname: hostnameFlag(), path: pathFlag() };

  async run(): Promise<RouteDetails> {
    const { args, flags } = await this.parse(Route);
    const [session, { showRoute }, { urlOf }] = await this.inSpace(
      import('../lib/ops/routes/list.ts'),
      import('../lib/ops/routes/routes.ts'),
    );
    const address = { domain: args.DOMAIN, host: flags.hostname, path: flags.path ?? '' };
    this.announceList`Showing route ${urlOf(address)}`;
    const route = await showRoute(session, address);
    this.print(renderRoute(route));
    return route;
  }
}

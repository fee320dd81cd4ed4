import { KfCommand } from '../base-command.ts';
import { hostnameFlag, pathFlag, requiredArg } from '../flags.ts';
import { line } from '../lib/views/block.ts';

interface Result {
  url: string;
  created: boolean;
}

export default class CreateRoute extends KfCommand<Result> {
  static override summary = 'create a route without an app';
  static override changes = true;
  static override examples = ['kf create-route apps.example.com -n shop', 'kf create-route apps.example.com --hostname shop --path cart'];
  static override seeAlso = ['check-route', 'domains', 'map-route', 'routes', 'unmap-route'];
  static override args = { DOMAIN: requiredArg('domain') };
  static override flags = { hostname: hostnameFlag(), path: pathFlag() };

  async run(): Promise<Result> {
    const { args, flags } = await this.parse(CreateRoute);
    const [session, { createRoute }, { urlOf }] = await this.inSpace(
      import('../lib/ops/routes/create.ts'),
      import('../lib/ops/routes/routes.ts'),
    );
    const { org, space, user } = session;
    const address = { domain: args.DOMAIN, host: flags.hostname, path: flags.path ?? '' };
    this.say`Creating route ${urlOf(address)} for org ${org.name} / space ${space.name} as ${user}...`;
    const { url, created } = await createRoute(session, address);
    const andPath = address.path === '' ? '' : ` and path '${address.path}'`;
    if (created) this.print([line(`Route ${url} has been created.`)]);
    else this.warn(`Route already exists with host '${address.host}'${andPath} for domain '${args.DOMAIN}'.`);
    this.ok();
    return { url, created };
  }
}

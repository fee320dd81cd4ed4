import { KfCommand } from '../base-command.ts';
import { appArg, hostnameFlag, pathFlag, requiredArg } from '../flags.ts';
import { line } from '../lib/views/block.ts';

interface Result {
  app: string;
  url: string;
  unmapped: boolean;
}

export default class UnmapRoute extends KfCommand<Result> {
  static override summary = 'stop leading a URL to an app; the route stays';
  static override changes = true;
  static override examples = ['kf unmap-route example-app apps.example.com --hostname shop'];
  static override seeAlso = ['map-route', 'routes'];
  static override args = { APP_NAME: appArg(), DOMAIN: requiredArg('domain') };
  static override flags = {
    hostname: hostnameFlag(),
    path: pathFlag(),
  };

  async run(): Promise<Result> {
    const { args, flags } = await this.parse(UnmapRoute);
    const [session, { unmapRoute, urlOf }] = await this.inSpace(import('../lib/ops/routes/routes.ts'));
    const address = { domain: args.DOMAIN, host: flags.hostname, path: flags.path ?? '' };
    const url = urlOf(address);
    this.announce`Removing route ${url} from app ${args.APP_NAME}`;
    const unmapped = await unmapRoute(session, await this.findApp(session, args.APP_NAME), address);
    if (!unmapped) this.print([line('Route to be unmapped is not currently mapped to the application.')]);
    this.ok();
    return { app: args.APP_NAME, url, unmapped };
  }
}

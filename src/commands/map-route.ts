import { KfCommand } from '../base-command.ts';
import { appArg, appProtocolFlag, hostnameFlag, pathFlag, portFlag, requiredArg } from '../flags.ts';
import type { AppProtocol } from '../lib/ops/routes/destinations.ts';
import { line } from '../lib/views/block.ts';

interface Result {
  app: string;
  url: string;
  created: boolean;
  mapped: boolean;
  protocol: AppProtocol;
}

export default class MapRoute extends KfCommand<Result> {
  static override summary = 'lead a URL to an app; create a missing route';
  static override changes = true;
  static override examples = [
    'kf map-route example-app apps.example.com --hostname shop',
    'kf map-route example-app apps.example.com -n shop --path cart',
    'kf map-route example-grpc apps.example.com -n grpc --app-protocol http2',
  ];
  static override seeAlso = ['domains', 'routes', 'unmap-route'];
  static override args = { APP_NAME: appArg(), DOMAIN: requiredArg('domain') };
  static override flags = {
    hostname: hostnameFlag(),
    path: pathFlag(),
    'app-port': portFlag('app-port', 'port the app listens on'),
    'app-protocol': appProtocolFlag(),
  };

  async run(): Promise<Result> {
    const { args, flags } = await this.parse(MapRoute);
    const [session, { mapRoute }] = await this.inSpace(import('../lib/ops/routes/routes.ts'));
    const { org, space, user } = session;
    const name = args.APP_NAME;
    const app = await this.findApp(session, name);
    const { 'app-port': port, 'app-protocol': wanted } = flags;
    const address = { domain: args.DOMAIN, host: flags.hostname, path: flags.path ?? '', port, protocol: wanted };
    const { url, created, mapped, protocol } = await mapRoute(session, app, address, (step, route) => {
      if (step === 'create') this.say`Creating route ${route} for org ${org.name} / space ${space.name} as ${user}...`;
      else if (step === 'created') this.ok();
      else if (wanted === undefined) this.announce`Mapping route ${route} to app ${name}`;
      else this.announce`Mapping route ${route} to app ${name} with protocol ${wanted}`;
    });
    if (!mapped) this.print([line(`App '${name}' is already mapped to route '${url}'. Nothing has been updated.`)]);
    if (wanted !== undefined && wanted !== protocol)
      this.warn(`The gateway speaks ${protocol} to app '${name}' on this route; '${this.frame.bin} update-destination' changes it.`);
    this.ok();
    return { app: name, url, created, mapped, protocol };
  }
}

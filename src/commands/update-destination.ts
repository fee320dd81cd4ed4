import { KfCommand } from '../base-command.ts';
import { appArg, appProtocolFlag, hostnameFlag, pathFlag, requiredArg } from '../flags.ts';
import type { AppProtocol } from '../lib/ops/routes/destinations.ts';
import { line } from '../lib/views/block.ts';

interface Result {
  app: string;
  url: string;
  protocol: AppProtocol;
  updated: boolean;
}

export default class UpdateDestination extends KfCommand<Result> {
  static override summary = 'change the protocol between gateway and app';
  static override changes = true;
  static override examples = [
    'kf update-destination example-app apps.example.com --hostname shop --app-protocol http2',
    'kf update-destination example-app apps.example.com -n shop --path cart --app-protocol http1',
  ];
  static override seeAlso = ['create-route', 'map-route', 'routes', 'unmap-route'];
  static override args = { APP_NAME: appArg(), DOMAIN: requiredArg('domain') };
  static override flags = { hostname: hostnameFlag(), path: pathFlag(), 'app-protocol': appProtocolFlag() };

  async run(): Promise<Result> {
    const { args, flags } = await this.parse(UpdateDestination);
    const [session, { updateDestination }] = await this.inSpace(import('../lib/ops/routes/update-destination.ts'));
    const { org, space, user } = session;
    const app = args.APP_NAME;
    const { 'app-protocol': protocol = 'http1', hostname: host, path = '' } = flags;
    const found = await this.findApp(session, app);
    const options = { domain: args.DOMAIN, host, path, protocol };
    const { url, updated } = await updateDestination(session, found, options, (route, before) => {
      this
        .say`Updating destination protocol from ${before} to ${protocol} for route ${route} in org ${org.name} / space ${space.name} as ${user}...`;
    });
    // cf begins this line with a blank.
    if (!updated) this.print([line(` App '${app}' is already using '${protocol}'. Nothing has been updated`)]);
    this.ok();
    return { app, url, protocol, updated };
  }
}

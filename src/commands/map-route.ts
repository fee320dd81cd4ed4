import * as Flags from '@oclif/core/flags';
import { KfCommand } from '../base-command.ts';
import { appArg, hostnameFlag, pathFlag, portFlag, requiredArg } from '../flags.ts';
import { KfError } from '../lib/errors.ts';
import { line } from '../lib/views/block.ts';

interface Result {
  app: string;
  url: string;
  created: boolean;
  mapped: boolean;
}

/** @throws KfError `usage` for a protocol that kf does not route: a flag is never ignored */
function assertAppProtocol(protocol: string): void {
  if (protocol === 'http1') return;
  const why = protocol === 'http2' ? 'kf does not route HTTP/2 to apps yet' : `there is no protocol '${protocol}'`;
  throw new KfError('usage', `Incorrect Usage: --app-protocol cannot be '${protocol}': ${why}. The only possible value is 'http1'.`);
}

export default class MapRoute extends KfCommand<Result> {
  static override summary = 'lead a URL to an app; create a missing route';
  static override changes = true;
  static override examples = [
    'kf map-route example-app apps.example.com --hostname shop',
    'kf map-route example-app apps.example.com -n shop --path cart',
  ];
  static override seeAlso = ['domains', 'routes', 'unmap-route'];
  static override args = { APP_NAME: appArg(), DOMAIN: requiredArg('domain') };
  static override flags = {
    hostname: hostnameFlag(),
    path: pathFlag(),
    'app-port': portFlag('app-port', 'port the app listens on'),
    'app-protocol': Flags.string({ summary: 'http1, the only one so far', helpValue: 'PROTOCOL', default: 'http1' }),
  };

  async run(): Promise<Result> {
    const { args, flags } = await this.parse(MapRoute);
    assertAppProtocol(flags['app-protocol']);
    const [session, { mapRoute }] = await this.inSpace(import('../lib/ops/routes/routes.ts'));
    const { org, space, user } = session;
    const name = args.APP_NAME;
    const app = await this.findApp(session, name);
    const port = flags['app-port'];
    const address = { domain: args.DOMAIN, host: flags.hostname, path: flags.path ?? '', port };
    const { url, created, mapped } = await mapRoute(session, app, address, (step, route) => {
      if (step === 'create') this.say`Creating route ${route} for org ${org.name} / space ${space.name} as ${user}...`;
      else if (step === 'created') this.ok();
      else this.announce`Mapping route ${route} to app ${name}`;
    });
    if (!mapped) this.print([line(`App '${name}' is already mapped to route '${url}'. Nothing has been updated.`)]);
    this.ok();
    return { app: name, url, created, mapped };
  }
}

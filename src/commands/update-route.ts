import * as Flags from '@oclif/core/flags';
import { KfCommand } from '../base-command.ts';
import { hostnameFlag, pathFlag, requiredArg } from '../flags.ts';
import { assertRouteOptions } from '../lib/cf/route-options.ts';
import { incorrectUsage } from '../lib/cf/usage.ts';
import { line } from '../lib/views/block.ts';

interface Result {
  url: string;
  updated: boolean;
}

export default class UpdateRoute extends KfCommand<Result> {
  static override summary = 'set an option of a route, if the gateway can do it';
  static override examples = [
    'kf update-route apps.example.com -n shop -o loadbalancing=round-robin',
    'kf update-route apps.example.com -n shop -r loadbalancing',
  ];
  static override seeAlso = ['check-route', 'domains', 'map-route', 'routes', 'unmap-route'];
  static override args = { DOMAIN: requiredArg('domain') };
  static override flags = {
    hostname: hostnameFlag(),
    path: pathFlag(),
    option: Flags.string({ char: 'o', multiple: true, summary: 'loadbalancing=round-robin, what gateways do', helpValue: 'OPTION=VALUE' }),
    'remove-option': Flags.string({ char: 'r', multiple: true, summary: 'name of an option', helpValue: 'OPTION' }),
  };

  async run(): Promise<Result> {
    const { args, flags } = await this.parse(UpdateRoute);
    const { option = [], 'remove-option': removed = [] } = flags;
    if (option.length + removed.length === 0) throw incorrectUsage('No options were specified for the update of the route');
    assertRouteOptions(option, removed);
    const [session, { showRoute }] = await this.inSpace(import('../lib/ops/routes/list.ts'));
    const { org, space, user } = session;
    const { url } = await showRoute(session, { domain: args.DOMAIN, host: flags.hostname, path: flags.path ?? '' });
    this.say`Updating route ${url} for org ${org.name} / space ${space.name} as ${user}...`;
    this.print([line(`Route ${url} has been updated`)]);
    this.ok();
    return { url, updated: false };
  }
}

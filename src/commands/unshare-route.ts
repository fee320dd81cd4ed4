import { KfCommand } from '../base-command.ts';
import { routeAndSpaceFlags, routeAndSpaceIn, routeArgs } from '../flags/route-and-space.ts';

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
  static override args = routeArgs;
  static override flags = routeAndSpaceFlags('the other space');

  async run(): Promise<Result> {
    const { args, flags } = await this.parse(UnshareRoute);
    const named = routeAndSpaceIn(args, flags);
    const [session, { unshareRoute }] = await this.inSpace(import('../lib/ops/routes/share.ts'));
    let url = '';
    const unshared = await unshareRoute(session, named, (found) => {
      url = found;
      this.say`Unsharing route ${url} from space ${named.otherSpace} as ${session.user}`;
    });
    if (!unshared) this.warn(`Route '${url}' is not shared with space '${named.otherSpace}'.`);
    this.ok();
    return { url, space: named.otherSpace, unshared };
  }
}

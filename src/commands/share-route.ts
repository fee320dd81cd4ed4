import { KfCommand } from '../base-command.ts';
import { routeAndSpaceFlags, routeAndSpaceIn, routeArgs } from '../flags/route-and-space.ts';

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
  static override args = routeArgs;
  static override flags = routeAndSpaceFlags('the other space');

  async run(): Promise<Result> {
    const { args, flags } = await this.parse(ShareRoute);
    const named = routeAndSpaceIn(args, flags);
    const [session, { shareRoute }] = await this.inSpace(import('../lib/ops/routes/share.ts'));
    let url = '';
    const shared = await shareRoute(session, named, (found) => {
      url = found;
      this.say`Sharing route ${url} to space ${named.otherSpace} as ${session.user}`;
    });
    if (!shared) this.warn(`Route '${url}' is shared with space '${named.otherSpace}' already.`);
    this.ok();
    return { url, space: named.otherSpace, shared };
  }
}

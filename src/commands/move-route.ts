import { KfCommand } from '../base-command.ts';
import { routeAndSpaceFlags, routeAndSpaceIn, routeArgs } from '../flags/route-and-space.ts';

interface Result {
  url: string;
  space: string;
  moved: boolean;
}

export default class MoveRoute extends KfCommand<Result> {
  static override summary = 'move a route without apps to another space';
  static override changes = true;
  static override examples = [
    'kf move-route apps.example.com -n shop -s other-space',
    'kf move-route apps.example.com -n shop -s other-space -o other-org',
  ];
  static override seeAlso = ['create-route', 'map-route', 'routes', 'unmap-route'];
  static override args = routeArgs;
  static override flags = routeAndSpaceFlags('space that gets the route');

  async run(): Promise<Result> {
    const { args, flags } = await this.parse(MoveRoute);
    const named = routeAndSpaceIn(args, flags);
    const [session, { moveRoute }] = await this.inSpace(import('../lib/ops/routes/move.ts'));
    let url = '';
    const moved = await moveRoute(session, named, (found) => {
      url = found;
      this.say`Move ownership of route ${url} to space ${named.otherSpace} as ${session.user}`;
    });
    if (!moved) this.warn(`Space '${named.otherSpace}' has the route '${url}' already.`);
    this.ok();
    return { url, space: named.otherSpace, moved };
  }
}

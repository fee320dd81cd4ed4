import { KfCommand } from '../base-command.ts';
import type { RouteSummary } from '../lib/api/results.ts';
import { renderRoutes } from '../lib/views/target.ts';

export default class Routes extends KfCommand<RouteSummary[]> {
  static override summary = 'list all routes in the targeted space';
  static override examples = ['kf routes', 'kf routes --json'];
  static override aliases = ['r'];
  static override seeAlso = ['domains', 'map-route', 'unmap-route'];

  async run(): Promise<RouteSummary[]> {
    await this.parse(Routes);
    const [session, { listRoutes }] = await this.inSpace(import('../lib/ops/routes/routes.ts'));
    this.say`Getting routes for org ${session.org.name} / space ${session.space.name} as ${session.user}...`;
    this.say``;
    const routes = await listRoutes(session);
    this.print(renderRoutes(routes));
    return routes;
  }
}

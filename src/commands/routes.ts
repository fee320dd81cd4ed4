import * as Flags from '@oclif/core/flags';
import { KfCommand } from '../base-command.ts';
import { labelsFlag } from '../flags.ts';
import type { RouteSummary } from '../lib/api/results.ts';
import { renderRoutes } from '../lib/views/routes.ts';

export default class Routes extends KfCommand<RouteSummary[]> {
  static override summary = 'list all routes in the targeted space or org';
  static override examples = ['kf routes', 'kf routes --org-level'];
  static override aliases = ['r'];
  static override seeAlso = ['check-route', 'domains', 'map-route', 'unmap-route'];
  static override flags = { 'org-level': Flags.boolean({ summary: 'routes of all spaces of the org' }), labels: labelsFlag() };

  async run(): Promise<RouteSummary[]> {
    const { flags } = await this.parse(Routes);
    const routes = flags['org-level'] ? await this.#ofOrg(flags.labels) : await this.#ofSpace(flags.labels);
    this.print(renderRoutes(routes));
    return routes;
  }

  async #ofSpace(labels: string | undefined): Promise<RouteSummary[]> {
    const [session, { listRoutes }] = await this.inSpace(import('../lib/ops/routes/list.ts'));
    this.say`Getting routes for org ${session.org.name} / space ${session.space.name} as ${session.user}...`;
    this.say``;
    return listRoutes(session, labels);
  }

  async #ofOrg(labels: string | undefined): Promise<RouteSummary[]> {
    const [session, { listOrgRoutes }] = await this.inOrg(import('../lib/ops/routes/list.ts'));
    this.say`Getting routes for org ${session.org.name} as ${session.user}...`;
    this.say``;
    const { routes, hidden } = await listOrgRoutes(session, labels);
    for (const space of hidden) this.warn(`The routes of space '${space}' are not in the list: you may not read them.`);
    return routes;
  }
}

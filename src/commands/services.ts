import * as Flags from '@oclif/core/flags';
import { KfCommand } from '../base-command.ts';
import type { ServiceSummary } from '../lib/api/results.ts';
import { renderServices } from '../lib/views/services.ts';

export default class Services extends KfCommand<ServiceSummary[]> {
  static override summary = 'list service instances of the space';
  static override examples = ['kf services', 'kf services --no-apps'];
  static override aliases = ['s'];
  static override seeAlso = ['bind-service', 'create-user-provided-service', 'delete-service'];
  static override flags = { 'no-apps': Flags.boolean({ summary: 'leave out the bound apps' }) };

  async run(): Promise<ServiceSummary[]> {
    const { flags } = await this.parse(Services);
    const [session, { listServices }] = await this.inSpace(import('../lib/ops/services/user-provided.ts'));
    this.announceList`Getting service instances`;
    const services = await listServices(session);
    this.print(renderServices(services, { apps: !flags['no-apps'] }));
    return services;
  }
}

import * as Flags from '@oclif/core/flags';
import { KfCommand } from '../base-command.ts';
import { requiredArg } from '../flags.ts';
import type { ServiceDetails } from '../lib/api/results.ts';
import { line } from '../lib/views/block.ts';
import { renderService } from '../lib/views/services.ts';

export default class Service extends KfCommand<ServiceDetails | { guid: string }> {
  static override summary = 'show a service and the apps bound to it';
  static override examples = ['kf service example-db', 'kf service example-db --guid'];
  static override seeAlso = ['bind-service', 'rename-service', 'services', 'update-user-provided-service'];
  static override args = { SERVICE_INSTANCE: requiredArg('service instance') };
  static override flags = { guid: Flags.boolean({ summary: 'print only the GUID' }) };

  async run(): Promise<ServiceDetails | { guid: string }> {
    const { args, flags } = await this.parse(Service);
    const name = args.SERVICE_INSTANCE.trim();
    const [session, { describeService }, { findService }] = await this.inSpace(
      import('../lib/ops/services/instances.ts'),
      import('../lib/ops/find.ts'),
    );
    if (flags.guid) {
      const { metadata } = await findService(session, name);
      this.print([line(metadata.name)]);
      return { guid: metadata.name };
    }
    this.announceList`Showing info of service ${name}`;
    const details = await describeService(session, await findService(session, name));
    this.print(renderService(details));
    return details;
  }
}

import { KfCommand } from '../base-command.ts';
import { requiredArg } from '../flags.ts';

interface Result {
  name: string;
  before: string;
  guid: string;
}

export default class RenameService extends KfCommand<Result> {
  static override summary = 'rename a service';
  static override changes = true;
  static override examples = ['kf rename-service example-db example-postgres'];
  static override seeAlso = ['service', 'services', 'update-user-provided-service'];
  static override args = {
    SERVICE_INSTANCE: requiredArg('service instance'),
    NEW_SERVICE_INSTANCE: requiredArg('its new name'),
  };

  async run(): Promise<Result> {
    const { args } = await this.parse(RenameService);
    const { SERVICE_INSTANCE: before, NEW_SERVICE_INSTANCE: name } = args;
    const [session, { renameService }, { findService }] = await this.inSpace(
      import('../lib/ops/services/instances.ts'),
      import('../lib/ops/find.ts'),
    );
    this.announce`Renaming service ${before} to ${name}`;
    const instance = await findService(session, before);
    await renameService(session, instance, name);
    this.ok();
    return { name, before, guid: instance.metadata.name };
  }
}

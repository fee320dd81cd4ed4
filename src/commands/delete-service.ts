import * as Flags from '@oclif/core/flags';
import { KfCommand } from '../base-command.ts';
import { forceFlag, requiredArg } from '../flags.ts';
import { line } from '../lib/views/block.ts';

interface Result {
  name: string;
  deleted: boolean;
}

export default class DeleteService extends KfCommand<Result> {
  static override summary = 'delete a service and its bindings';
  static override changes = true;
  static override examples = ['kf delete-service example-db', 'kf delete-service example-db -f'];
  static override aliases = ['ds'];
  static override seeAlso = ['services', 'unbind-service'];
  static override args = { SERVICE_INSTANCE: requiredArg('service instance') };
  static override flags = {
    force: forceFlag(),
    wait: Flags.boolean({ char: 'w', summary: 'wait until it is done (no effect for user-provided services)' }),
  };

  async run(): Promise<Result> {
    const { args, flags } = await this.parse(DeleteService);
    const name = args.SERVICE_INSTANCE.trim();
    const [session, { deleteService }, { findServiceIfAny }] = await this.inSpace(
      import('../lib/ops/services/user-provided.ts'),
      import('../lib/ops/find.ts'),
    );
    if (!flags.force && !(await this.confirm(`Really delete the service instance ${name}?`))) {
      this.print([line('Delete cancelled')]);
      return { name, deleted: false };
    }
    this.announce`Deleting service instance ${name}`;
    const instance = await findServiceIfAny(session, name);
    if (instance === undefined) this.print([line(`Service instance ${name} did not exist.`)]);
    else await deleteService(session, instance);
    this.ok();
    return { name, deleted: instance !== undefined };
  }
}

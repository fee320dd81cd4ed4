import * as Flags from '@oclif/core/flags';
import { KfCommand } from '../base-command.ts';
import { appArg, requiredArg } from '../flags.ts';
import { line } from '../lib/views/block.ts';

interface Result {
  app: string;
  service: string;
  unbound: boolean;
}

export default class UnbindService extends KfCommand<Result> {
  static override summary = 'remove a service from an app';
  static override changes = true;
  static override examples = ['kf unbind-service example-app example-db'];
  static override aliases = ['us'];
  static override seeAlso = ['bind-service', 'delete-service', 'services'];
  static override args = { APP_NAME: appArg(), SERVICE_INSTANCE: requiredArg('service instance') };
  static override flags = { wait: Flags.boolean({ char: 'w', summary: 'wait until it is done (no effect for user-provided services)' }) };

  async run(): Promise<Result> {
    const { args } = await this.parse(UnbindService);
    const { APP_NAME: app, SERVICE_INSTANCE: service } = args;
    const [session, { unbindService }, { findApp, findService }] = await this.inSpace(
      import('../lib/ops/services/user-provided.ts'),
      import('../lib/ops/find.ts'),
    );
    this.announce`Unbinding app ${app} from service ${service}`;
    const [cfApp, instance] = await Promise.all([findApp(session, app), findService(session, service)]);
    const unbound = await unbindService(session, cfApp, instance);
    if (!unbound) this.print([line(`Binding between ${service} and ${app} does not exist`)]);
    this.ok();
    return { app, service, unbound };
  }
}

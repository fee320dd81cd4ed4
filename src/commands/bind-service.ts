import * as Flags from '@oclif/core/flags';
import { KfCommand } from '../base-command.ts';
import { appArg, requiredArg } from '../flags.ts';
import { line } from '../lib/views/block.ts';

interface Result {
  app: string;
  service: string;
  bound: boolean;
}

export default class BindService extends KfCommand<Result> {
  static override summary = 'give an app the credentials of a service';
  static override changes = true;
  static override examples = ['kf bind-service example-app example-db', 'kf bind-service example-app example-db --binding-name db'];
  static override aliases = ['bs'];
  static override seeAlso = ['env', 'restart', 'services', 'unbind-service'];
  static override args = { APP_NAME: appArg(), SERVICE_INSTANCE: requiredArg('service instance') };
  static override flags = {
    'binding-name': Flags.string({ summary: "name of the binding, default the instance's", helpValue: 'BINDING_NAME' }),
    wait: Flags.boolean({ char: 'w', summary: 'wait until it is done (no effect for user-provided services)' }),
  };

  async run(): Promise<Result> {
    const { args, flags } = await this.parse(BindService);
    const { APP_NAME: app, SERVICE_INSTANCE: service } = args;
    const [session, { bindService, withoutEffect }, { findApp, findService }] = await this.inSpace(
      import('../lib/ops/services/user-provided.ts'),
      import('../lib/ops/find.ts'),
    );
    this.announce`Binding service instance ${service} to app ${app}`;
    const [cfApp, instance] = await Promise.all([findApp(session, app), findService(session, service)]);
    const name = flags['binding-name'];
    const bound = await bindService(session, cfApp, instance, { bindingName: name });
    for (const warning of withoutEffect(instance.spec)) this.warn(warning);
    if (!bound) this.print([line(`App ${app} is already bound to service instance ${service}.`)]);
    this.ok();
    if (bound) this.print([line(`TIP: Use '${this.frame.bin} restage ${app}' to ensure your env variable changes take effect.`)]);
    return { app, service, bound };
  }
}

import { KfCommand } from '../base-command.ts';
import { ofKubeconfig, optionalArg, originFlag, passwordNotUsed, withoutEffect } from '../flags.ts';
import { incorrectUsage } from '../lib/cf/usage.ts';
import { line, pairs } from '../lib/views/block.ts';

interface Result {
  user: string;
  kubeconfigUser: string;
}

export default class Auth extends KfCommand<Result> {
  static override summary = 'choose a user of the kubeconfig; no password is used';
  static override examples = ['kf auth example-user'];
  static override seeAlso = ['api', 'login', 'target'];
  static override environment: [string, string][] = [['CF_USERNAME', 'user when none is given']];
  static override args = { USERNAME: optionalArg('user of the kubeconfig'), PASSWORD: optionalArg('not used') };
  static override flags = { 'client-credentials': ofKubeconfig('client-credentials'), origin: originFlag() };

  async run(): Promise<Result> {
    const { args, flags } = await this.parse(Auth);
    const { env } = this.frame;
    const name = args.USERNAME ?? env['CF_USERNAME'];
    if (name === undefined || name === '') throw incorrectUsage('the required argument `USERNAME` was not provided');
    if (args.PASSWORD !== undefined || env['CF_PASSWORD'] !== undefined) {
      this.warn(passwordNotUsed);
    }
    const ignored = withoutEffect(flags);
    if (ignored !== undefined) this.warn(ignored);
    const { chooseUser } = await import('../lib/ops/tenancy/login.ts');
    const session = await this.clusterSession({ ignorePin: true, kubeconfigUser: name });
    this.print([pairs(['API endpoint:', session.cluster.identity.server]), line(), line('Authenticating...')]);
    const user = await chooseUser(session, name);
    this.ok();
    this.print([line(`Use '${this.frame.bin} target' to view or set your target org and space.`)]);
    return { user, kubeconfigUser: name };
  }
}

import { KfCommand } from '../base-command.ts';

interface Result {
  user?: string;
}

export default class Logout extends KfCommand<Result> {
  static override summary = 'forget the chosen user, org and space';
  static override examples = ['kf logout'];
  static override aliases = ['lo'];
  static override seeAlso = ['api', 'auth', 'login', 'target'];

  async run(): Promise<Result> {
    await this.parse(Logout);
    const { logOut } = await import('../lib/ops/tenancy/login.ts');
    const result = logOut(this.frame.env);
    if (result.user === undefined) this.say`Logging out...`;
    else this.say`Logging out ${result.user}...`;
    this.warn('The kubeconfig keeps its credentials; commands of kubectl still work.');
    this.ok();
    return result;
  }
}

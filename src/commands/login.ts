import * as Flags from '@oclif/core/flags';
import { KfCommand } from '../base-command.ts';
import type { TargetDetails } from '../lib/api/results.ts';
import { ofKubeconfig, originFlag, passwordNotUsed, withoutEffect } from '../flags.ts';
import { line } from '../lib/views/block.ts';
import { renderTarget } from '../lib/views/target.ts';

export default class Login extends KfCommand<TargetDetails> {
  static override summary = 'choose cluster, user, org and space; no password is used';
  static override examples = ['kf login', 'kf login -a example-context -o example-org -s example-space'];
  static override aliases = ['l'];
  static override seeAlso = ['api', 'auth', 'target'];
  static override flags = {
    api: Flags.string({ char: 'a', summary: 'context or URL', helpValue: 'API_URL' }),
    user: Flags.string({ char: 'u', summary: 'user of the kubeconfig', helpValue: 'USERNAME' }),
    password: Flags.string({ char: 'p', summary: 'not used: the kubeconfig holds the credentials', helpValue: 'PASSWORD' }),
    org: Flags.string({ char: 'o', summary: 'org', helpValue: 'ORG' }),
    space: Flags.string({ char: 's', summary: 'space', helpValue: 'SPACE' }),
    origin: originFlag(),
    'skip-ssl-validation': ofKubeconfig('skip-ssl-validation'),
  };

  async run(): Promise<TargetDetails> {
    const { flags } = await this.parse(Login);
    if (flags.password !== undefined) this.warn(passwordNotUsed);
    const ignored = withoutEffect(flags);
    if (ignored !== undefined) this.warn(ignored);
    const [{ chooseUser, contextFor, pinContext }, { describeTarget, setTarget, spaceWithoutOrg }, { listOrgs }] = await Promise.all([
      import('../lib/ops/tenancy/login.ts'),
      import('../lib/ops/tenancy/target.ts'),
      import('../lib/ops/tenancy/orgs-and-spaces.ts'),
    ]);
    const context = flags.api === undefined ? undefined : await contextFor(this.frame.env, flags.api);
    const session = await this.clusterSession({
      ignorePin: true,
      keepPlace: true,
      context,
      kubeconfigUser: flags.user,
    });
    this.print([line(`API endpoint: ${session.cluster.identity.server}`), line(), line('Authenticating...')]);
    if (flags.user === undefined) pinContext(session);
    else await chooseUser(session, flags.user);
    this.ok();
    const orgs = flags.org === undefined ? await listOrgs(session) : [];
    const org = flags.org ?? (orgs.length === 1 ? orgs[0]?.name : undefined);
    if (org === undefined && flags.space !== undefined) throw spaceWithoutOrg(session);
    const place = org === undefined ? {} : await setTarget(session, { org, space: flags.space });
    const target = await describeTarget(session, place);
    this.print(renderTarget(target, this.frame.bin));
    return target;
  }
}

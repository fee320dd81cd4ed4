import * as Flags from '@oclif/core/flags';
import { KfCommand } from '../base-command.ts';
import { ofKubeconfig, optionalArg, withoutEffect } from '../flags.ts';
import { line, pairs } from '../lib/views/block.ts';

interface Result {
  endpoint?: string;
  /** The version of the CF API that kf follows. */
  apiVersion?: string;
  kubernetesVersion?: string;
  context?: string;
}

export default class Api extends KfCommand<Result> {
  static override summary = 'set or show the cluster: a context of the kubeconfig, or its URL';
  static override examples = [
    'kf api',
    'kf api example-context',
    'kf api https://kubernetes.example.com:6443',
    'kf api kubernetes.example.com',
  ];
  static override seeAlso = ['auth', 'target'];
  static override args = { URL: optionalArg('context, URL or host') };
  static override flags = {
    unset: Flags.boolean({ summary: 'forget cluster, org and space' }),
    'skip-ssl-validation': ofKubeconfig('skip-ssl-validation'),
  };

  async run(): Promise<Result> {
    const { args, flags } = await this.parse(Api);
    const ignored = withoutEffect(flags);
    if (ignored !== undefined) this.warn(ignored);
    const { contextFor, forgetTarget, pinContext } = await import('../lib/ops/tenancy/login.ts');
    if (flags.unset) {
      this.say`Unsetting API endpoint...`;
      forgetTarget(this.frame.env);
      this.ok();
      return {};
    }
    const [{ serverVersion }, { followedApi: apiVersion }] = await Promise.all([
      import('../lib/ops/tenancy/target.ts'),
      import('../lib/v3/version.ts'),
    ]);
    const context = args.URL === undefined ? undefined : await contextFor(this.frame.env, args.URL);
    const session = await this.clusterSession({ ignorePin: true, context });
    const { server } = session.cluster.identity;
    if (context !== undefined) this.say`Setting API endpoint to ${server}...`;
    const kubernetesVersion = await serverVersion(session);
    if (context !== undefined) {
      pinContext(session);
      this.ok();
    }
    const { context: name } = session.cluster.identity;
    const rows: [string, string][] = [
      ['API endpoint:', server],
      ['API version:', apiVersion],
      ['context:', name],
      ['kubernetes:', kubernetesVersion],
    ];
    this.print([pairs(...rows)]);
    if (session.state.org === undefined)
      this.print([line(), line(`Use '${this.frame.bin} target' to view or set your target org and space.`)]);
    return { endpoint: server, apiVersion, kubernetesVersion, context: name };
  }
}

import * as Flags from '@oclif/core/flags';
import type { InferredFlags } from '@oclif/core/interfaces';
import { KfCommand } from '../base-command.ts';
import { portFlag } from '../flags.ts';
import { incorrectUsage } from '../lib/cf/usage.ts';
import { parseChoice } from '../lib/cf/values.ts';
import { defined } from '../lib/defined.ts';
import type { SetupOrder, SettingsReport } from '../lib/ops/install/kept-settings.ts';
import type { SetupRequest } from '../lib/ops/install/request.ts';
import type { SetupPreview, SetupResult } from '../lib/ops/install/setup.ts';
import { kfVersion } from '../lib/version.ts';
import { networkWarnings, planBlocks, reachWarnings, removalLines, settingsLines, setupBlocks } from '../lib/views/setup.ts';

const text = (summary: string, helpValue: string) => Flags.string({ summary, helpValue });

export default class Setup extends KfCommand<SetupResult | SetupPreview> {
  static override summary = 'install kf into a cluster, or update an installation';
  static override examples = [
    'kf setup',
    'kf setup --domain apps.example.com --gateway infra/public',
    'kf setup -f setup.yaml --dry-run -o yaml',
  ];
  static override isAboutInstallation = true;
  static override seeAlso = ['uninstall', 'target', 'push'];
  static override flags = {
    file: Flags.string({ char: 'f', summary: 'settings as YAML; flags override it', helpValue: 'FILE' }),
    domain: text('domain of the apps', 'DOMAIN'),
    registry: text('registry outside the cluster', 'HOST/PREFIX'),
    gateway: text('existing Gateway', 'NAMESPACE/NAME'),
    'gateway-class': text('existing GatewayClass', 'NAME'),
    'gateway-port': portFlag('gateway-port', 'port of the gateway as seen from outside'),
    'gateway-guard': Flags.string({ summary: 'limit what one app takes of the gateway (default), or not', helpValue: 'on|off' }),
    https: Flags.string({ summary: 'https with certificates of kf (default), or none', helpValue: 'on|off' }),
    'https-port': portFlag('https-port', 'port of the gateway for https as seen from outside'),
    'http-redirect': Flags.string({ summary: 'redirect http to https, or answer it (default)', helpValue: 'on|off' }),
    'tls-secret': text('Secret with a certificate of yours for the domain of the apps', 'NAMESPACE/NAME'),
    'tls-issuer': text('cert-manager issuer for the certificates of all domains', 'NAME|NAMESPACE/NAME|off'),
    'storage-class': text("StorageClass of the registry's volume", 'NAME'),
    'controller-image': text("image with the controller's programs, instead of a stock Node image", 'IMAGE'),
    'network-policies': Flags.string({ summary: 'make NetworkPolicies (default), or none', helpValue: 'on|off' }),
    'image-prefix': text('mirror that all images come from', 'PREFIX'),
    'dry-run': Flags.boolean({ summary: 'print the objects, write nothing' }),
    output: Flags.string({ char: 'o', summary: 'form of --dry-run (yaml)', helpValue: 'yaml' }),
  };

  async run(): Promise<SetupResult | SetupPreview> {
    const { flags } = await this.parse(Setup);
    for (const name of ['network-policies', 'https', 'http-redirect', 'gateway-guard'] as const)
      if (flags[name] !== undefined) parseChoice(flags[name], `--${name}`, ['on', 'off']);
    if (flags.output !== undefined) parseChoice(flags.output, '-o', ['yaml']);
    if (flags.output !== undefined && !flags['dry-run']) throw incorrectUsage('-o is the form of --dry-run, which is missing.');
    const { previewSetup, readSetupFile, setup } = await import('../lib/ops/install/index.ts');
    const order: SetupOrder = { flags: requestFrom(flags), ...(flags.file === undefined ? {} : { file: await readSetupFile(flags.file) }) };
    const session = await this.clusterSession({ ignorePin: true });
    const context = {
      cluster: session.cluster,
      report: this.report,
      version: kfVersion(),
      signal: this.signal,
      onSettings: (report: SettingsReport) => this.#tell(report),
    };
    if (flags['dry-run']) {
      const preview = await previewSetup(context, order);
      for (const text of removalLines(preview.removals)) this.terminal.err(text);
      const { printYaml } = await import('../lib/output/yaml.ts');
      printYaml(this.terminal, preview.objects);
      return preview;
    }
    this.say`Setting up kf in cluster ${session.cluster.identity.context} as ${session.user}...`;
    const installed = await setup({ ...context, onPlan: (plan) => this.print(planBlocks(plan)) }, order);
    const { targetAfterSetup } = await import('../lib/ops/tenancy/target.ts');
    const result = { ...installed, target: await targetAfterSetup(session, installed) };
    this.print(setupBlocks(result));
    this.ok();
    for (const warning of networkWarnings(result.network, this.frame.bin)) this.warn(warning);
    for (const warning of reachWarnings(result.reach)) this.warn(warning);
    this.terminal.err(`Next: ${this.frame.bin} push APP -p PATH`);
    return result;
  }

  /** Reports kept and changed settings on stderr, because stdout of a dry run has the objects. */
  #tell(report: SettingsReport): void {
    this.display.done();
    for (const text of settingsLines(report, this.frame.bin)) this.terminal.err(text);
  }
}

/** The given flags, under the keys of the settings file. */
function requestFrom(flags: InferredFlags<typeof Setup.flags>): SetupRequest {
  return defined({
    domain: flags.domain,
    registry: flags.registry,
    gateway: flags.gateway,
    gatewayClass: flags['gateway-class'],
    gatewayPort: flags['gateway-port'],
    gatewayGuard: flags['gateway-guard'],
    https: flags.https,
    httpsPort: flags['https-port'],
    httpRedirect: flags['http-redirect'],
    tlsSecret: flags['tls-secret'],
    tlsIssuer: flags['tls-issuer'],
    storageClass: flags['storage-class'],
    controllerImage: flags['controller-image'],
    imagePrefix: flags['image-prefix'],
    networkPolicies: flags['network-policies'],
  });
}

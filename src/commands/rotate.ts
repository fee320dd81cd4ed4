import { KfCommand } from '../base-command.ts';
import { requiredArg } from '../flags.ts';
import { KfError } from '../lib/errors.ts';
import type { RotateResult } from '../lib/ops/registry/rotate-key.ts';
import { line } from '../lib/views/block.ts';
import { renderRotation } from '../lib/views/rotation.ts';

const rotatable = 'registry-key';

export default class Rotate extends KfCommand<RotateResult> {
  static override summary = "change the key that signs the registry's credentials";
  static override changes = true;
  static override examples = ['kf rotate registry-key', 'kf rotate registry-key --json'];
  static override isAboutInstallation = true;
  static override seeAlso = ['setup'];
  static override args = { KEY: requiredArg(`what to change: ${rotatable}`) };

  async run(): Promise<RotateResult> {
    const { args } = await this.parse(Rotate);
    if (args.KEY !== rotatable)
      throw new KfError('usage', `There is no key '${args.KEY}' to change.`, { hints: [`${this.frame.bin} rotate ${rotatable}`] });
    const [session, { rotateRegistryKey }] = await this.inCluster(import('../lib/ops/registry/rotate-key.ts'));
    this.announce`Changing the key of the registry`;
    const { cluster, now } = session;
    const result = await rotateRegistryKey({ cluster, now, info: await session.info(), report: this.report, signal: this.signal });
    if (this.exitCode(result) === 0) this.ok();
    else this.print([line()]);
    this.print(renderRotation(result));
    return result;
  }

  protected override exitCode({ leftOut }: RotateResult): number {
    return leftOut.length > 0 ? 1 : 0;
  }
}

import { KfCommand } from '../base-command.ts';
import { repeatableArg, requiredArg } from '../flags.ts';
import { KfError } from '../lib/errors.ts';
import type { CheckedFiles } from '../lib/ops/migration.ts';
import { renderCheck } from '../lib/views/migration.ts';

export default class Migrate extends KfCommand<CheckedFiles> {
  static override summary = 'check which cf calls of scripts and CI files work with kf';
  static override examples = ['kf migrate check deploy.sh .gitlab-ci.yml', 'kf migrate check ci/*.yml --json'];
  static override seeAlso = ['help'];
  static override args = {
    ACTION: requiredArg('what to do: check'),
    FILE: repeatableArg('shell script, YAML, JSON, Makefile or Jenkinsfile'),
  };

  async run(): Promise<CheckedFiles> {
    const { args } = await this.parse(Migrate);
    if (args.ACTION !== 'check') {
      const { bin } = this.frame;
      throw new KfError('usage', `'${args.ACTION}' is no action of '${bin} migrate'.`, { hints: [`${bin} migrate check FILE...`] });
    }
    const { checkFiles } = await import('../lib/ops/migration.ts');
    const checked = await checkFiles(args.FILE);
    this.print(renderCheck(checked));
    return checked;
  }

  protected override exitCode({ broken }: CheckedFiles): number {
    return broken > 0 ? 1 : 0;
  }
}

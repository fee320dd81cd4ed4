import * as Flags from '@oclif/core/flags';
import { KfCommand } from '../base-command.ts';
import { appArg, numberFlag } from '../flags.ts';
import type { Autoscaler } from '../lib/api/results.ts';
import { incorrectUsage, noSuchPath } from '../lib/cf/usage.ts';
import { defined } from '../lib/defined.ts';
import type { AutoscalerChange } from '../lib/ops/apps/autoscale.ts';
import { renderAutoscalers } from '../lib/views/autoscaler.ts';

const mostInstances = 1_000;
const instances = (name: string, summary: string) => numberFlag({ name, least: 1, most: mostInstances, summary, helpValue: 'INSTANCES' });
const percent = (name: string, summary: string, most: number) => numberFlag({ name, least: 1, most, summary, helpValue: 'PERCENT' });

export default class Autoscale extends KfCommand<Autoscaler[]> {
  static override summary = 'scale an app by its use of CPU and memory';
  static override changes = true;
  static override examples = [
    'kf autoscale example-app',
    'kf autoscale example-app --min 2 --max 8 --cpu 60',
    'kf autoscale example-app --policy policy.json',
    'kf autoscale example-app --off',
  ];
  static override seeAlso = ['app', 'scale'];
  static override args = { APP_NAME: appArg() };
  static override flags = {
    process: Flags.string({ summary: 'process type; default web, and all when shown', helpValue: 'PROCESS' }),
    min: instances('min', 'fewest instances'),
    max: instances('max', 'most instances'),
    cpu: percent('cpu', 'average of all instances to keep, in percent of one core, the unit of cpu in app', 10_000),
    memory: percent('memory', 'average of all instances to keep, in percent of the memory limit', 100),
    policy: Flags.string({ summary: "policy file of cf's app-autoscaler, as far as Kubernetes can follow it", helpValue: 'FILE' }),
    off: Flags.boolean({ summary: 'remove the autoscaler; the instances stay as they are' }),
  };

  async run(): Promise<Autoscaler[]> {
    const { args, flags } = await this.parse(Autoscale);
    const { min: least, max: most, cpu, memory, policy, off } = flags;
    const numbers: AutoscalerChange = defined({ least, most });
    const targets = defined({ cpu, memoryutil: memory });
    const change: AutoscalerChange = Object.keys(targets).length === 0 ? numbers : { ...numbers, targets };
    const names = Object.keys(change).length > 0;
    if (Number(names) + Number(policy !== undefined) + Number(off) > 1)
      throw incorrectUsage('--off, --policy and the flags of a new target exclude each other');
    const [session, ops] = await this.inSpace(import('../lib/ops/apps/autoscale.ts'));
    const name = args.APP_NAME;
    if (names || policy !== undefined || off) {
      const process = flags.process ?? 'web';
      const wanted = policy === undefined ? { change, isWhole: false } : { change: await this.#read(policy), isWhole: true };
      if (off) this.announce`Removing autoscaler of app ${name} process ${process}`;
      else this.announce`Setting autoscaler of app ${name} process ${process}`;
      const app = await this.findApp(session, name);
      if (!off) await ops.setAutoscaler(session, app, { process, ...wanted });
      else if (!(await ops.removeAutoscaler(session, app, process))) this.warn(`Process '${process}' has no autoscaler.`);
      this.ok();
      if (!off && !(await ops.hasMetrics(session)))
        this.warn(
          'This cluster has no metrics of its pods (metrics.k8s.io), so nothing is scaled until it has. Ask its operator for metrics-server.',
        );
    }
    this.announceList`Showing autoscalers of app ${name}`;
    const shown = await ops.describeAutoscalers(session, await this.findApp(session, name), flags.process);
    this.print(renderAutoscalers(shown));
    return shown;
  }

  async #read(file: string): Promise<AutoscalerChange> {
    const [{ readJsonOrFile }, { readAutoscalerPolicy }] = await Promise.all([
      import('../lib/cf/json-or-file.ts'),
      import('../lib/cf/autoscaler-policy.ts'),
    ]);
    const policy = await readJsonOrFile(file, '--policy');
    if (policy === undefined) throw noSuchPath(file);
    const { settings, notes } = readAutoscalerPolicy(policy, file);
    for (const note of notes) this.warn(note);
    return settings;
  }
}

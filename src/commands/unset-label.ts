import { LabelCommand, resourceArgs } from '../flags/labels.ts';
import { repeatableArg } from '../flags.ts';
import { parseLabelNames, parseResource, type LabelledResource } from '../lib/cf/labels.ts';

interface Result {
  resource: LabelledResource;
  name: string;
  labels: Record<string, string>;
  changed: boolean;
}

export default class UnsetLabel extends LabelCommand<Result> {
  static override summary = 'remove labels of a resource';
  static override changes = true;
  static override examples = ['kf unset-label app example-app env', 'kf unset-label space example-space team tier'];
  static override seeAlso = ['labels', 'set-label'];
  static override args = { ...resourceArgs, KEY: repeatableArg('name of a label, several separated by blanks') };

  async run(): Promise<Result> {
    const { args } = await this.parse(UnsetLabel);
    const [resource, name] = [parseResource(args.RESOURCE), args.RESOURCE_NAME];
    const names = parseLabelNames(args.KEY);
    const [{ session, find }, { changeLabels }] = await Promise.all([this.open(resource, name), import('../lib/ops/labels.ts')]);
    this.announce`Removing label(s) for ${resource} ${name}`;
    const { labels, changed } = await changeLabels(session, await find(), Object.fromEntries(names.map((label) => [label, null])));
    this.ok();
    return { resource, name, labels, changed };
  }
}

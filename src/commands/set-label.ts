import { LabelCommand, resourceArgs } from '../flags/labels.ts';
import { repeatableArg } from '../flags.ts';
import { parseLabels, parseResource, type LabelledResource } from '../lib/cf/labels.ts';

interface Result {
  resource: LabelledResource;
  name: string;
  labels: Record<string, string>;
  changed: boolean;
}

export default class SetLabel extends LabelCommand<Result> {
  static override summary = 'set labels of a resource';
  static override changes = true;
  static override examples = [
    'kf set-label app example-app env=production',
    'kf set-label space example-space team=web tier=1',
    'kf set-label space example-space kf.cloudfoundry.org/strategy=recreate',
  ];
  static override seeAlso = ['labels', 'unset-label'];
  static override args = { ...resourceArgs, 'KEY=VALUE': repeatableArg('label, several separated by blanks') };

  async run(): Promise<Result> {
    const { args } = await this.parse(SetLabel);
    const [resource, name] = [parseResource(args.RESOURCE), args.RESOURCE_NAME];
    const wanted = parseLabels(args['KEY=VALUE']);
    const [{ session, find }, { changeLabels }] = await Promise.all([this.open(resource, name), import('../lib/ops/labels.ts')]);
    this.announce`Setting label(s) for ${resource} ${name}`;
    const { labels, changed } = await changeLabels(session, await find(), wanted);
    this.ok();
    return { resource, name, labels, changed };
  }
}

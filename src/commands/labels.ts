import { LabelCommand, resourceArgs } from '../flags/labels.ts';
import { parseResource, type LabelledResource } from '../lib/cf/labels.ts';
import { renderLabels } from '../lib/views/labels.ts';

interface Result {
  resource: LabelledResource;
  name: string;
  labels: Record<string, string>;
}

export default class Labels extends LabelCommand<Result> {
  static override summary = 'list the labels of a resource';
  static override examples = ['kf labels app example-app', 'kf labels route example-app.example.com', 'kf labels org example-org'];
  static override seeAlso = ['set-label', 'unset-label'];
  static override args = resourceArgs;

  async run(): Promise<Result> {
    const { args } = await this.parse(Labels);
    const [resource, name] = [parseResource(args.RESOURCE), args.RESOURCE_NAME];
    const [{ find }, { labelsOf }] = await Promise.all([this.open(resource, name), import('../lib/ops/labels.ts')]);
    this.announceList`Getting labels for ${resource} ${name}`;
    const labels = labelsOf(await find());
    this.print(renderLabels(labels));
    return { resource, name, labels };
  }
}

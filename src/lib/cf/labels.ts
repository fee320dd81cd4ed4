// Arguments of the commands about labels: the kind of a resource, KEY=VALUE, KEY.

import { KfError } from '../errors.ts';
import { metadataProblem } from '../api/metadata.ts';

/** The kinds of resources with labels, under the names of cf. */
export const labelledResources = ['app', 'domain', 'org', 'route', 'service-instance', 'space'] as const;
export type LabelledResource = (typeof labelledResources)[number];

const ofBuilder = { because: 'stacks and buildpacks are those of the builder, which has no labels', hint: 'kf buildpacks' };
const ofBroker = { because: 'kf has user-provided services only, which have no broker', hint: 'kf labels service-instance NAME' };

/** Resources with labels in cf that do not exist in kf. */
const absent: Readonly<Record<string, { because: string; hint: string }>> = {
  buildpack: ofBuilder,
  stack: ofBuilder,
  'service-broker': ofBroker,
  'service-offering': ofBroker,
  'service-plan': ofBroker,
};

/** A kind of resource, in any case. @throws KfError `usage`, in cf's words for a word that is no resource */
export function parseResource(text: string): LabelledResource {
  const word = text.toLowerCase();
  const found = labelledResources.find((name) => name === word);
  if (found !== undefined) return found;
  const elsewhere = absent[word];
  if (elsewhere !== undefined)
    throw new KfError('usage', `A ${word} has no labels in kf: ${elsewhere.because}.`, { hints: [elsewhere.hint] });
  throw new KfError('usage', `Unsupported resource type of '${text}'`, {
    hints: [`RESOURCE is one of: ${labelledResources.join(', ')}`],
  });
}

function assertLabel(name: string, value: string): void {
  const problem = metadataProblem('labels', name, value);
  if (problem !== undefined) throw new KfError('usage', `Metadata error: ${problem}`);
}

/** `env=prod` → the label. @throws KfError `usage` */
export function parseLabels(pairs: readonly string[]): Record<string, string> {
  const labels = pairs.map((pair): [string, string] => {
    const at = pair.indexOf('=');
    if (at < 0) {
      const hints = [`kf set-label RESOURCE RESOURCE_NAME ${pair}=VALUE`];
      throw new KfError('usage', `Metadata error: no value provided for label '${pair}'`, { hints });
    }
    const [name, value] = [pair.slice(0, at), pair.slice(at + 1)];
    assertLabel(name, value);
    return [name, value];
  });
  return Object.fromEntries(labels);
}

/** Names of labels that are to be removed. @throws KfError `usage` */
export function parseLabelNames(names: readonly string[]): string[] {
  for (const name of names) {
    if (name.includes('=')) throw new KfError('usage', `Metadata error: '${name}' is not the name of a label: it contains '='.`);
    assertLabel(name, '');
  }
  return [...new Set(names)];
}

// The `label_selector` of the v3 API: the same requirements as in Kubernetes, applied to the labels that the API shows.

import { V3Error } from './errors.ts';

type Labels = Readonly<Record<string, string>>;
type Requirement = (labels: Labels) => boolean;

const wordsOf = (text: string): string[] => text.split(',').map((word) => word.trim());

/** `a=b`, `a==b`, `a!=b`, `a in (b,c)`, `a notin (b,c)`, `a`, `!a`; undefined for another text. */
function requirementOf(text: string): Requirement | undefined {
  const [, key = '', set, among] = /^([^\s!=(),]+)\s+(in|notin)\s*\(([^()]*)\)$/.exec(text) ?? [];
  if (set !== undefined) {
    const values = wordsOf(among ?? '');
    return (labels) => values.includes(labels[key] ?? '\0') === (set === 'in');
  }
  const [, name = '', operator, value = ''] = /^([^\s!=(),]+)\s*(==|!=|=)\s*([^\s!=(),]*)$/.exec(text) ?? [];
  if (operator !== undefined) return (labels) => (labels[name] === value) === (operator !== '!=');
  const [, not, present = ''] = /^(!?)([^\s!=(),]+)$/.exec(text) ?? [];
  return not === undefined ? undefined : (labels) => (labels[present] === undefined) === (not === '!');
}

/** The requirements; a comma between parentheses separates values, not requirements. */
function partsOf(selector: string): string[] {
  const parts: string[] = [];
  let open = false;
  let part = '';
  for (const letter of selector) {
    if (letter === ',' && !open) {
      parts.push(part.trim());
      part = '';
      continue;
    }
    if (letter === '(' || letter === ')') open = letter === '(';
    part += letter;
  }
  return [...parts, part.trim()].filter((text) => text !== '');
}

/** @returns whether labels fulfil the selector @throws V3Error for a selector that cannot be read */
export function selectorOf(selector: string): Requirement {
  const all = partsOf(selector).map((part) => {
    const requirement = requirementOf(part);
    if (requirement === undefined) throw new V3Error('bad-query', `The query parameter is invalid: Invalid label_selector value '${part}'`);
    return requirement;
  });
  return (labels) => all.every((requirement) => requirement(labels));
}

// Objects as a stream of YAML documents, for `--dry-run -o yaml`.

import { stringify } from 'yaml';
import type { Terminal } from './terminal.ts';

/** Each object as a document that `kubectl apply -f -` takes; nothing with `--json`. */
export function printYaml(terminal: Terminal, objects: readonly unknown[]): void {
  for (const object of objects) terminal.out(`---\n${stringify(object, { aliasDuplicateObjects: false }).trimEnd()}`);
}

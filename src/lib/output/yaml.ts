// Objects as a stream of YAML documents, for `--dry-run -o yaml`.

import { stringify } from 'yaml';
import type { Terminal } from './terminal.ts';

/** Prints each object as a document for `kubectl apply -f -`; nothing with `--json`. */
export function printYaml(terminal: Terminal, objects: readonly unknown[]): void {
  for (const object of objects) terminal.out(`---\n${stringify(object, { aliasDuplicateObjects: false }).trimEnd()}`);
}

// Parses the text of a manifest into its apps. Reads no files.

import { KfError } from '../errors.ts';
import { nearest } from '../api/names.ts';
import { isAppKey, readApplication } from './application.ts';
import type { ManifestApp } from './application.ts';
import { isNull, Problems } from './fields.ts';
import type { Remark } from './fields.ts';
import { located, parseTree } from './tree.ts';
import type { LocatedEntry, LocatedMap } from './tree.ts';
import { substitute } from './variables.ts';
import type { Variables } from './variables.ts';

const topLevel = ['applications', 'version'];
const none = 'Manifest must have at least one application.';

/** A remark about a top-level key without effect, in cf as in kf; users write keys of an app there by mistake. */
function topLevelRemark({ key }: LocatedEntry): string {
  const near = nearest(key, topLevel);
  const ofApp = isAppKey(key) ? " A setting of an app belongs into its entry under 'applications'." : '';
  return `'${key}' is no key of a manifest and has no effect.${near === undefined ? ofApp : ` Did you mean '${near}'?`}`;
}

export interface ParsedManifest {
  apps: ManifestApp[];
  /** Remarks about its top-level keys. */
  remarks: Remark[];
}

/**
 * The apps of a manifest.
 *
 * @param file name of the file for errors
 * @throws KfError `usage` with file:line:column for each problem
 */
export function parseManifest(file: string, text: string, variables: Variables = new Map()): ParsedManifest {
  const tree = parseTree(file, text);
  if (tree === undefined || isNull(tree)) throw new KfError('usage', none);
  const manifest = substitute(file, tree, variables);
  if (manifest.kind !== 'map') throw new KfError('usage', located(file, manifest.at, "A manifest is a map with the key 'applications'."));
  const problems = new Problems(file);
  checkTop(manifest, problems);
  const remarks = problems.takeRemarks();
  const applications = manifest.entries.find((entry) => entry.key === 'applications')?.value;
  if (applications?.kind !== 'list' || applications.items.length === 0) {
    problems.throwIfAny();
    throw new KfError('usage', [...remarks.map(({ at, text: said }) => located(file, at, said)), none].join('\n'));
  }
  const apps = applications.items.flatMap((item) => {
    if (item.kind === 'map') return [readApplication(item, problems)];
    problems.add(item.at, 'An entry of applications is a map with at least a name.');
    return [];
  });
  checkNames(apps, problems);
  problems.throwIfAny();
  return { apps, remarks };
}

/** At the top level, anchors for later use may have any name, and so may keys that begin with `x-`. */
function checkTop(manifest: LocatedMap, problems: Problems): void {
  for (const entry of manifest.entries) {
    if (entry.key === 'version') {
      const { value } = entry;
      if (value.kind !== 'scalar' || (value.value !== null && value.text !== '1')) problems.add(value.at, 'version can only be 1.');
    } else if (!topLevel.includes(entry.key) && !entry.anchored && !entry.key.startsWith('x-')) {
      problems.remark(entry.keyAt, topLevelRemark(entry));
    }
  }
}

function checkNames(apps: ManifestApp[], problems: Problems): void {
  const seen = new Map<string, ManifestApp>();
  for (const app of apps) {
    if (app.name === undefined) continue;
    const before = seen.get(app.name.toLowerCase());
    if (before !== undefined) problems.add(app.nameAt, `An app named '${app.name}' stands already in line ${before.nameAt.line}.`);
    seen.set(app.name.toLowerCase(), app);
  }
}

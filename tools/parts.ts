// The list of the parts of an installation: one entry for each file of the folder, so that a new part is a new file.

import { readdir } from 'node:fs/promises';
import { join } from 'node:path';

const folder = 'src/lib/ops/install';

const camel = (name: string): string => name.replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase());

/** The file that imports them all. */
export async function partsFile(root: string): Promise<{ file: string; text: string }> {
  const names = (await readdir(join(root, folder, 'parts'))).map((file) => file.replace(/\.ts$/, '')).toSorted();
  const lines = [
    '// Written by tools/generate.ts: every file of parts/.',
    '',
    "import type { Part } from './part.ts';",
    ...names.map((name) => `import { part as ${camel(name)} } from './parts/${name}.ts';`),
    '',
    '/** All parts of an installation, by name. */',
    'export const parts: readonly Part[] = [',
    ...names.map((name) => `  ${camel(name)},`),
    '];',
    '',
  ];
  return { file: `${folder}/parts.generated.ts`, text: lines.join('\n') };
}

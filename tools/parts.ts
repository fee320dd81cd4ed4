// Generates the list of the parts of an installation from the files of a folder: to add a part, add a file.

import { readdir } from 'node:fs/promises';
import { join } from 'node:path';

const folder = 'src/lib/ops/install';

const camelCase = (name: string): string => name.replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase());

/** Path and text of the file that imports all parts. */
export async function partsFile(root: string): Promise<{ file: string; text: string }> {
  const names = (await readdir(join(root, folder, 'parts'))).map((file) => file.replace(/\.ts$/, '')).toSorted();
  const lines = [
    '// Written by tools/generate.ts: every file of parts/.',
    '',
    "import type { Part } from './part.ts';",
    ...names.map((name) => `import { part as ${camelCase(name)} } from './parts/${name}.ts';`),
    '',
    '/** All parts of an installation, by name. */',
    'export const parts: readonly Part[] = [',
    ...names.map((name) => `  ${camelCase(name)},`),
    '];',
    '',
  ];
  return { file: `${folder}/parts.generated.ts`, text: lines.join('\n') };
}

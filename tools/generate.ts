// Writes every generated file of the repository: `node tools/generate.ts`; with --check it only compares and fails on a difference.

import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { definitionOf } from './crds/definition.ts';
import { networkKinds } from './crds/network.ts';
import { runtimeKinds } from './crds/runtime.ts';
import { serviceKinds } from './crds/services.ts';
import { typesOf } from './crds/types.ts';
import { workloadKinds } from './crds/workloads.ts';
import { documentFiles, summariesFile } from './documents.ts';
import { partsFile } from './parts.ts';
import { roleFiles } from './roles.ts';

const root = join(import.meta.dirname, '..');
const kinds = [...workloadKinds, ...networkKinds, ...serviceKinds, ...runtimeKinds];

async function generated(): Promise<{ file: string; text: string }[]> {
  const commands = (await readdir(join(root, 'src/commands'))).map((file) => file.replace(/\.ts$/, ''));
  return [
    ...kinds.map(definitionOf),
    { file: 'src/lib/api/types.generated.ts', text: await typesOf(kinds) },
    ...(await roleFiles(root)),
    await partsFile(root),
    await summariesFile(commands),
    ...(await documentFiles(root, commands)),
  ];
}

async function current(file: string): Promise<string> {
  return readFile(join(root, file), 'utf8').catch(() => '');
}

const check = process.argv.includes('--check');
const stale: string[] = [];
for (const { file, text } of await generated()) {
  if ((await current(file)) === text) continue;
  stale.push(file);
  if (check) continue;
  await mkdir(dirname(join(root, file)), { recursive: true });
  await writeFile(join(root, file), text);
}
if (stale.length > 0) process.stdout.write(`${check ? 'out of date' : 'written'}: ${stale.join(', ')}\n`);
if (check && stale.length > 0) process.exitCode = 1;

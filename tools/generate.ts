// Writes every generated file of the repository: `node tools/generate.ts`; with --check it only compares and fails on a difference.

import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { commandPages } from './command-pages.ts';
import { definitionOf } from './crds/definition.ts';
import { networkKinds } from './crds/network.ts';
import { runtimeKinds } from './crds/runtime.ts';
import { serviceKinds } from './crds/services.ts';
import { typesOf } from './crds/types.ts';
import { workloadKinds } from './crds/workloads.ts';
import { documentFiles, summariesFile } from './documents.ts';
import { jsonFiles } from './json/document.ts';
import { manifestSchemaFile } from './manifest-schema.ts';
import { partsFile } from './parts.ts';
import { requestsFile } from './requests.ts';
import { roleFiles } from './roles.ts';
import type { Comparison } from './surface/compare.ts';
import { documentOf } from './surface/document.ts';
import { moduleOf } from './surface/module.ts';
import { compareAt } from './surface/read.ts';

const root = join(import.meta.dirname, '..');
const kinds = [...workloadKinds, ...networkKinds, ...serviceKinds, ...runtimeKinds];

async function generated(comparison: Comparison): Promise<{ file: string; text: string }[]> {
  const commands = (await readdir(join(root, 'src/commands'))).map((file) => file.replace(/\.ts$/, ''));
  return [
    ...kinds.map(definitionOf),
    { file: 'src/lib/api/types.generated.ts', text: await typesOf(kinds) },
    ...(await roleFiles(root)),
    await partsFile(root),
    await summariesFile(commands),
    ...(await documentFiles(root, commands)),
    ...(await commandPages(commands)),
    documentOf(comparison),
    ...jsonFiles(root, commands),
    moduleOf(comparison),
    requestsFile(),
    manifestSchemaFile(),
  ];
}

async function current(file: string): Promise<string> {
  return readFile(join(root, file), 'utf8').catch(() => '');
}

const check = process.argv.includes('--check');
const comparison = await compareAt(root);
const stale: string[] = [];
for (const { file, text } of await generated(comparison)) {
  if ((await current(file)) === text) continue;
  stale.push(file);
  if (check) continue;
  await mkdir(dirname(join(root, file)), { recursive: true });
  await writeFile(join(root, file), text);
}
if (stale.length > 0) process.stdout.write(`${check ? 'out of date' : 'written'}: ${stale.join(', ')}\n`);
// A page that lists what is undecided may be written while one works on it, and is not complete.
if (check && comparison.problems.length > 0)
  process.stdout.write(`docs/cf-commands.md is not complete:\n${comparison.problems.join('\n')}\n`);
if (check && stale.length + comparison.problems.length > 0) process.exitCode = 1;

// The files of the package that setup applies: manifests and the controller's programs.

import { readdir, readFile } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseAllDocuments } from 'yaml';
import type { KubeObject } from '../../api/object.ts';
import { BugError, KfError, messageOf } from '../../errors.ts';

/** Folder that holds kf's package.json, whether this runs from source or from a bundle. */
export function packageRoot(): string {
  let folder = path.dirname(fileURLToPath(import.meta.url));
  while (!existsSync(path.join(folder, 'package.json'))) {
    const parent = path.dirname(folder);
    if (parent === folder) throw new BugError('The package.json of kf was not found above its own code.');
    folder = parent;
  }
  return folder;
}

/** The objects of a manifest's text. @throws BugError when a document cannot be read in full: half an object must not be applied */
export function parseManifest(name: string, text: string): KubeObject[] {
  const documents = parseAllDocuments(text);
  const problem = documents.flatMap(({ errors }) => errors)[0];
  if (problem !== undefined) throw new BugError(`manifests/${name}: ${problem.message}`);
  return documents.map((document) => document.toJS() as KubeObject | null).filter((object) => object !== null);
}

/** All objects of one YAML file below `manifests/`. */
export async function readManifest(name: string): Promise<KubeObject[]> {
  return parseManifest(name, await readFile(path.join(packageRoot(), 'manifests', name), 'utf8'));
}

/** All objects of the YAML files in one folder below `manifests/`, in the order of their file names. */
export async function readManifests(folder: string): Promise<KubeObject[]> {
  const names = (await readdir(path.join(packageRoot(), 'manifests', folder))).filter((name) => name.endsWith('.yaml')).sort();
  return (await Promise.all(names.map((name) => readManifest(path.join(folder, name))))).flat();
}

const programNames = ['controller.mjs', 'certificates.mjs', 'gate.mjs', 'fetch.mjs', 'pages.mjs'];
/** kf's own limit for all programs together; a ConfigMap may have 1 MiB (docs/decisions/0010). */
const mostProgramBytes = 896 * 1024;

/** The bundled programs that run in the cluster, by file name. */
export async function readPrograms(): Promise<Record<string, string>> {
  const folder = path.join(packageRoot(), 'dist', 'controller');
  const programs: Record<string, string> = {};
  for (const name of programNames) {
    programs[name] = await readFile(path.join(folder, name), 'utf8').catch((error: unknown) => {
      throw new KfError('failed', `The program '${name}' of this installation of kf cannot be read: ${messageOf(error)}`, {
        hints: ['Install kf again; in a checkout of kf: npm run build'],
        cause: error,
      });
    });
  }
  const size = Object.values(programs).reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  if (size > mostProgramBytes) throw new BugError(`The controller's programs have ${size} bytes, more than ${mostProgramBytes}.`);
  return programs;
}

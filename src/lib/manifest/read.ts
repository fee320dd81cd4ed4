// The only file of the manifest layer that reads files: finds and reads the manifest and the files of variables.

import { stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { KfError, messageOf } from '../errors.ts';
import { repeatPush } from './again.ts';
import { incorrectUsage, noSuchPath } from '../cf/usage.ts';
import { parseReference } from '../oci/reference.ts';
import { readSmallFile } from '../small-file.ts';
import { parseManifest } from './parse.ts';
import { planApply, type ManifestPlan } from './apply-plan.ts';
import type { AppPlan, PushFlags, PushPlan } from './plan.ts';
import { planPush } from './push-plan.ts';
import type { PlanInput, ReadManifest } from './push-plan.ts';
import { located } from './tree.ts';
import { readVariables } from './variables.ts';

const defaultNames = ['manifest.yml', 'manifest.yaml'];

type FileKind = 'file' | 'folder' | 'none';

async function kindOf(path: string): Promise<FileKind> {
  const found = await stat(path).catch(() => undefined);
  if (found === undefined) return 'none';
  return found.isDirectory() ? 'folder' : 'file';
}

async function firstManifest(folder: string): Promise<string | undefined> {
  for (const name of defaultNames) {
    if ((await kindOf(join(folder, name))) === 'file') return join(folder, name);
  }
  return undefined;
}

async function find(workingFolder: string, flags: PushFlags): Promise<{ path: string; asGiven: string } | undefined> {
  if (flags.noManifest === true) return undefined;
  if (flags.manifest === undefined) {
    const path = await firstManifest(workingFolder);
    return path === undefined ? undefined : { path, asGiven: path };
  }
  const path = resolve(workingFolder, flags.manifest);
  const kind = await kindOf(path);
  if (kind === 'none') throw noSuchPath(flags.manifest);
  if (kind === 'file') return { path, asGiven: flags.manifest };
  const inFolder = await firstManifest(path);
  if (inFolder === undefined)
    throw incorrectUsage(`The specified directory '${flags.manifest}' does not contain a file named 'manifest.yml'.`);
  return { path: inFolder, asGiven: inFolder };
}

async function readText(path: string, asGiven: string, what: string): Promise<string> {
  return readSmallFile({ path, asGiven, what }).catch((error: unknown) => {
    if (error instanceof KfError) throw error;
    throw new KfError('usage', `The file '${asGiven}' cannot be read: ${messageOf(error)}.`, { cause: error });
  });
}

/** The manifest that the flags name, or the default one of the folder; undefined when there is none. */
export async function readManifest(workingFolder: string, flags: PushFlags): Promise<ReadManifest | undefined> {
  const varsFiles = await Promise.all(
    (flags.varsFiles ?? []).map(async (name) => {
      const path = resolve(workingFolder, name);
      if ((await kindOf(path)) !== 'file') throw noSuchPath(name);
      return { path: name, text: await readText(path, name, 'a file of variables') };
    }),
  );
  const variables = readVariables(varsFiles, flags.vars ?? []);
  const found = await find(workingFolder, flags);
  if (found === undefined) return undefined;
  return {
    ...found,
    ...parseManifest(shownName(found, workingFolder), await readText(found.path, found.asGiven, 'a manifest'), variables),
  };
}

/** The name of the manifest in errors: the default one has its short name. */
function shownName({ path, asGiven }: Pick<ReadManifest, 'path' | 'asGiven'>, workingFolder: string): string {
  return asGiven === path && path.startsWith(`${workingFolder}/`) ? path.slice(workingFolder.length + 1) : asGiven;
}

/** @throws KfError `usage` for an image whose name is none, with its place when it stands in the manifest */
function assertImage({ name, docker }: AppPlan, { workingFolder, flags, manifest }: PlanInput): void {
  if (docker === undefined) return;
  try {
    parseReference(docker.image);
  } catch (error) {
    const [only, ...others] = manifest?.apps ?? [];
    const { imageAt: at } = (others.length === 0 ? only : manifest?.apps.find((app) => app.name === name)) ?? {};
    const text = messageOf(error);
    const isFlag = flags.dockerImage !== undefined || manifest === undefined || at === undefined;
    throw incorrectUsage(isFlag ? text : located(shownName(manifest, workingFolder), at, text), {
      hints: [repeatPush(`kf push ${name} -o IMAGE`, flags)],
    });
  }
}

/**
 * Reads all input of a push from files and flags.
 * @throws KfError `usage`, and `not-found` when a named path does not exist
 */
export async function readPushPlan(workingFolder: string, flags: PushFlags): Promise<PushPlan> {
  const input = { workingFolder, flags, manifest: await readManifest(workingFolder, flags) };
  const plan = planPush(input);
  for (const app of plan.apps) {
    assertImage(app, input);
    const path = app.path ?? app.droplet;
    if (path === undefined || (await kindOf(path)) !== 'none') continue;
    const given = flags.path ?? flags.droplet;
    if (given !== undefined) throw noSuchPath(given);
    throw new KfError('not-found', `File not found locally, make sure the file exists at given path ${path}`);
  }
  return plan;
}

/**
 * Reads all input of `apply-manifest`. The paths of its apps are not looked at.
 * @throws KfError `usage`; also when there is no manifest
 */
export async function readApplyPlan(workingFolder: string, flags: PushFlags): Promise<ManifestPlan> {
  const manifest = await readManifest(workingFolder, flags);
  if (manifest === undefined)
    throw new KfError('usage', `Could not find 'manifest.yml' file in ${workingFolder}`, { hints: ['kf apply-manifest -f MANIFEST'] });
  return planApply({ workingFolder, flags, manifest });
}

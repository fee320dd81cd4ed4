// The state file: the cluster, org and space of commands. It has cf's key names, so that scripts can read it.

import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { messageOf } from '../errors.ts';
import { defined } from '../defined.ts';
import { homeFolder } from '../home.ts';

type Env = Readonly<Record<string, string | undefined>>;

/** Name and GUID of an org, a space, an app … */
export interface NameAndGuid {
  name: string;
  guid: string;
}

/** The saved state between commands. GUIDs save look-ups. */
export interface TargetState {
  /** The saved context of the kubeconfig and its server. */
  context?: string;
  server?: string;
  /** The kubeconfig user that `kf auth` chose, if it is not the context's own. */
  kubeconfigUser?: string;
  /** The user name that the API server reported, and its kubeconfig user. */
  user?: string;
  userOf?: string;
  org?: NameAndGuid;
  space?: NameAndGuid;
}

/** An integer, as in cf; a file with another version is ignored. */
const configVersion = 1;

interface NamedFields {
  GUID?: string;
  Name?: string;
}

interface StateFile {
  ConfigVersion?: number;
  Target?: string;
  OrganizationFields?: NamedFields;
  SpaceFields?: NamedFields;
  CFOnK8s?: { Enabled?: boolean; AuthInfo?: string };
  Kf?: { Context?: string; User?: string; UserOf?: string };
}

const present = (text: string | undefined): string | undefined => (text === '' ? undefined : text);

/** `$CF_HOME/.cf`, otherwise `kf` in the XDG configuration folder. */
export function stateFolder(env: Env): string {
  const cfHome = present(env['CF_HOME']);
  if (cfHome !== undefined) return join(cfHome, '.cf');
  return join(present(env['XDG_CONFIG_HOME']) ?? join(homeFolder(env), '.config'), 'kf');
}

/** The file of cf, where scripts look for it. */
const sharedFile = (env: Env): string => join(stateFolder(env), 'config.json');

/** kf's own file, used when another program owns the shared file. */
const ownFile = (env: Env): string => join(stateFolder(env), 'kf.json');

/** The file from which the target is read. */
export function stateFile(env: Env): string {
  const own = ownFile(env);
  return existsSync(own) ? own : sharedFile(env);
}

/** True when another program wrote the shared file: cf's own login, or unknown content. */
function isOfAnother(path: string): boolean {
  let text: string;
  try {
    text = readFileSync(path, 'utf8').trim();
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EACCES';
  }
  if (['', '{}', 'null'].includes(text)) return false;
  try {
    return (JSON.parse(text) as StateFile).Kf === undefined;
  } catch {
    return true;
  }
}

/** The file to which the target is written: never one of another program. */
function targetFile(env: Env): string {
  const known = stateFile(env);
  return known !== ownFile(env) && isOfAnother(known) ? ownFile(env) : known;
}

/** A message for the user when this is the first target that is saved beside another program's state. */
export function whereBeside(env: Env): string | undefined {
  const [before, next] = [stateFile(env), targetFile(env)];
  return before === next ? undefined : `${before} is not of kf and stays as it is; kf remembers its target in ${next}.`;
}

function named(fields: NamedFields | undefined): NameAndGuid | undefined {
  const [name, guid] = [present(fields?.Name), present(fields?.GUID)];
  return name === undefined || guid === undefined ? undefined : { name, guid };
}

function fromFile(file: StateFile): TargetState {
  const entries: Partial<Record<keyof TargetState, unknown>> = {
    context: present(file.Kf?.Context),
    server: present(file.Target),
    kubeconfigUser: present(file.CFOnK8s?.AuthInfo),
    user: present(file.Kf?.User),
    userOf: present(file.Kf?.UserOf),
    org: named(file.OrganizationFields),
    space: named(file.SpaceFields),
  };
  return defined(entries) as TargetState;
}

/** The content of the state file, and its reliability. */
export interface StoredTarget {
  state: TargetState;
  /** There is no file at all, so no target was ever chosen. Only then setup's defaults may be used. */
  isUntouched: boolean;
  /** Why an existing file gives no target: it cannot be read, or another version of kf wrote it. Its cluster is unknown then. */
  problem?: string;
}

const isMissing = (error: unknown): boolean => ['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '');

/** The saved target. A file of another program (cf's own) has no target of kf. */
export function readStored(env: Env): StoredTarget {
  const path = stateFile(env);
  try {
    const file = JSON.parse(readFileSync(path, 'utf8')) as StateFile | null;
    if (file?.Kf === undefined) return { state: {}, isUntouched: false };
    if (file.ConfigVersion === configVersion) return { state: fromFile(file), isUntouched: false };
    return { state: {}, isUntouched: false, problem: `${path} was written by another version of kf.` };
  } catch (error) {
    if (isMissing(error)) return { state: {}, isUntouched: true };
    return { state: {}, isUntouched: false, problem: `${path} cannot be read (${messageOf(error)}).` };
  }
}

/** The saved target; empty if there is none that can be read. */
export const readState = (env: Env): TargetState => readStored(env).state;

function toFile(state: TargetState): StateFile {
  return {
    ConfigVersion: configVersion,
    Target: state.server ?? '',
    OrganizationFields: { GUID: state.org?.guid ?? '', Name: state.org?.name ?? '' },
    SpaceFields: { GUID: state.space?.guid ?? '', Name: state.space?.name ?? '' },
    CFOnK8s: { Enabled: true, AuthInfo: state.kubeconfigUser ?? '' },
    Kf: { Context: state.context ?? '', User: state.user ?? '', UserOf: state.userOf ?? '' },
  };
}

/** Removes a file; also where a part of its path is no folder. */
export function removeIfThere(path: string): void {
  if (existsSync(path)) rmSync(path, { force: true });
}

/** Creates a folder with its parents. Not `recursive`: Node loops for ever if an existing parent answers ENOENT (procfs, autofs). */
export function makeFolder(folder: string): void {
  if (existsSync(folder)) return;
  const parent = dirname(folder);
  if (parent !== folder) makeFolder(parent);
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}

function writeBeside(path: string, state: TargetState): string {
  const temporary = join(dirname(path), `temp-config-${process.pid}-${Date.now()}`);
  try {
    makeFolder(dirname(path));
    writeFileSync(temporary, `${JSON.stringify(toFile(state), null, 2)}\n`, { mode: 0o600 });
    return temporary;
  } catch (error) {
    removeIfThere(temporary);
    throw error;
  }
}

/** Why a target could not be saved here; undefined when it could. This is tested with a temporary file beside the state file. */
export function whyNotStored(env: Env, state: TargetState): string | undefined {
  try {
    removeIfThere(writeBeside(targetFile(env), state));
    return undefined;
  } catch (error) {
    return messageOf(error);
  }
}

/**
 * Writes the whole state into a new file in the same folder and renames it, so that a reader sees either the old or the new one.
 * @returns the problem as a sentence when it could not be written
 */
export function saveState(env: Env, state: TargetState): string | undefined {
  const path = targetFile(env);
  try {
    const temporary = writeBeside(path, state);
    try {
      renameSync(temporary, path);
    } finally {
      removeIfThere(temporary);
    }
    return undefined;
  } catch (error) {
    return `The target was not saved: ${path} cannot be written (${messageOf(error)}).`;
  }
}

/** What to do where the state file cannot be written or used: another folder for it, or variables in its place. */
export const withoutStateHint = 'Set CF_HOME to a folder that kf can write, or set KF_CONTEXT, KF_ORG and KF_SPACE.';

// The state file: which cluster, org and space commands work on. cf's key names, so that scripts can read it.

import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { messageOf } from '../errors.ts';

type Env = Readonly<Record<string, string | undefined>>;

/** Name and GUID of an org, a space, an app … */
export interface Named {
  name: string;
  guid: string;
}

/** What is remembered between commands. GUIDs spare look-ups. */
export interface TargetState {
  /** The pinned context of the kubeconfig and the server that it led to. */
  context?: string;
  server?: string;
  /** The kubeconfig user chosen by `kf auth`, when it is not the context's own. */
  kubeconfigUser?: string;
  /** The user name that the API server sees, and the kubeconfig user it belongs to. */
  user?: string;
  userOf?: string;
  org?: Named;
  space?: Named;
}

/** An integer, as cf's; a file with another version is ignored. */
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

/** `$CF_HOME/.cf/config.json`, else `kf/config.json` in the XDG configuration folder. */
export function stateFile(env: Env): string {
  const cfHome = env['CF_HOME'];
  if (cfHome !== undefined && cfHome !== '') return join(cfHome, '.cf', 'config.json');
  const xdg = env['XDG_CONFIG_HOME'];
  return join(xdg !== undefined && xdg !== '' ? xdg : join(env['HOME'] ?? homedir(), '.config'), 'kf', 'config.json');
}

const present = (text: string | undefined): string | undefined => (text === '' ? undefined : text);

function named(fields: NamedFields | undefined): Named | undefined {
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
  return Object.fromEntries(Object.entries(entries).filter(([, value]) => value !== undefined));
}

/** Nothing, when there is no file, when it cannot be read or when it is another program's (cf's own). */
export function readState(env: Env): TargetState {
  try {
    const file = JSON.parse(readFileSync(stateFile(env), 'utf8')) as StateFile;
    return file.ConfigVersion === configVersion && file.Kf !== undefined ? fromFile(file) : {};
  } catch {
    return {};
  }
}

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

function removeIfThere(path: string): void {
  if (existsSync(path)) rmSync(path, { force: true });
}

/**
 * Writes the whole state: a file of its own in the same folder, then a rename, so that a reader sees the old or the new one.
 * @returns a warning when it could not be written; commands go on without
 */
export function saveState(env: Env, state: TargetState): string | undefined {
  const path = stateFile(env);
  const temporary = join(dirname(path), `temp-config-${process.pid}-${Date.now()}`);
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    writeFileSync(temporary, `${JSON.stringify(toFile(state), null, 2)}\n`, { mode: 0o600 });
    renameSync(temporary, path);
    return undefined;
  } catch (error) {
    removeIfThere(temporary);
    return `The target is not remembered: ${path} cannot be written (${messageOf(error)}). KF_CONTEXT, KF_ORG and KF_SPACE set it per command.`;
  }
}

// The settings of `config`, in a file of their own: the state file may belong to cf, and tells by its existence that a target was chosen.

import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { KfError, messageOf } from '../errors.ts';
import { defined } from '../defined.ts';
import { makeFolder, removeIfThere, stateFolder } from './state.ts';

type Env = Readonly<Record<string, string | undefined>>;

/** With cf's key names. */
export interface Settings {
  /** Minutes. */
  AsyncTimeout?: number;
  ColorEnabled?: string;
  Trace?: string;
}

const settingsFile = (env: Env): string => join(stateFolder(env), 'settings.json');

/** The saved settings; none if the file is missing or cannot be read. */
export function readSettings(env: Env): Settings {
  let read: Record<string, unknown> | null;
  try {
    read = JSON.parse(readFileSync(settingsFile(env), 'utf8')) as Record<string, unknown> | null;
  } catch {
    return {};
  }
  const { AsyncTimeout, ColorEnabled, Trace } = read ?? {};
  return defined({
    AsyncTimeout: typeof AsyncTimeout === 'number' && AsyncTimeout > 0 ? AsyncTimeout : undefined,
    ColorEnabled: typeof ColorEnabled === 'string' ? ColorEnabled : undefined,
    Trace: typeof Trace === 'string' ? Trace : undefined,
  });
}

/** Adds settings to the saved ones. @throws KfError `failed` when they cannot be written */
export function saveSettings(env: Env, changes: Settings): Settings {
  const path = settingsFile(env);
  const settings = { ...readSettings(env), ...changes };
  const temporary = `${path}-${process.pid}`;
  try {
    makeFolder(dirname(path));
    writeFileSync(temporary, `${JSON.stringify(settings, null, 2)}\n`, { mode: 0o600 });
    renameSync(temporary, path);
    return settings;
  } catch (error) {
    removeIfThere(temporary);
    throw new KfError('failed', `The settings were not saved: ${path} cannot be written (${messageOf(error)}).`, {
      hints: ['CF_COLOR and CF_TRACE do the same for one command.'],
    });
  }
}

/** The environment with the settings for which it has no variable. */
export function withSettings(env: Env): Env {
  const { ColorEnabled, Trace } = readSettings(env);
  if (ColorEnabled === undefined && Trace === undefined) return env;
  return { ...defined({ CF_COLOR: ColorEnabled, CF_TRACE: Trace }), ...env };
}

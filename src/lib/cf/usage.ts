// Errors of a wrong command line, in cf's words.

import { KfError, type KfErrorOptions } from '../errors.ts';

const prefix = 'Incorrect Usage: ';

/** A usage error; the command's help follows it on stdout. `text` comes without the prefix. */
export function incorrectUsage(text: string, options: KfErrorOptions = {}): KfError {
  return new KfError('usage', `${prefix}${text}`, options);
}

/** A file or folder that the command line names does not exist; in cf's words. The command's help follows it too. */
export function noSuchPath(path: string, options: KfErrorOptions = {}): KfError {
  return new KfError('not-found', `${prefix}The specified path '${path}' does not exist.`, options);
}

/** True for errors that are followed by help instead of `FAILED`. */
export function wantsHelp({ code, message }: KfError): boolean {
  return (code === 'usage' || code === 'not-found') && message.startsWith(prefix);
}

/** The error for a part of cf that kf does not have yet. @param instead an alternative, if there is one */
export function notThereYet(what: string, instead: string, details: Record<string, unknown> = {}): KfError {
  return new KfError('usage', `kf does not support ${what} yet.`, { hints: instead === '' ? [] : [`For now: ${instead}`], details });
}

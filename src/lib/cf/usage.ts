// Errors of a wrong command line, in cf's words.

import { KfError, type KfErrorOptions } from '../errors.ts';

const prefix = 'Incorrect Usage: ';

/** A usage error; the command's help follows it on stdout. `text` comes without the prefix. */
export function incorrectUsage(text: string, options: KfErrorOptions = {}): KfError {
  return new KfError('usage', `${prefix}${text}`, options);
}

/** True for errors that are followed by help instead of `FAILED`. */
export function wantsHelp(error: KfError): boolean {
  return error.code === 'usage' && error.message.startsWith(prefix);
}

/** The error for a part of cf that kf does not have yet. @param instead an alternative, if there is one */
export function notThereYet(what: string, instead: string, details: Record<string, unknown> = {}): KfError {
  return new KfError('usage', `kf does not support ${what} yet.`, { hints: instead === '' ? [] : [`For now: ${instead}`], details });
}

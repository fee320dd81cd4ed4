// Errors of a wrongly typed command line, in cf's words.

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

/** What cf has and kf lacks so far. @param instead what to use until then, if anything helps */
export function notThereYet(what: string, instead: string, details: Record<string, unknown> = {}): KfError {
  return new KfError('usage', `${what} is not there yet in kf.`, { hints: instead === '' ? [] : [`For now: ${instead}`], details });
}

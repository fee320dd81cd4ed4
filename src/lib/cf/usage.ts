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

/** The first error among flags that exclude each other, e.g. `exclusive(flags, ['no-start', 'no-wait'])`. @throws KfError */
export function assertExclusive(given: Record<string, unknown>, names: string[]): void {
  const used = names.filter((name) => given[name] !== undefined && given[name] !== false);
  if (used.length < 2) return;
  throw incorrectUsage(`The following arguments cannot be used together: ${used.map((name) => `--${name}`).join(', ')}`);
}

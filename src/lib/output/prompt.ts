// Questions to a person. Without a terminal nothing is asked and stdin is not touched.

import { KfError } from '../errors.ts';
import type { Terminal } from './terminal.ts';

/**
 * Yes or no; no is the default.
 * @param otherwise the flag that answers beforehand, e.g. `-f`
 * @throws KfError `usage` without a terminal, `interrupted` (130) on Ctrl-C
 */
export async function confirm(terminal: Terminal, question: string, otherwise: string): Promise<boolean> {
  if (!terminal.canAsk) {
    throw new KfError('usage', `${question} There is no terminal to ask on: add ${otherwise} to say yes.`);
  }
  const { default: ask } = await import('@inquirer/confirm');
  try {
    return await ask({ message: question, default: false });
  } catch (cause) {
    if (cause instanceof Error && cause.name === 'ExitPromptError') throw new KfError('interrupted', 'Interrupted.', { cause });
    throw cause;
  }
}

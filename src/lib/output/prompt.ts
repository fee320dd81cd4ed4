// Questions to a person. Without a terminal nothing is asked and stdin is not touched.

import { KfError } from '../errors.ts';
import { safeName } from './safe-text.ts';
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
    return await ask({ message: safeName(question), default: false });
  } catch (cause) {
    if (cause instanceof Error && cause.name === 'ExitPromptError') throw new KfError('interrupted', 'Interrupted.', { cause });
    throw cause;
  }
}

/**
 * A value that is not shown while it is typed.
 * @param otherwise how to give it beforehand
 */
export async function askSecret(terminal: Terminal, name: string, otherwise: string): Promise<string> {
  if (!terminal.canAsk)
    throw new KfError('usage', `'${name}' is asked for, but there is no terminal to ask on: give it with ${otherwise}.`);
  const { createInterface } = await import('node:readline/promises');
  const { Writable } = await import('node:stream');
  terminal.errRaw(`${name}> `);
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() });
  const reader = createInterface({ input: process.stdin, output: silent, terminal: true });
  const interrupted = new Promise<never>((_, reject) => {
    reader.once('SIGINT', () => reject(new KfError('interrupted', 'Interrupted.', { exitCode: 130 })));
  });
  try {
    return await Promise.race([reader.question(''), interrupted]);
  } finally {
    reader.close();
    terminal.err();
  }
}

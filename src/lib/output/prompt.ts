// Questions to a user. Without a terminal nothing is asked and stdin is not read.

import { KfError } from '../errors.ts';
import { safeName } from './safe-text.ts';
import type { Terminal } from './terminal.ts';

const answers: ReadonlyMap<string, boolean> = new Map([
  ['y', true],
  ['yes', true],
  ['n', false],
  ['no', false],
  ['', false],
]);

export interface Question {
  question: string;
  /** The flag that answers the question beforehand, e.g. `-f`. */
  otherwise: string;
  signal: AbortSignal;
  /** Default: stdin. */
  input?: NodeJS.ReadableStream;
}

/**
 * Yes or no, asked as cf does; no is the default.
 * @throws KfError `usage` without a terminal or at the end of the input, `interrupted` (130) on Ctrl-C
 */
export async function confirm(terminal: Terminal, { question, otherwise, signal, input = process.stdin }: Question): Promise<boolean> {
  if (!terminal.canAsk) {
    throw new KfError('usage', `${question} There is no terminal to ask on: add ${otherwise} to say yes.`);
  }
  const { createInterface } = await import('node:readline');
  const ask = (): void => terminal.ask(`${safeName(question)} [yN]: `);
  // The terminal itself echoes the input.
  const reader = createInterface({ input, signal });
  ask();
  for await (const line of reader) {
    const answer = answers.get(line.trim().toLowerCase());
    if (answer !== undefined) return answer;
    terminal.ask('invalid input (not y, n, yes, or no)\n');
    ask();
  }
  terminal.ask('\n');
  if (signal.aborted) throw new KfError('interrupted', 'Interrupted.', { cause: signal.reason });
  throw new KfError('usage', `${question} The input ended without an answer: add ${otherwise} to say yes.`);
}

/**
 * Asks for a value without echoing it.
 * @param otherwise how to give it beforehand
 */
export async function askSecret(terminal: Terminal, name: string, otherwise: string): Promise<string> {
  if (!terminal.canAsk)
    throw new KfError('usage', `'${name}' is asked for, but there is no terminal to ask on: give it with ${otherwise}.`);
  const { createInterface } = await import('node:readline/promises');
  const { Writable } = await import('node:stream');
  terminal.ask(`${name}> `);
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() });
  const reader = createInterface({ input: process.stdin, output: silent, terminal: true });
  const interrupted = new Promise<never>((_, reject) => {
    reader.once('SIGINT', () => reject(new KfError('interrupted', 'Interrupted.', { exitCode: 130 })));
  });
  try {
    return await Promise.race([reader.question(''), interrupted]);
  } finally {
    reader.close();
    terminal.ask('\n');
  }
}

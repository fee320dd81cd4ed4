// Questions to a user. Without a terminal, the answer is one line of stdin, if stdin is a pipe or a file.

import { KfError } from '../errors.ts';
import { safeName } from './safe-text.ts';
import type { LineSource } from './stdin-lines.ts';
import type { Terminal } from './terminal.ts';

const answers: ReadonlyMap<string, boolean> = new Map([
  ['y', true],
  ['yes', true],
  ['n', false],
  ['no', false],
  ['', false],
]);

/** Undefined if there is nothing to read. */
type Lines = () => Promise<LineSource | undefined>;

export interface Question {
  question: string;
  /** The flag that answers the question beforehand, e.g. `-f`. */
  otherwise: string;
  signal: AbortSignal;
  /** Default: stdin. On a terminal, */
  input?: NodeJS.ReadableStream;
  /** and elsewhere. */
  lines?: Lines;
}

/**
 * Yes or no, asked as cf does; no is the default. A user is asked again until there is an answer; a line of a pipe is an answer or a failure,
 * because the next line may be meant for another program.
 * @throws KfError `usage` if there is no answer, `interrupted` (130) on Ctrl-C
 */
export async function confirm(terminal: Terminal, asked: Question): Promise<boolean> {
  const { question, otherwise } = asked;
  if (terminal.canAsk) return confirmOnTerminal(terminal, asked);
  const unanswered = `${question} There is no terminal to ask on: add ${otherwise} to say yes.`;
  const lines = await (asked.lines ?? stdinLines)();
  if (lines === undefined) throw new KfError('usage', unanswered);
  terminal.ask(promptOf(question));
  const line = await nextLine(terminal, lines, asked.signal);
  const answer = answers.get(line?.trim().toLowerCase() ?? 'none');
  // As in cf, the line is shown as if it had been typed. Anything else may be a secret in a script.
  terminal.ask(answer === undefined ? '\n' : `${line?.trim()}\n`);
  if (answer !== undefined) return answer;
  if (line === undefined) throw new KfError('usage', unanswered);
  throw new KfError('usage', `${question} The line on stdin is no answer (not y, n, yes, or no): add ${otherwise} to say yes.`);
}

const promptOf = (question: string): string => `${safeName(question)} [yN]: `;

const stdinLines: Lines = async () => (await import('./stdin-lines.ts')).stdinLines();

/** @throws KfError `interrupted` */
async function nextLine(terminal: Terminal, lines: LineSource, signal: AbortSignal): Promise<string | undefined> {
  try {
    return await lines.next(signal);
  } catch (error) {
    terminal.ask('\n');
    throw signal.aborted ? interrupted(error) : error;
  }
}

/** Nothing was done that another run could continue, so the hints of the cause are dropped. */
function interrupted(cause: unknown): KfError {
  return new KfError('interrupted', 'Interrupted.', { cause });
}

async function confirmOnTerminal(terminal: Terminal, { question, otherwise, signal, input = process.stdin }: Question): Promise<boolean> {
  const { createInterface } = await import('node:readline');
  const ask = (): void => terminal.ask(promptOf(question));
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
  if (signal.aborted) throw interrupted(signal.reason);
  throw new KfError('usage', `${question} The input ended without an answer: add ${otherwise} to say yes.`);
}

interface SecretQuestion {
  name: string;
  /** How to give the value beforehand. */
  otherwise: string;
  signal: AbortSignal;
  /** Default: stdin, if it is no terminal. */
  lines?: Lines;
}

/**
 * Asks for a value without echoing it. Without a terminal, it is the next line of stdin.
 * @throws KfError `usage` if there is none, `interrupted` (130) on Ctrl-C
 */
export async function askSecret(terminal: Terminal, asked: SecretQuestion): Promise<string> {
  const { name, otherwise, signal } = asked;
  if (terminal.canAsk) return typeSecret(terminal, name);
  const unanswered = `'${name}' is asked for, but there is no terminal to ask on: give it with ${otherwise}.`;
  const lines = await (asked.lines ?? stdinLines)();
  if (lines === undefined) throw new KfError('usage', unanswered);
  terminal.ask(`${name}> `);
  const line = await nextLine(terminal, lines, signal);
  terminal.ask('\n');
  if (line === undefined) throw new KfError('usage', unanswered);
  return line;
}

async function typeSecret(terminal: Terminal, name: string): Promise<string> {
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

import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { plainInk } from '../../../src/lib/output/ink.ts';
import { askSecret, confirm } from '../../../src/lib/output/prompt.ts';
import type { LineSource } from '../../../src/lib/output/stdin-lines.ts';
import { Terminal } from '../../../src/lib/output/terminal.ts';
import { KfError } from '../../../src/lib/errors.ts';

const question = 'Really delete the app shop?';

interface Asked {
  answer: boolean | KfError;
  stdout: string;
  stderr: string;
}

/** Lines of a pipe, and those that nobody has read. */
class Pipe implements LineSource {
  readonly left: string[];

  constructor(...lines: string[]) {
    this.left = lines;
  }

  next(): Promise<string | undefined> {
    return Promise.resolve(this.left.shift());
  }
}

const from = (lines: LineSource) => () => Promise.resolve(lines);

function open(canAsk: boolean, json = false): { terminal: Terminal; said: { stdout: string; stderr: string } } {
  const said = { stdout: '', stderr: '' };
  const sink = (name: 'stdout' | 'stderr') => ({ write: (text: string) => (said[name] += text), isTTY: true });
  const stderr = sink('stderr');
  return { terminal: new Terminal({ env: {}, stdout: sink('stdout'), stderr: () => stderr, canAsk: () => canAsk, json }, plainInk), said };
}

/** The failure, if it is one that users see. */
function failure(error: unknown): KfError {
  if (error instanceof KfError) return error;
  throw error;
}

/** @param typed what the user types; null: the input ends, undefined: nothing is typed and the command is interrupted */
async function ask(typed: string | null | undefined, { canAsk = true, json = false, text = question } = {}): Promise<Asked> {
  const { terminal, said } = open(canAsk, json);
  const input = new PassThrough();
  const controller = new AbortController();
  const answering = confirm(terminal, {
    question: text,
    otherwise: '-f',
    signal: controller.signal,
    input,
    lines: () => Promise.resolve(undefined),
  }).catch(failure);
  if (typeof typed === 'string') input.write(typed);
  else if (typed === null) input.end();
  else controller.abort(new KfError('interrupted', 'Interrupted.', { hints: ['Run the same command again: it continues.'] }));
  return { answer: await answering, ...said };
}

describe('a question', () => {
  it('is written on stdout as cf writes it', async () => {
    expect(await ask('y\n')).toEqual({ answer: true, stdout: 'Really delete the app shop? [yN]: ', stderr: '' });
  });

  it.each([
    ['y', true],
    ['yes', true],
    ['YES', true],
    ['n', false],
    ['no', false],
    ['', false],
  ])('accepts %j as an answer', async (typed, answer) => {
    expect((await ask(`${typed}\n`)).answer).toBe(answer);
  });

  it('is asked again after anything else', async () => {
    expect(await ask('perhaps\ny\n')).toMatchObject({
      answer: true,
      stdout: `${question} [yN]: invalid input (not y, n, yes, or no)\n${question} [yN]: `,
    });
  });

  it('is written to stderr if stdout contains a document', async () => {
    expect(await ask('y\n', { json: true })).toEqual({ answer: true, stdout: '', stderr: `${question} [yN]: ` });
  });

  it('shows no control characters of a name', async () => {
    expect((await ask('n\n', { text: 'Really delete the app \u001b[2J?' })).stdout).not.toContain('\u001b');
  });

  it('fails when the input ends, and ends with 130 when it is interrupted', async () => {
    expect((await ask(null)).answer).toMatchObject({
      code: 'usage',
      message: `${question} The input ended without an answer: add -f to say yes.`,
    });
    // Nothing was done that another run could continue.
    expect((await ask(undefined)).answer).toMatchObject({ code: 'interrupted', message: 'Interrupted.', hints: [] });
  });

  it('is not asked without a terminal and without a pipe', async () => {
    const { answer, stdout } = await ask(null, { canAsk: false });
    expect([answer, stdout]).toEqual([
      expect.objectContaining({ code: 'usage', message: `${question} There is no terminal to ask on: add -f to say yes.` }),
      '',
    ]);
  });
});

/** Asks without a terminal. */
async function askPipe(lines: LineSource, json = false): Promise<Asked> {
  const { terminal, said } = open(false, json);
  const answer = await confirm(terminal, { question, otherwise: '-f', signal: new AbortController().signal, lines: from(lines) }).catch(
    failure,
  );
  return { answer, ...said };
}

const interruptedLines: LineSource = { next: (signal) => Promise.reject(signal.reason as Error) };
const interruption = (): AbortSignal => AbortSignal.abort(new KfError('interrupted', 'Interrupted.', { hints: ['Run it again.'] }));

describe('a question without a terminal', () => {
  it.each([
    ['y', true],
    [' YES ', true],
    ['no', false],
    ['', false],
  ])('takes the line %j as an answer, and shows it', async (line, answer) => {
    const pipe = new Pipe(line, 'rest');
    expect(await askPipe(pipe)).toEqual({ answer, stdout: `${question} [yN]: ${line.trim()}\n`, stderr: '' });
    expect(pipe.left).toEqual(['rest']);
  });

  it('fails after another line, without showing it, and leaves the next one', async () => {
    const pipe = new Pipe('export PASSWORD=secret', 'y');
    expect(await askPipe(pipe)).toEqual({
      answer: expect.objectContaining({
        code: 'usage',
        message: `${question} The line on stdin is no answer (not y, n, yes, or no): add -f to say yes.`,
      }) as KfError,
      stdout: `${question} [yN]: \n`,
      stderr: '',
    });
    expect(pipe.left).toEqual(['y']);
  });

  it('fails at the end of the input', async () => {
    const { answer } = await askPipe(new Pipe());
    expect(answer).toMatchObject({ code: 'usage', message: `${question} There is no terminal to ask on: add -f to say yes.` });
  });

  it('is written to stderr if stdout contains a document', async () => {
    expect(await askPipe(new Pipe('y'), true)).toEqual({ answer: true, stdout: '', stderr: `${question} [yN]: y\n` });
  });

  it('can be interrupted', async () => {
    const { terminal } = open(false);
    const asking = confirm(terminal, { question, otherwise: '-f', signal: interruption(), lines: from(interruptedLines) });
    await expect(asking).rejects.toMatchObject({ code: 'interrupted', hints: [] });
  });
});

describe('a secret without a terminal', () => {
  const asked = { name: 'password', otherwise: '-p FILE', signal: new AbortController().signal };

  it('is one line, as it is, and is not shown', async () => {
    const { terminal, said } = open(false);
    const pipe = new Pipe(' a b ', 'rest');
    expect(await askSecret(terminal, { ...asked, lines: from(pipe) })).toBe(' a b ');
    expect([said.stdout, pipe.left]).toEqual(['password> \n', ['rest']]);
  });

  it('fails at the end of the input, and can be interrupted', async () => {
    const { terminal } = open(false);
    await expect(askSecret(terminal, { ...asked, lines: from(new Pipe()) })).rejects.toMatchObject({
      code: 'usage',
      message: "'password' is asked for, but there is no terminal to ask on: give it with -p FILE.",
    });
    const interrupted = askSecret(terminal, { ...asked, signal: interruption(), lines: from(interruptedLines) });
    await expect(interrupted).rejects.toMatchObject({ code: 'interrupted', hints: [] });
  });
});

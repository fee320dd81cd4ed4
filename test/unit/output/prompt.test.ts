import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { plainInk } from '../../../src/lib/output/ink.ts';
import { confirm } from '../../../src/lib/output/prompt.ts';
import { Terminal } from '../../../src/lib/output/terminal.ts';
import { KfError } from '../../../src/lib/errors.ts';

const question = 'Really delete the app shop?';

interface Asked {
  answer: boolean | KfError;
  stdout: string;
  stderr: string;
}

/** @param typed what the user types; null: the input ends, undefined: nothing is typed and the command is interrupted */
async function ask(typed: string | null | undefined, { canAsk = true, json = false, text = question } = {}): Promise<Asked> {
  const said = { stdout: '', stderr: '' };
  const sink = (name: 'stdout' | 'stderr') => ({ write: (text: string) => (said[name] += text), isTTY: true });
  const stderr = sink('stderr');
  const terminal = new Terminal({ env: {}, stdout: sink('stdout'), stderr: () => stderr, canAsk: () => canAsk, json }, plainInk);
  const input = new PassThrough();
  const controller = new AbortController();
  const answering = confirm(terminal, { question: text, otherwise: '-f', signal: controller.signal, input }).catch((error: unknown) => {
    if (error instanceof KfError) return error;
    throw error;
  });
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

  it('is not asked without a terminal', async () => {
    const { answer, stdout } = await ask(null, { canAsk: false });
    expect([answer, stdout]).toEqual([
      expect.objectContaining({ code: 'usage', message: `${question} There is no terminal to ask on: add -f to say yes.` }),
      '',
    ]);
  });
});

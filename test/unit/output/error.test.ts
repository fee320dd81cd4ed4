import { describe, expect, it } from 'vitest';
import { BugError, KfError } from '../../../src/lib/errors.ts';
import { printFailure, printResult, toKfError } from '../../../src/lib/output/error.ts';
import { plainInk } from '../../../src/lib/output/ink.ts';
import { Terminal } from '../../../src/lib/output/terminal.ts';

function record(options: { json?: boolean; env?: Record<string, string> } = {}) {
  const order: string[] = [];
  const stream = (name: string) => ({
    write: (text: string) =>
      order.push(
        ...text
          .trimEnd()
          .split('\n')
          .map((line) => `${name} ${line}`),
      ),
  });
  const terminal = new Terminal(
    { env: options.env ?? {}, stdout: stream('out'), stderr: () => stream('err'), canAsk: () => false, json: options.json ?? false },
    plainInk,
  );
  return { terminal, order };
}

describe('a failure', () => {
  const error = new KfError('start', "App 'x' exited with code 1.", { hints: ['kf logs x --recent'], details: { logTail: ['boom'] } });

  it('is the message and the last lines on stderr, then FAILED on stdout, then the hint', () => {
    const { terminal, order } = record();
    expect(printFailure(terminal, error)).toBe(1);
    expect(order).toEqual([
      "err App 'x' exited with code 1.",
      'err    boom',
      'out FAILED',
      'err ',
      'err TIP:',
      'err    kf logs x --recent',
    ]);
  });

  it('shows the first and the last lines of a long log, and counts the others', () => {
    const { terminal, order } = record();
    const details = { logHead: ['ROOT CAUSE'], logOmitted: 60, logTail: ['at main'] };
    printFailure(terminal, new KfError('start', 'It crashed.', { details }));
    expect(order.slice(0, 4)).toEqual(['err It crashed.', 'err    ROOT CAUSE', 'err    ... 60 lines left out ...', 'err    at main']);
  });

  it('of a build does not repeat the lines that were shown while it ran', () => {
    const { terminal, order } = record();
    printFailure(terminal, new KfError('build', 'Error staging application: no.', { details: { logTail: ['shown already'] } }));
    expect(order).toEqual(['err Error staging application: no.', 'out FAILED']);
  });

  it('of a build whose log was not shown whole has the last lines', () => {
    const { terminal, order } = record();
    const details = { logIncomplete: true, logTail: ['npm ERR! 404'] };
    printFailure(terminal, new KfError('build', 'Error staging application: no.', { details }));
    expect(order).toEqual(['err Error staging application: no.', 'err    npm ERR! 404', 'out FAILED']);
  });

  it('is one document on stdout with --json', () => {
    const { terminal, order } = record({ json: true });
    terminal.warn('careful');
    expect(printFailure(terminal, error)).toBe(1);
    expect(order.every((line) => line.startsWith('out '))).toBe(true);
    expect(JSON.parse(order.map((line) => line.slice(4)).join('\n'))).toEqual({
      status: 1,
      error: { code: 'start', message: "App 'x' exited with code 1.", hints: ['kf logs x --recent'], details: { logTail: ['boom'] } },
      warnings: ['careful'],
    });
  });

  it.each([
    ['usage', 2],
    ['not-found', 3],
    ['start', 8],
    ['accepted', 12],
    ['interrupted', 130],
    ['bug', 70],
  ] as const)('of class %s ends with %i if exit codes by class are enabled', (code, expected) => {
    const { terminal } = record({ env: { KF_EXIT_CODES: 'class' } });
    expect(printFailure(terminal, new KfError(code, 'no'))).toBe(expected);
  });

  it('keeps an exit code of its own', () => {
    const { terminal } = record();
    expect(printFailure(terminal, new KfError('failed', 'HTTP 404', { exitCode: 22 }))).toBe(22);
    expect(printFailure(terminal, new KfError('interrupted', 'Interrupted.'))).toBe(130);
  });

  it('that is a bug of kf shows the stack', () => {
    const { terminal, order } = record();
    const thrown = toKfError(new TypeError('x is not a function'));
    expect(thrown).toBeInstanceOf(BugError);
    printFailure(terminal, thrown);
    expect(order.join('\n')).toContain('error.test.ts');
  });
});

describe('a result', () => {
  it('is an envelope with --json and nothing without', () => {
    const json = record({ json: true });
    printResult(json.terminal, { name: 'x' });
    expect(JSON.parse(json.order.map((line) => line.slice(4)).join(''))).toEqual({ status: 0, result: { name: 'x' }, warnings: [] });
    const text = record();
    printResult(text.terminal, { name: 'x' });
    expect(text.order).toEqual([]);
  });
});

import { describe, expect, it } from 'vitest';
import { openDisplay } from '../../../src/lib/output/progress.ts';
import { openBlocks } from '../../../src/lib/output/side-by-side.ts';
import { openTerminal } from '../../../src/lib/output/terminal.ts';
import { line } from '../../../src/lib/views/block.ts';

async function scene(...names: string[]) {
  const out: string[] = [];
  const err: string[] = [];
  const stream = (lines: string[]) => ({ write: (text: string) => lines.push(...text.split('\n').slice(0, -1)) });
  const terminal = await openTerminal({ env: {}, stdout: stream(out), stderr: () => stream(err), canAsk: () => false, json: false });
  const blocks = openBlocks(terminal, openDisplay(terminal), names, (name) => `Pushing app ${name}...`);
  const block = (name: string) => {
    const found = blocks.get(name);
    if (found === undefined) throw new Error(name);
    return found;
  };
  return { out, err, block };
}

describe('the output of several apps', () => {
  it('is kept together in the order of the apps, whichever is faster', async () => {
    const { out, err, block } = await scene('a', 'b');
    block('b').log('line of b');
    block('a').log('line of a');
    block('b').step('Staging');
    block('b').note('b has failed');
    block('b').end();
    expect(out).toEqual(['', 'Pushing app a...', '   line of a']);
    expect(err).toEqual([]);
    block('a').print([line('a is there')]);
    block('a').end();
    expect(out).toEqual(['', 'Pushing app a...', '   line of a', 'a is there', '', 'Pushing app b...', '   line of b']);
    expect(err).toEqual(['b has failed']);
  });

  it('is shown at once when all previous apps have ended, beginning with its present step', async () => {
    const { err, out, block } = await scene('a', 'b', 'c');
    block('b').step('Uploading');
    block('b').step('Staging');
    block('a').step('Staging');
    block('a').end();
    block('b').log('now');
    expect(err).toEqual(['a: Staging', 'b: Staging']);
    expect(out.at(-1)).toBe('   now');
    block('c').end();
    block('b').end();
    expect(out).toContain('Pushing app c...');
  });

  it('of a single app has neither heading nor names', async () => {
    const { out, err, block } = await scene('a');
    block('a').step('Staging');
    block('a').say('text');
    expect([out, err]).toEqual([['text'], ['Staging']]);
  });
});

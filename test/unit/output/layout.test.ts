import { describe, expect, it } from 'vitest';
import { layOut } from '../../../src/lib/output/layout.ts';
import { plainInk, wantsColour } from '../../../src/lib/output/ink.ts';
import { displayWidth } from '../../../src/lib/output/width.ts';
import { pairs, table } from '../../../src/lib/views/block.ts';

describe('the layout of cf', () => {
  it('makes a column as wide as its widest cell plus three blanks and leaves the last one unpadded', () => {
    const lines = layOut(
      [
        table(
          ['name', 'requested state', 'processes', 'routes'],
          [
            ['idle', 'stopped', 'web:0/1', ''],
            ['my-app', 'started', 'web:1/1', 'a.example.com'],
          ],
        ),
      ],
      {
        ink: plainInk,
      },
    );
    expect(lines).toEqual([
      'name     requested state   processes   routes',
      'idle     stopped           web:0/1     ',
      'my-app   started           web:1/1     a.example.com',
    ]);
  });

  it.each([
    ['a picture', '🚀', 2],
    ['a sign that is a picture only with a variation selector', '🛠', 1],
    ['the same with it', '🛠️', 2],
    ['a joined family', '👨‍👩‍👧', 2],
    ['a letter with an accent of its own', 'e\u0301', 1],
    ['a vertical form', '︙', 2],
    ['kana of the supplement', '𛀀', 2],
    ['a circled number', '㉈', 1],
  ])('counts the cells of %s', (_, text, cells) => expect(displayWidth(text)).toBe(cells));

  it('aligns by the displayed width, not by characters', () => {
    const lines = layOut(
      [
        table(
          ['name', 'x'],
          [
            ['日本', '1'],
            ['héllo', '2'],
            ['🚀', '3'],
          ],
        ),
      ],
      { ink: plainInk },
    );
    expect(lines).toEqual(['name    x', '日本    1', 'héllo   2', '🚀      3']);
  });

  it('pads keys to the longest one plus three blanks', () => {
    expect(layOut([pairs(['name:', 'a'], ['requested state:', 'started'], ['routes:', ''])], { ink: plainInk })).toEqual([
      'name:              a',
      'requested state:   started',
      'routes:            ',
    ]);
  });

  it('wraps values with a hanging indent on a terminal and not elsewhere', () => {
    const rows = pairs(['routes:', 'one.example.com, two.example.com, three.example.com']);
    expect(layOut([rows], { ink: plainInk, columns: 45 })).toEqual([
      'routes:   one.example.com, two.example.com,',
      '          three.example.com',
    ]);
    expect(layOut([rows], { ink: plainInk })).toHaveLength(1);
  });

  it('colours cells without breaking the columns', () => {
    const ink = { ...plainInk, bold: (text: string) => `\u001b[1m${text}\u001b[22m` };
    const [header, row] = layOut([table(['a', 'b'], [['longer', 'x']])], { ink });
    expect(header).toBe('\u001b[1ma\u001b[22m        \u001b[1mb\u001b[22m');
    expect(displayWidth(header ?? '')).toBe(displayWidth(row ?? ''));
  });
});

describe('colour', () => {
  it.each([
    [{}, true, true],
    [{}, false, false],
    [{ CF_COLOR: 'true' }, false, true],
    [{ CF_COLOR: 'false' }, true, false],
    [{ NO_COLOR: '1' }, true, false],
    [{ NO_COLOR: '1', CF_COLOR: 'true' }, true, true],
    [{ TERM: 'dumb' }, true, false],
  ])('with %j on a terminal (%s) is %s', (env, isTTY, expected) => {
    expect(wantsColour({ env, isTTY })).toBe(expected);
  });
});

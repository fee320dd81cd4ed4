// Lays out the blocks of views exactly as cf does: a column is as wide as its widest cell plus three blanks, the last one is not padded.

import type { Block, Cell } from '../views/block.ts';
import type { Ink } from './ink.ts';
import { displayWidth, pad } from './width.ts';

const gap = 3;

export interface LayoutOptions {
  ink: Ink;
  /** Columns of the terminal; if left out, nothing is wrapped, and tables keep all columns. */
  columns?: number;
  /** Applied to the text of each cell first. */
  cell?: (text: string) => string;
  /** Applied to each sentence of kf first. */
  message?: (text: string) => string;
}

const textOf = (cell: Cell): string => (typeof cell === 'string' ? cell : cell.text);

function paint(cell: Cell, ink: Ink): string {
  if (typeof cell === 'string') return cell;
  return cell.style === 'message' ? cell.text : ink[cell.style](cell.text);
}

function widthsOf(rows: readonly Cell[][]): number[] {
  const widths: number[] = [];
  for (const row of rows) {
    for (const [index, cell] of row.entries()) widths[index] = Math.max(widths[index] ?? 0, displayWidth(textOf(cell)));
  }
  return widths;
}

/** Removes as many of the optional columns as needed to fit; all of them if even that is not enough. */
function fitting({ rows, optional = [], indent = '' }: Extract<Block, { type: 'table' }>, columns: number | undefined): Cell[][] {
  const fits = (shown: readonly Cell[][]): boolean =>
    widthsOf(shown).reduce((sum, width) => sum + width + gap, displayWidth(indent)) - gap <= (columns ?? Number.POSITIVE_INFINITY);
  for (let dropped = 0; dropped <= optional.length; dropped += 1) {
    const gone = new Set(optional.slice(0, dropped));
    const shown = rows.map((row) => row.filter((_, index) => !gone.has(index)));
    if (fits(shown)) return shown;
  }
  return rows.map((row) => row.filter((_, index) => !optional.includes(index)));
}

function layOutTable(block: Extract<Block, { type: 'table' }>, { ink, columns }: LayoutOptions): string[] {
  const rows = fitting(block, columns);
  const widths = widthsOf(rows);
  return rows.map((row, number) => {
    const cells = row.map((cell, index) => {
      const painted = block.header && number === 0 ? ink.bold(textOf(cell)) : paint(cell, ink);
      return index === row.length - 1 ? painted : pad(painted, (widths[index] ?? 0) + gap);
    });
    return (block.indent ?? '') + cells.join('');
  });
}

/** Breaks at blanks; a word longer than the line is not broken. */
function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let current = '';
  for (const word of text.split(' ')) {
    const longer = current === '' ? word : `${current} ${word}`;
    if (current !== '' && displayWidth(longer) > width) {
      lines.push(current);
      current = word;
    } else current = longer;
  }
  return [...lines, current];
}

function layOutPairs(block: Extract<Block, { type: 'pairs' }>, { ink, columns }: LayoutOptions): string[] {
  const width = Math.max(0, ...block.rows.map(([key]) => displayWidth(key))) + gap;
  return block.rows.flatMap(([key, value]) => {
    const painted = paint(value, ink);
    const room = columns === undefined ? Number.POSITIVE_INFINITY : Math.max(20, columns - width);
    const [first = '', ...more] = displayWidth(painted) > room ? wrap(painted, room) : [painted];
    return [pad(key, width) + first, ...more.map((text) => ' '.repeat(width) + text)];
  });
}

/** The lines of `blocks`, without line ends. */
export function layOut(blocks: readonly Block[], options: LayoutOptions): string[] {
  const { cell = (text) => text, message = (text) => text } = options;
  const changed = (one: Cell): Cell => {
    if (typeof one === 'string') return cell(one);
    return { ...one, text: cell(one.style === 'message' ? message(one.text) : one.text) };
  };
  return blocks.flatMap((block) => {
    switch (block.type) {
      case 'line':
        return [block.text];
      case 'table':
        return layOutTable({ ...block, rows: block.rows.map((row) => row.map(changed)) }, options);
      case 'pairs':
        return layOutPairs({ ...block, rows: block.rows.map(([key, value]) => [cell(key), changed(value)]) }, options);
    }
  });
}

// The lines of a program that has ended, as they are kept: their size is limited whatever the program printed.

import { defined } from '../defined.ts';

/** First and last lines of a log, and how many are left out between them. */
export interface Lines {
  head: string[];
  omitted: number;
  tail: string[];
}

/** The same in a status. */
export interface KeptLines {
  logHead?: string[];
  logOmitted?: number;
  logTail?: string[];
}

/** Of the lines in a status, as JSON in UTF-8: an escaped control character takes six bytes. */
export const mostKeptBytes = 8 * 1024;

/** Leaves out lines, the first ones of the middle first, until the others fit. */
export function leaveOut({ head: first, omitted: before, tail: last }: Lines, fits: (lines: Lines) => boolean): Lines {
  const [head, tail] = [[...first], [...last]];
  let omitted = before;
  for (;;) {
    const lines = { head, omitted, tail };
    if (head.length + tail.length === 0 || fits(lines)) return lines;
    // The first line often names the cause, and the last lines always do: what lies between goes first.
    if (head.length > 1 || tail.length === 0) head.pop();
    else if (tail.length > 1 || head.length === 0) tail.shift();
    else head.pop();
    omitted += 1;
  }
}

function inStatus({ head, omitted, tail }: Lines): KeptLines {
  const some = (lines: string[]): string[] | undefined => (lines.length === 0 ? undefined : lines);
  return defined({ logHead: some(head), logOmitted: omitted === 0 ? undefined : omitted, logTail: some(tail) });
}

/** The fields of a status for these lines; none for no lines. */
export const keepLines = (lines: Lines): KeptLines =>
  inStatus(leaveOut(lines, (left) => Buffer.byteLength(JSON.stringify(inStatus(left))) <= mostKeptBytes));

/** The lines that a status keeps. */
export const linesIn = ({ logHead: head = [], logOmitted: omitted = 0, logTail: tail = [] }: KeptLines): Lines => ({ head, omitted, tail });

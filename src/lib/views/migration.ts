// `migrate check`: a row per call, with what to know of it below.

import { line, message, type Block, type Cell } from './block.ts';

interface Checked {
  calls: readonly {
    file: string;
    line: number;
    call: string;
    status: string;
    remarks: readonly { about: string; status: string; text: string }[];
  }[];
  totals: Readonly<Partial<Record<string, number>>>;
  broken: number;
}

const plural = (count: number, word: string): string => `${count} ${word}${count === 1 ? '' : 's'}`;

function remarkText({ about, status, text }: Checked['calls'][number]['remarks'][number]): string {
  return status === 'refused' ? `${about}: instead: ${text}` : `${about}: ${text}`;
}

/** One line of the script: a call over several lines would break the columns. */
const oneLine = (text: string): string => text.replaceAll('\n', ' ');

export function renderCheck({ calls, totals, broken }: Checked): Block[] {
  if (calls.length === 0) return [line('No calls of cf found.')];
  const rows = calls.flatMap(({ file, line: at, call, status, remarks }): Cell[][] => [
    [`${file}:${at}`, status === 'done' ? status : { text: status, style: 'bold' }, oneLine(call)],
    ...remarks.map((remark): Cell[] => ['', '', message(`  ${remarkText(remark)}`)]),
  ]);
  const counted = Object.entries(totals).map(([status, count]) => `${count} ${status}`);
  const { unclear = 0 } = totals;
  const ends = [
    ...(broken === 0 ? [] : [`${plural(broken, 'call')} will fail with kf.`]),
    ...(unclear === 0 ? [] : [`${plural(unclear, 'call')} may fail.`]),
  ];
  const end = ends.length === 0 ? 'All of them work with kf.' : ends.join(' ');
  return [{ type: 'table', rows, header: false }, line(), line(`${plural(calls.length, 'call')}: ${counted.join(', ')}. ${end}`)];
}

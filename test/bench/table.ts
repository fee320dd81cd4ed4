// The table that a bench ends with, and the figures in it.

/** One line: what was measured, what it is to reach, what it was, and what stands beside it. */
export interface Row {
  what: string;
  reach: string;
  measured: string;
  beside?: string;
}

/** The middle of the values; of an even number the mean of the two in the middle. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const half = Math.floor(sorted.length / 2);
  const upper = sorted[half] ?? NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[half - 1] ?? NaN) + upper) / 2;
}

function spread(values: readonly number[], show: (value: number) => string, unit: string): string {
  const ends = values.length > 1 ? ` [${show(Math.min(...values))}–${show(Math.max(...values))}]` : '';
  return `${show(median(values))} ${unit}${ends}`;
}

/** `2.4 s [2.3–2.6]`, from milliseconds. */
export const seconds = (milliseconds: readonly number[]): string => spread(milliseconds, (value) => (value / 1000).toFixed(1), 's');

/** `61 ms [58–70]`. */
export const millis = (milliseconds: readonly number[]): string => spread(milliseconds, (value) => value.toFixed(0), 'ms');

/** `18 [17–19]`; one number when all are equal. */
export function counts(values: readonly number[]): string {
  const [least, most] = [Math.min(...values), Math.max(...values)];
  return least === most ? String(least) : `${median(values)} [${least}–${most}]`;
}

/** How many times the second the first is, pair by pair. */
export function ratio(values: readonly number[], others: readonly number[]): string {
  return `${median(values.map((value, index) => value / (others[index] ?? NaN))).toFixed(2)} ×`;
}

export const rowLine = ({ what, reach, measured, beside = '' }: Row): string =>
  `| ${[what, reach, measured, beside].map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;

/** What each bench found, by its name, and when. */
export type Results = Record<string, { when: string; rows: Row[] }>;

/** The benches of `order`, each with what it found last: now, else before. */
export function mergeResults(order: readonly string[], before: Results, now: Results): Results {
  const all = { ...before, ...now };
  return Object.fromEntries(order.flatMap((name) => (all[name] === undefined ? [] : [[name, all[name]]])));
}

export function renderTable(results: Results): string {
  const lines = Object.values(results).flatMap(({ when, rows }) => rows.map((row) => `${rowLine(row)} ${when} |`));
  return ['| what | reach | measured: median [min–max] | beside | when |', '| --- | --- | --- | --- | --- |', ...lines, ''].join('\n');
}

// The table at the end of a bench, and the format of its figures.

/** One line: what was measured, the target, the value, and a note. */
export interface Row {
  what: string;
  reach: string;
  measured: string;
  beside?: string;
  /** What was promised and not kept, in numbers that do not depend on the machine: it fails the run. Times do not. */
  faults?: string[];
}

/** The median of the values; for an even number the mean of the two in the middle. */
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

/** `18 [17–19]`; one number if all are equal. */
export function counts(values: readonly number[]): string {
  const [least, most] = [Math.min(...values), Math.max(...values)];
  return least === most ? String(least) : `${median(values)} [${least}–${most}]`;
}

/** The ratio of the first to the second, pair by pair. */
export function ratio(values: readonly number[], others: readonly number[]): string {
  return `${median(values.map((value, index) => value / (others[index] ?? NaN))).toFixed(2)} ×`;
}

export function rowLine({ what, reach, measured, beside = '', faults = [] }: Row): string {
  const notes = [...faults.map((fault) => `NOT KEPT: ${fault}`), beside].filter((note) => note !== '').join('; ');
  return `| ${[what, reach, measured, notes].map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
}

/** The results of each bench, by its name, and their time. */
export type Results = Record<string, { when: string; rows: Row[] }>;

/** What the benches of this run did not keep, each with its bench. */
export const faultsOf = (results: Results): string[] =>
  Object.entries(results).flatMap(([name, { rows }]) => rows.flatMap(({ faults = [] }) => faults.map((fault) => `${name}: ${fault}`)));

/** The benches of `order`, each with its latest results: from this run, else from an earlier one. */
export function mergeResults(order: readonly string[], before: Results, now: Results): Results {
  const all = { ...before, ...now };
  return Object.fromEntries(order.flatMap((name) => (all[name] === undefined ? [] : [[name, all[name]]])));
}

export function renderTable(results: Results): string {
  const lines = Object.values(results).flatMap(({ when, rows }) => rows.map((row) => `${rowLine(row)} ${when} |`));
  return ['| what | reach | measured: median [min–max] | beside | when |', '| --- | --- | --- | --- | --- |', ...lines, ''].join('\n');
}

/** What took longer than the time that is measured beside it, and some time more. A busy machine makes both longer. @returns the fault, if it is one */
export function faultsOfTime(what: string, ms: number, besideMs: number, moreMs: number): string[] {
  return ms <= besideMs + moreMs ? [] : [`${what} took ${seconds([ms])}, beside ${seconds([besideMs])} and ${seconds([moreMs])} more`];
}

// The output of a view: lines, tables and key/value rows. `lib/output` lays them out.

export type CellStyle = 'bold' | 'name' | 'bad';
/** A message is a sentence of kf: its commands are shown under the name of the program. */
export type Cell = string | { text: string; style: CellStyle | 'message' };

export type Block =
  /** One line; '' is an empty one. */
  | { type: 'line'; text: string }
  /** Rows of cells; with `header` the first row is a header. `optional`: columns that a narrow terminal may lose, the first one first. */
  | { type: 'table'; rows: Cell[][]; header: boolean; indent?: string; optional?: readonly number[] }
  /** `key:   value` rows. */
  | { type: 'pairs'; rows: [key: string, value: Cell][] };

export const line = (text = ''): Block => ({ type: 'line', text });
export const message = (text: string): Cell => ({ text, style: 'message' });
export const pairs = (...rows: [key: string, value: Cell][]): Block => ({ type: 'pairs', rows });

/** A table with a header row. */
export const table = (header: string[], rows: Cell[][]): Block => ({ type: 'table', header: true, rows: [header, ...rows] });

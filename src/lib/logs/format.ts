// Formats a log entry as cf does. Pure; the terminal adds colours.

import type { LogEntry, LogGap, LogSource } from './entry.ts';

const two = (value: number): string => String(value).padStart(2, '0');

/** `APP/PROC/WEB/0`, `STG/0`, `APP/TASK/migrate/0`, `KF/0`. */
export function formatSource({ type, process, index = 0 }: LogSource): string {
  switch (type) {
    case 'APP':
      return `APP/PROC/${(process ?? 'web').toUpperCase()}/${String(index)}`;
    case 'TASK':
      return `APP/TASK/${process ?? ''}/${String(index)}`;
    case 'STG':
    case 'KF':
      return `${type}/${String(index)}`;
  }
}

/** `2026-08-07T10:16:20.45+0000` in the local time zone, or at a given offset in minutes east of UTC. */
export function formatTime(time: string, offsetMinutes?: number): string {
  const instant = Date.parse(time);
  if (Number.isNaN(instant)) return time;
  const offset = offsetMinutes ?? -new Date(instant).getTimezoneOffset();
  // Whole seconds from the shifted clock; the fraction is cut from the text, not rounded.
  const local = new Date(instant + offset * 60_000).toISOString().slice(0, 19);
  const fraction = (/\.(\d+)/.exec(time)?.[1] ?? '').padEnd(2, '0').slice(0, 2);
  const size = Math.abs(offset);
  return `${local}.${fraction}${offset < 0 ? '-' : '+'}${two(Math.floor(size / 60))}${two(size % 60)}`;
}

/** `10:02:03.120`, in the zone of {@link formatTime}. */
function clockOf(time: string, offsetMinutes?: number): string {
  const milliseconds = (/\.(\d+)/.exec(time)?.[1] ?? '').padEnd(3, '0').slice(0, 3);
  return `${formatTime(time, offsetMinutes).slice(11, 19)}.${milliseconds}`;
}

/** `-- APP/PROC/WEB/0: gap 10:02:03.120 to 10:02:07.004, log rotated --` */
export function formatGap(source: LogSource, { from, to, reason }: LogGap, offsetMinutes?: number): string {
  const [after, before] = [from, to].map((time) => (time === undefined ? undefined : clockOf(time, offsetMinutes)));
  const range = before === undefined ? `after ${after ?? ''}` : after === undefined ? `before ${before}` : `${after} to ${before}`;
  return `-- ${formatSource(source)}: gap${after === undefined && before === undefined ? '' : ` ${range}`}, ${reason} --`;
}

/** Without the carriage returns at its end. */
function withoutReturns(text: string): string {
  let end = text.length;
  while (text[end - 1] === '\r') end -= 1;
  return text.slice(0, end);
}

/** The lines of one entry: a gap's one, or three blanks, time, source, stream, text; a text of several lines repeats the header. */
export function formatLogLines(entry: LogEntry, options: { offsetMinutes?: number } = {}): string[] {
  if (entry.gap !== undefined) return [formatGap(entry.source, entry.gap, options.offsetMinutes)];
  const header = `   ${formatTime(entry.time, options.offsetMinutes)} [${formatSource(entry.source)}] ${entry.stream} `;
  return entry.text.split('\n').map((text) => `${header}${withoutReturns(text)}`);
}

/** Staging lines as push shows them: without time and source. */
export function stagingLines(entry: Pick<LogEntry, 'text'> & Partial<Pick<LogEntry, 'source' | 'gap'>>): string[] {
  if (entry.gap !== undefined && entry.source !== undefined) return [formatGap(entry.source, entry.gap)];
  return entry.text.split('\n').map(withoutReturns);
}

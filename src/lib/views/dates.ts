// Points in time as cf prints them.

import { defined } from '../defined.ts';

/** RFC 1123: `Fri, 07 Aug 2026 10:16:20 UTC`. */
export function httpDate(time: string): string {
  const date = new Date(time);
  return Number.isNaN(date.getTime()) ? time : date.toUTCString().replace('GMT', 'UTC');
}

/** `Fri 07 Aug 10:16:20 UTC 2026`, local zone. */
export function longDate(time: string, timeZone?: string): string {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return time;
  const format = new Intl.DateTimeFormat('en-US', {
    weekday: 'short',
    day: '2-digit',
    month: 'short',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    year: 'numeric',
    timeZoneName: 'short',
    hourCycle: 'h23',
    ...defined({ timeZone }),
  });
  const part = Object.fromEntries(format.formatToParts(date).map(({ type, value }) => [type, value]));
  return `${part['weekday']} ${part['day']} ${part['month']} ${part['hour']}:${part['minute']}:${part['second']} ${part['timeZoneName']} ${part['year']}`;
}

/** `2026-08-07T10:16:20.00+0000`, local zone. */
export function eventDate(time: string, timeZone?: string): string {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return time;
  const format = new Intl.DateTimeFormat('en-US', {
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    fractionalSecondDigits: 2,
    timeZoneName: 'longOffset',
    hourCycle: 'h23',
    ...defined({ timeZone }),
  });
  const part = Object.fromEntries(format.formatToParts(date).map(({ type, value }) => [type, value]));
  // `GMT+02:00`, and `GMT` alone for UTC.
  const offset = (part['timeZoneName'] ?? '').replace('GMT', '').replace(':', '');
  const clock = `${part['hour']}:${part['minute']}:${part['second']}.${part['fractionalSecond']}`;
  return `${part['year']}-${part['month']}-${part['day']}T${clock}${offset === '' ? '+0000' : offset}`;
}

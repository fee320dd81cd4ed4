// JSON lines on stdout, one per record, for machines that collect a pod's log.

import { KfError } from '../../lib/errors.ts';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';
export type LogFields = Record<string, unknown>;

export interface Logger {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  /** A logger whose records carry these fields too. */
  with(fields: LogFields): Logger;
}

const order: readonly LogLevel[] = ['debug', 'info', 'warn', 'error'];

function plain(value: unknown): unknown {
  if (!(value instanceof Error)) return value;
  // An answer of the cluster or of a registry is told by its words; a stack says something of our own mistakes only.
  if (value instanceof KfError && value.code !== 'bug') return { name: value.name, code: value.code, message: value.message };
  return { name: value.name, message: value.message, stack: value.stack };
}

/** `write` gets whole lines, newline included. */
export function createLogger(level: LogLevel, write: (line: string) => void, base: LogFields = {}): Logger {
  const least = order.indexOf(level);
  const record = (at: LogLevel, message: string, fields: LogFields = {}): void => {
    if (order.indexOf(at) < least) return;
    const entries = Object.entries({ ...base, ...fields }).map(([key, value]) => [key, plain(value)]);
    write(`${JSON.stringify({ time: new Date().toISOString(), level: at, message, ...Object.fromEntries(entries) })}\n`);
  };
  return {
    debug: (message, fields) => record('debug', message, fields),
    info: (message, fields) => record('info', message, fields),
    warn: (message, fields) => record('warn', message, fields),
    error: (message, fields) => record('error', message, fields),
    with: (fields) => createLogger(level, write, { ...base, ...fields }),
  };
}

// Writes JSON lines to stdout, one per record, for programs that collect the logs of pods.

import { KfError } from '../../lib/errors.ts';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';
export type LogFields = Record<string, unknown>;

export interface Logger {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  /** Returns a logger whose records also have these fields. */
  with(fields: LogFields): Logger;
}

const order: readonly LogLevel[] = ['debug', 'info', 'warn', 'error'];

function plain(value: unknown): unknown {
  if (!(value instanceof Error)) return value;
  // For an answer of the cluster or of a registry the message is enough; a stack helps only with our own mistakes.
  if (value instanceof KfError && value.code !== 'bug') return { name: value.name, code: value.code, message: value.message };
  return { name: value.name, message: value.message, stack: value.stack };
}

/** `write` gets whole lines, including the newline. */
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

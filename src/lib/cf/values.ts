// Values in cf's command-line formats: sizes, numbers, lists.

import { parseMegabytes } from '../api/sizes.ts';
import { incorrectUsage } from './usage.ts';

/** `512M`, `1g` → MB; unlike in manifests no fraction. @throws KfError `usage` */
export function parseSize(text: string): number {
  const megabytes = /^\d+[a-z]+$/i.test(text.trim()) ? parseMegabytes(text) : undefined;
  if (megabytes === undefined) throw incorrectUsage('Byte quantity must be an integer with a unit of measurement like M, MB, G, or GB');
  return megabytes;
}

/** A whole number of at least `least` and at most `most`. `flag` as typed, e.g. `-i`. @throws KfError `usage` */
export function parseWholeNumber(text: string, flag: string, least: number, most = Number.MAX_SAFE_INTEGER): number {
  const value = /^-?\d+$/.test(text) ? Number(text) : Number.NaN;
  if (!Number.isSafeInteger(value) || value < least) {
    throw incorrectUsage(`invalid argument for flag '${flag}' (expected int ${least === 0 ? '>= 0' : `>= ${least}`})`);
  }
  if (value > most) throw incorrectUsage(`invalid argument for flag '${flag}': ${value} is too much, at most ${most} is possible`);
  return value;
}

/** The number of a task. @param refusal cf's words for anything else, which differ between its commands. @throws KfError `usage` */
export function parseTaskId(text: string, refusal: string): number {
  if (!/^-?\d+$/.test(text)) throw incorrectUsage(refusal);
  return Number(text);
}

/** One of `values`, in any case. @throws KfError `usage` */
export function parseChoice<T extends string>(text: string, name: string, values: readonly T[]): T {
  const found = values.find((value) => value.toLowerCase() === text.toLowerCase());
  if (found === undefined) throw incorrectUsage(`${name} must be ${values.map((value) => `"${value}"`).join(' or ')}`);
  return found;
}

const seconds: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 };

/** A time, or how long ago it is: that is by the clock of the cluster, which may differ from that of the user. */
export type Since = { at: Date } | { agoMs: number };

/** `90s`, `10m`, `1h30m`, `2d` ago, or an RFC 3339 time. @throws KfError `usage` */
export function parseSince(text: string): Since {
  const parts = [...text.matchAll(/(\d{1,9})([smhd])/g)];
  if (parts.length > 0 && parts.map(([part]) => part).join('') === text) {
    const ago = parts.reduce((sum, [, count = '0', unit = '']) => sum + Number(count) * (seconds[unit] ?? 0), 0);
    return { agoMs: ago * 1000 };
  }
  const at = /^\d{4}-\d\d-\d\d/.test(text) ? new Date(text) : new Date(Number.NaN);
  if (Number.isNaN(at.getTime()))
    throw incorrectUsage(`--since must be a duration (90s, 10m, 2h, 1d) or a time (2026-01-31T10:00:00Z); it is '${text}'`);
  return { at };
}

/** The time that is meant. @param now milliseconds by the clock of the cluster */
export const timeSince = (since: Since, now: number): Date => ('at' in since ? since.at : new Date(now - since.agoMs));

/** @throws KfError `usage` for a text that is no regular expression */
export function parsePattern(text: string, flag: string): RegExp {
  try {
    return new RegExp(text, 'u');
  } catch (error) {
    throw incorrectUsage(`${flag} must be a regular expression: ${error instanceof Error ? error.message : text}`);
  }
}

/** Comma-separated, blanks trimmed, empties dropped. */
export function parseList(text: string): string[] {
  return text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
}

/** @throws KfError `usage` for a text that cannot be the name of an app */
export function assertAppName(name: string): void {
  if (!/^[-\w]+$/.test(name)) throw incorrectUsage(`The name of an app consists of letters, digits, '-' and '_'; it is '${name}'.`);
}

const mostPort = 65_535;

/** The first port of a range, and its last one if there are more. */
export interface PortRange {
  port: number;
  endPort?: number;
}

/** `8080` or `8080-8090`. @throws KfError `usage` */
export function parsePortRange(text: string): PortRange {
  const [, first, last = first] = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(text) ?? [];
  if (first === undefined) throw incorrectUsage('PORT syntax must match integer[-integer]');
  const [port, endPort] = [Number(first), Number(last)];
  if (port < 1 || endPort > mostPort || endPort < port)
    throw incorrectUsage(`--port must be a port, or a range from a lower to a higher one, between 1 and ${mostPort}`);
  return endPort === port ? { port } : { port, endPort };
}

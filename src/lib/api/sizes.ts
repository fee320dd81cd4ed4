// Sizes as users write them for cf (`256M`, `1G`) and as the API has them (whole megabytes, bytes).

import { KfError } from '../errors.ts';

/** Bytes of cf's megabyte. */
export const megabyte = 1024 ** 2;

const units: Record<string, number> = { B: 0, K: 1, KB: 1, M: 2, MB: 2, G: 3, GB: 3, T: 4, TB: 4 };

/** Bytes of a text such as `512K`, or undefined when it is not a size with a unit. */
export function parseBytes(text: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?)\s*([a-z]{1,2})$/i.exec(text.trim());
  const power = units[match?.[2]?.toUpperCase() ?? ''];
  if (match === null || power === undefined) return undefined;
  return Math.floor(Number(match[1]) * 1024 ** power);
}

/** Whole megabytes of a text such as `1G`; undefined for other texts, for 0 and for less than a megabyte. */
export function parseMegabytes(text: string): number | undefined {
  const bytes = parseBytes(text);
  return bytes === undefined || bytes < megabyte ? undefined : Math.floor(bytes / megabyte);
}

/** Bytes per second of a log rate: a size, `0`, or -1 for unlimited; undefined for other texts. */
export function parseLogRate(text: string): number | undefined {
  if (text === '-1' || text === '0') return Number(text);
  return parseBytes(text);
}

const quantityUnits: Record<string, number> = {
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  '': 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 1024,
  Mi: megabyte,
  Gi: 1024 ** 3,
  Ti: 1024 ** 4,
  Pi: 1024 ** 5,
  Ei: 1024 ** 6,
};

/** A Kubernetes quantity (`500m`, `2Gi`, `1e3`) as a number; undefined for other texts. */
export function parseQuantity(text: string | undefined): number | undefined {
  const match = /^(\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)([a-zA-Z]{0,2})$/.exec(text ?? '');
  const factor = quantityUnits[match?.[2] ?? '-'];
  return match === null || factor === undefined ? undefined : Number(match[1]) * factor;
}

/** Megabytes of a flag or property, or a usage error that names it. */
export function megabytesOf(text: string, name: string): number {
  const megabytes = parseMegabytes(text);
  if (megabytes === undefined) {
    throw new KfError(
      'usage',
      `Incorrect Usage: ${name} must be a whole number of megabytes or more, with a unit (M, MB, G, GB, T or TB), not '${text}'.`,
      {
        hints: [`${name} 256M`],
      },
    );
  }
  return megabytes;
}

/** cf's short form: powers of 1024, one decimal, `.0` dropped: `48.7M`, `1G`, `0B`. */
export function formatBytes(bytes: number): string {
  const names = ['B', 'K', 'M', 'G', 'T'];
  let value = bytes;
  let power = 0;
  while (value >= 1024 && power < names.length - 1) {
    value /= 1024;
    power += 1;
  }
  return `${value.toFixed(1).replace(/\.0$/, '')}${names[power] ?? ''}`;
}

/** `256M` for 256, `1G` for 1024. */
export function formatMegabytes(megabytes: number): string {
  return formatBytes(megabytes * megabyte);
}

/** `1 file`, `2 files`. */
export const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`;

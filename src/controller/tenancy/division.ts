// How the total of an org is divided among its spaces: pure arithmetic.

/** Use and limit of one resource in one space. */
export interface Holding {
  used: number;
  /** What it needs beside `used` for what should run and does not yet; left out: nothing. */
  asked?: number;
  /**
   * The part of `used` that the quota has not counted yet, because the cluster counts again, with a delay, after a quota is written. For example,
   * 10 apps exist and the quota has counted 7. Then it admits 3 apps too many.
   */
  uncounted: number;
  /** The limit in its quota. */
  given: number;
  /** The limit that the cluster still applies: a lower limit takes effect a moment after it is written. */
  inForce: number;
}

export interface Division {
  /** The limit of each quota, in the order of the holdings. */
  shares: number[];
  /** For each: it gets more as soon as other spaces have given back their part. */
  isShort: boolean[];
}

/** The sum of the numbers. */
export const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0);

/** What each space needs: what it uses, and what it asks for as far as the total and its own limit allow. */
function needsOf(total: number, most: readonly number[], holdings: readonly Holding[]): number[] {
  let free = Math.max(0, total - sum(holdings.map(({ used }) => used)));
  return holdings.map(({ used, asked = 0 }, index) => {
    const more = Math.max(0, Math.min(asked, (most[index] ?? 0) - used, free));
    free -= more;
    return used + more;
  });
}

export interface DivideOptions {
  /** Nothing is kept for a future space, and each space has its full part as soon as that is free: the total is small, and meant to be used up. */
  isExact?: boolean;
}

/**
 * Divides the free part of `total` equally, and keeps one part for a future space. A share with more than half a part left stays as it is, so that
 * not every change writes quotas. Only free amounts are given, so the sum of the limits in force never exceeds the total.
 *
 * @param most limit of one space, or of each space
 */
export function divide(
  total: number,
  most: number | readonly number[],
  holdings: readonly Holding[],
  { isExact = false }: DivideOptions = {},
): Division {
  const limits = holdings.map((_, index) => (typeof most === 'number' ? most : (most[index] ?? Infinity)));
  const needs = needsOf(total, limits, holdings);
  const part = Math.floor(Math.max(0, total - sum(needs)) / (holdings.length + (isExact ? 0 : 1)));
  const fair = needs.map((need, index) => Math.min(limits[index] ?? 0, need + part));
  const lacking = holdings.map(({ used, given }, index) => Math.max(0, (fair[index] ?? 0) - Math.max(used, given)));
  const wanted = holdings.map(({ given }, index) => {
    const left = given - (needs[index] ?? 0);
    return left < 0 || (part > 0 && left < part / 2) ? (lacking[index] ?? 0) : 0;
  });
  let open = total - sum(holdings.map(({ used, given, inForce, uncounted }) => Math.max(used, given, inForce) + uncounted));
  const isTight = sum(wanted) > open || sum(holdings.map(({ used, given, uncounted }) => Math.max(used, given) + uncounted)) > total;
  const isShort: boolean[] = [];
  const shares = holdings.map(({ used, given, uncounted }, index) => {
    const want = isExact && !isTight ? (lacking[index] ?? 0) : (wanted[index] ?? 0);
    const more = Math.max(0, Math.min(want, open));
    open -= more;
    isShort.push(more < (wanted[index] ?? 0));
    if (more > 0) return Math.max(used, given) + more;
    if (!isTight) return Math.min(limits[index] ?? 0, given);
    return Math.max(0, Math.min(given, (fair[index] ?? 0) - uncounted));
  });
  return { shares, isShort };
}

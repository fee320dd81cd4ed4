// Reproducible random numbers: the same seed gives the same numbers in the same order.

/** Numbers in [0, 1) computed from the seed (mulberry32). */
export function chance(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** `KF_CHAOS_SEED`, or a new one. */
export function seedOfRun(): number {
  const given = Number(process.env['KF_CHAOS_SEED']);
  return Number.isInteger(given) && given > 0 ? given : 1 + Math.floor(Math.random() * 999_999);
}

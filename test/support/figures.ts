// Times that tests measure. They say as much about the machine as about kf, so they are printed and never judged.

/** What takes longer is named in the output of its ring, so that a slow run tells where its time went. */
const slowMs = 20_000;

/** {@link reportTime}, only when it took long. */
export function reportIfSlow(what: string, milliseconds: number): void {
  if (milliseconds > slowMs) reportTime(what, milliseconds);
}

export function reportTime(what: string, milliseconds: number): void {
  process.stderr.write(`measured: ${what}: ${(milliseconds / 1_000).toFixed(1)} s\n`);
}

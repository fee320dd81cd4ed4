// Times that tests measure. They depend on the machine as much as on kf, so they are printed and never asserted.

/** Longer times are named in the output of their ring, to explain a slow run. */
const slowMs = 20_000;
/** A command may name hundreds of objects. */
const mostCharacters = 200;

/** {@link reportTime}, only for long times. */
export function reportIfSlow(what: string, milliseconds: number): void {
  if (milliseconds > slowMs) reportTime(what.slice(0, mostCharacters), milliseconds);
}

export function reportTime(what: string, milliseconds: number): void {
  process.stderr.write(`measured: ${what}: ${(milliseconds / 1_000).toFixed(1)} s\n`);
}

/** A figure with its unit in the text. */
export function reportFigure(figure: string): void {
  process.stderr.write(`measured: ${figure}\n`);
}

// Times that tests measure. They say as much about the machine as about kf, so they are printed and never judged.

export function reportTime(what: string, milliseconds: number): void {
  process.stderr.write(`measured: ${what}: ${(milliseconds / 1_000).toFixed(1)} s\n`);
}

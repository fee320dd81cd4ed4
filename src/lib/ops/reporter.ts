// How a use case tells what it is doing. `lib/output` has a reporter for a terminal, for plain streams and for silence (`--json`).

/** Bytes of an upload so far; `total` is 0 while it is not known. */
export interface ByteProgress {
  done: number;
  total: number;
}

export interface Reporter {
  /** One line of cf's own text: stdout. Without text: an empty line. */
  say(line?: string): void;
  /** What runs or is awaited now, replacing the one before: a spinner with elapsed time on a terminal, one stderr line elsewhere. */
  step(text: string): void;
  /** Upload progress of the current step. */
  bytes(progress: ByteProgress): void;
  /** A line of a build or app log, as cf prints it while pushing (indented, on stdout). */
  log(line: string): void;
  /** A warning: stderr, and `warnings` in `--json`. */
  warn(text: string): void;
  /** Ends the current step, e.g. before a result is printed. */
  done(): void;
}

// Keeps state of reconcilers between runs. It belongs to the running controller, not to a module, so a new controller starts empty.

/** Names one part of the memory and creates its initial value. Made once per module; it holds no state itself. */
export class Remembered<T extends object> {
  readonly start: () => T;

  constructor(start: () => T) {
    this.start = start;
  }
}

/** The state of all reconcilers of one controller while it leads. Losing it costs another look, never a wrong decision. */
export class Memory {
  readonly #parts = new Map<Remembered<object>, object>();

  /** The current value of the part; created on first use. */
  of<T extends object>(part: Remembered<T>): T {
    const known = this.#parts.get(part) as T | undefined;
    if (known !== undefined) return known;
    const made = part.start();
    this.#parts.set(part, made);
    return made;
  }
}

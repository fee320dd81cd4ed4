// What reconcilers keep between runs. It belongs to the controller that runs, not to a module: a new controller begins with nothing.

/** Names one part of the memory and says how it begins. Made once per module; it holds nothing itself. */
export class Remembered<T extends object> {
  readonly start: () => T;

  constructor(start: () => T) {
    this.start = start;
  }
}

/** All that the reconcilers of one controller remember. What is lost with it costs a second look, never a wrong decision. */
export class Memory {
  readonly #parts = new Map<Remembered<object>, object>();

  /** The part as it is now; empty when it is asked for the first time. */
  of<T extends object>(part: Remembered<T>): T {
    const known = this.#parts.get(part) as T | undefined;
    if (known !== undefined) return known;
    const made = part.start();
    this.#parts.set(part, made);
    return made;
  }
}

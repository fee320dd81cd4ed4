// The reader's position in a container's log, so that a new connection repeats no line and loses none. Pure.
//
// The API server filters by whole seconds (`sinceTime`) and serves lines in the order of the file. So the reader requests the log from a second
// before its last line, skips lines up to exactly that one, and takes everything after it. If a line that is newer than all known ones comes
// first, the last line is no longer served: the file was rotated in between, and lines may be missing.

export interface StampedLine {
  /** RFC 3339 in UTC, nine decimals: sortable as text. */
  time: string;
  text: string;
}

const stamp = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9})\d*)?(Z|[+-]\d\d:\d\d) ?/;

/** Splits off the timestamp that the kubelet puts before a line (in the node's own time zone); undefined when there is none. */
export function parseStamped(line: string): StampedLine | undefined {
  const match = stamp.exec(line);
  if (match === null) return undefined;
  const [prefix, clock = '', fraction = '', zone = 'Z'] = match;
  const utc = zone === 'Z' ? clock : new Date(clock + zone).toISOString().slice(0, 19);
  return { time: `${utc}.${fraction.padEnd(9, '0')}Z`, text: line.slice(prefix.length) };
}

interface State {
  last: string;
  /** Number of consecutive lines with exactly that time. */
  repeats: number;
  newest: string;
}

/** The meaning of a line from a new connection. */
export type LineStatus = 'new' | 'seen' | 'hole';

export class LogPosition {
  #state: State | undefined;
  #toSkip = 0;

  get isFresh(): boolean {
    return this.#state === undefined;
  }

  /** Time of the last line taken. */
  get last(): string | undefined {
    return this.#state?.last;
  }

  /** For the next connection: a whole second, one before the last line's (two streams of one container may be written slightly out of order). */
  get sinceTime(): string | undefined {
    if (this.#state === undefined) return undefined;
    const second = Math.floor(Date.parse(this.#state.last) / 1000) - 1;
    return new Date(second * 1000).toISOString().replace('.000Z', 'Z');
  }

  /** False after a connection that did not serve the last known line. */
  get caughtUp(): boolean {
    return this.#toSkip === 0;
  }

  copy(): LogPosition {
    const other = new LogPosition();
    other.beginAfter(this);
    return other;
  }

  /** Continues after the last line of another position. */
  beginAfter(other: LogPosition): void {
    this.#state = other.#state === undefined ? undefined : { ...other.#state };
  }

  /** Before the first line of each connection. */
  connect(): void {
    this.#toSkip = this.#state?.repeats ?? 0;
  }

  /**
   * Classifies the next line of the connection and remembers it when it is new. `hole`: the last known line is no longer served and this one is
   * newer; it is remembered only with `acceptHole`.
   */
  take(time: string, acceptHole: boolean): LineStatus {
    if (this.#toSkip === 0 || this.#state === undefined) {
      this.#remember(time);
      return 'new';
    }
    if (time > this.#state.newest) {
      if (!acceptHole) return 'hole';
      this.#toSkip = 0;
      this.#remember(time);
      return 'hole';
    }
    if (time === this.#state.last) this.#toSkip--;
    return 'seen';
  }

  #remember(time: string): void {
    const state = this.#state;
    if (state === undefined) this.#state = { last: time, repeats: 1, newest: time };
    else
      this.#state = { last: time, repeats: state.last === time ? state.repeats + 1 : 1, newest: time > state.newest ? time : state.newest };
  }
}

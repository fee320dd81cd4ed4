// Splits a byte stream into lines; a character that is split between two chunks stays whole.

const newline = 0x0a;

export interface LinesOptions {
  /** Also return the text after the last newline. */
  keepRest: boolean;
  /** Called at the end with such a text that was left out. */
  onRest?: (rest: string) => void;
  /** A longer line is returned as soon as it has this many bytes; the rest up to its newline is dropped. No limit by default. */
  longest?: number;
  /** Put at the end of a line that is longer. Nothing by default. */
  cutMark?: string;
}

/** Lines without their newline, as UTF-8. Errors of the stream pass through after all whole lines. */
export async function* linesFrom(
  stream: AsyncIterable<Buffer>,
  { keepRest, onRest, longest = Infinity, cutMark = '' }: LinesOptions,
): AsyncGenerator<string, void, undefined> {
  let pending: Buffer[] = [];
  let size = 0;
  let isDropping = false;
  const take = (): string => {
    const line = (pending.length === 1 ? pending[0] : Buffer.concat(pending))?.subarray(0, longest === Infinity ? size : longest);
    const mark = size > longest ? cutMark : '';
    pending = [];
    size = 0;
    return (line?.toString('utf8') ?? '') + mark;
  };
  const add = (piece: Buffer): void => {
    if (isDropping) return;
    pending.push(piece);
    size += piece.length;
  };
  for await (const chunk of stream) {
    let start = 0;
    for (let end = chunk.indexOf(newline); end !== -1; end = chunk.indexOf(newline, start)) {
      add(chunk.subarray(start, end));
      start = end + 1;
      if (!isDropping) yield take();
      isDropping = false;
    }
    if (start < chunk.length) add(chunk.subarray(start));
    if (size > longest) {
      yield take();
      isDropping = true;
    }
  }
  if (size === 0) return;
  if (keepRest) yield take();
  else onRest?.(take());
}

/** The first and the last lines of a log, and the number of lines between them. */
export interface LogEnds {
  head: string[];
  omitted: number;
  tail: string[];
}

/** How many lines are kept at each end of a log. */
export interface EndsSize {
  head: number;
  tail: number;
}

/** Of a failed program's log: enough for a cause before a long stack, and for its last lines. */
export const usualSize: EndsSize = { head: 10, tail: 30 };
const longestKept = 500;

/** The kubelet writes its own errors into the body of a log, with status 200 (kubernetes/pkg/kubelet, GetContainerLogs). */
const kubeletNote = /^unable to retrieve container logs for \w+:\/\//;

/** True for what the kubelet says instead of a log whose container it has removed. */
export const isKubeletNote = (line: string): boolean => kubeletNote.test(line);

/** A short log is all tail. Lines are cut at 500 characters, blank ones at the end are dropped. */
export async function endsOf(lines: AsyncIterable<string> | Iterable<string>, size: EndsSize = usualSize): Promise<LogEnds> {
  const head: string[] = [];
  const last: string[] = [];
  let [count, blank] = [0, 0];
  const add = (line: string): void => {
    count += 1;
    if (head.length < size.head) head.push(line);
    last.push(line);
    if (last.length > size.tail) last.shift();
  };
  for await (const raw of lines) {
    if (isKubeletNote(raw)) continue;
    const line = raw.trimEnd().slice(0, longestKept);
    if (line === '') blank += 1;
    else {
      // Blank lines count only if another line follows.
      while (blank > 0) {
        add('');
        blank -= 1;
      }
      add(line);
    }
  }
  const first = head.slice(0, Math.max(0, count - last.length));
  return { head: first, omitted: count - first.length - last.length, tail: last };
}

/** Ends a stream after this many bytes. @param onCut called when there are more */
export async function* upTo(stream: AsyncIterable<Buffer>, most: number, onCut?: () => void): AsyncGenerator<Buffer, void, undefined> {
  let left = most;
  for await (const chunk of stream) {
    if (chunk.length > left) onCut?.();
    const piece = Buffer.from(chunk).subarray(0, left);
    left -= piece.length;
    yield piece;
    if (chunk.length > piece.length) return;
  }
}

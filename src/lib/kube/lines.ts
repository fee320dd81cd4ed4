// Splits a byte stream into lines; a character that is cut by a chunk's border stays whole.

const newline = 0x0a;

export interface LinesOptions {
  /** Hand out what stands behind the last newline too. */
  keepRest: boolean;
  /** A line with more bytes is handed out as soon as it has them; what follows up to its newline is dropped. No limit unless told. */
  longest?: number;
}

/** Lines without their newline, as UTF-8. Errors of the stream pass through after all whole lines. */
export async function* linesFrom(
  stream: AsyncIterable<Buffer>,
  { keepRest, longest = Infinity }: LinesOptions,
): AsyncGenerator<string, void, undefined> {
  let pending: Buffer[] = [];
  let size = 0;
  let isDropping = false;
  const take = (): string => {
    const line = (pending.length === 1 ? pending[0] : Buffer.concat(pending))?.subarray(0, longest === Infinity ? size : longest);
    pending = [];
    size = 0;
    return line?.toString('utf8') ?? '';
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
  if (keepRest && size > 0) yield take();
}

/** The last bytes of a stream, at most `most`; a character that is cut at the front stands as U+FFFD in its text. */
export async function endOf(stream: AsyncIterable<Buffer>, most: number): Promise<Buffer> {
  let end: Buffer = Buffer.alloc(0);
  for await (const chunk of stream) end = Buffer.concat([end, Buffer.from(chunk)]).subarray(-most);
  return end;
}

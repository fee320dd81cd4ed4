// Splits a byte stream into lines; a character that is cut by a chunk's border stays whole.

const newline = 0x0a;

export interface LinesOptions {
  /** Hand out what stands behind the last newline too. */
  keepRest: boolean;
}

/** Lines without their newline, as UTF-8. Errors of the stream pass through after all whole lines. */
export async function* linesFrom(stream: AsyncIterable<Buffer>, { keepRest }: LinesOptions): AsyncGenerator<string> {
  let pending: Buffer[] = [];
  for await (const chunk of stream) {
    let start = 0;
    for (let end = chunk.indexOf(newline); end !== -1; end = chunk.indexOf(newline, start)) {
      const piece = chunk.subarray(start, end);
      const line = pending.length === 0 ? piece : Buffer.concat([...pending, piece]);
      pending = [];
      start = end + 1;
      yield line.toString('utf8');
    }
    if (start < chunk.length) pending.push(chunk.subarray(start));
  }
  if (keepRest && pending.length > 0) yield Buffer.concat(pending).toString('utf8');
}

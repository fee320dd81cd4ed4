// Lines of several containers of one pod in the order in which they were written, which is not the one in which connections bring them.

import type { LogEntry } from './entry.ts';

interface Held {
  entry: LogEntry;
  arrived: number;
}

/**
 * Holds each entry back for `holdMs`, and gives out the oldest first. Containers of one pod share their node's clock, so that their times can be
 * compared; entries of one time keep the order in which they came.
 */
export async function* inOrder(stream: AsyncIterable<LogEntry>, holdMs: number): AsyncGenerator<LogEntry> {
  const held: Held[] = [];
  const source = stream[Symbol.asyncIterator]();
  let next = source.next();
  let timer: NodeJS.Timeout | undefined;
  try {
    for (;;) {
      const oldest = held[0];
      // The oldest by time may not have waited long itself, when an older line than all comes late: it has waited enough.
      const since = Math.min(...held.map(({ arrived }) => arrived));
      const due = new Promise<undefined>((resolve) => {
        if (oldest !== undefined) timer = setTimeout(() => resolve(undefined), Math.max(0, since + holdMs - performance.now()));
      });
      const result = await Promise.race([next, due]);
      clearTimeout(timer);
      if (result === undefined) {
        const first = held.shift();
        if (first !== undefined) yield first.entry;
      } else if (result.done === true) {
        for (const { entry } of held.splice(0)) yield entry;
        return;
      } else {
        insert(held, { entry: result.value, arrived: performance.now() });
        next = source.next();
      }
    }
  } finally {
    clearTimeout(timer);
    await source.return?.();
  }
}

function insert(held: Held[], item: Held): void {
  const index = held.findLastIndex(({ entry }) => entry.time <= item.entry.time);
  held.splice(index + 1, 0, item);
}

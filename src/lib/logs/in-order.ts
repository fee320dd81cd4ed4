// Sorts the lines of several containers of one pod by time, because their connections deliver them in another order.

import type { LogEntry } from './entry.ts';

interface Held {
  entry: LogEntry;
  arrived: number;
}

/**
 * Delays each entry by `holdMs` and returns the oldest first. The containers of one pod use the clock of their node, so their times are
 * comparable; entries with the same time keep their order of arrival.
 */
export async function* inOrder(stream: AsyncIterable<LogEntry>, holdMs: number): AsyncGenerator<LogEntry> {
  const held: Held[] = [];
  const source = stream[Symbol.asyncIterator]();
  let next = source.next();
  let timer: NodeJS.Timeout | undefined;
  try {
    for (;;) {
      const oldest = held[0];
      // The entry with the oldest time may have arrived just now; the longest wait of any entry counts.
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

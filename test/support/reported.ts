// The text that users see for the events of an op.

import type { OpEvent, Report } from '../../src/lib/events.ts';
import { renderEvent } from '../../src/lib/views/progress.ts';

/** The warnings in events, as they are printed. */
export function warningsIn(events: readonly OpEvent[], bin = 'kf'): string[] {
  return events.flatMap((event) => renderEvent(event, bin)).flatMap((shown) => ('warn' in shown ? [shown.warn] : []));
}

/** Records events, and returns the warnings among them. */
export function recordEvents(bin = 'kf'): { report: Report; events: OpEvent[]; warnings: () => string[] } {
  const events: OpEvent[] = [];
  return { report: (event) => void events.push(event), events, warnings: () => warningsIn(events, bin) };
}

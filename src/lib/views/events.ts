// `events`, as cf prints them.

import type { AppEvent } from '../api/results.ts';
import { eventDate } from './dates.ts';
import { table, type Block } from './block.ts';

/** @param timeZone default: the local one */
export function renderEvents(events: readonly AppEvent[], timeZone?: string): Block[] {
  const rows = events.map(({ time, type, actor, description }) => [
    eventDate(time, timeZone),
    type,
    actor,
    description.replaceAll(/\s+/g, ' ').trim(),
  ]);
  return [table(['time', 'event', 'actor', 'description'], rows)];
}

// The recorded events of an app: a ConfigMap with an entry for each, and with what was seen of the app when they were written.

import type { ConfigMap } from './core.ts';
import type { AppEvent } from './results.ts';

/** Events that are kept; the oldest ones make room. */
export const mostEvents = 200;

/** Name of the ConfigMap with the events. */
export const eventsName = (app: string): string => `${app}-events`;

/** What was seen of an app. Objects are known by the beginning of their uid, or by name where a later event needs it. */
export interface Seen {
  /** When this record began. */
  begun: string;
  name: string;
  state: string;
  deployId: string;
  /** What is asked of the present deployment; missing in records of before. */
  rollout?: string;
  droplet: string;
  /** The last outcome of a change: its id and phase. */
  outcome: string;
  revision: number;
  /** Instances, memory and disk by process type. */
  processes: Record<string, readonly [instances: number, memoryMB: number, diskMB: number]>;
  packages: string[];
  /** Builds that exist, and droplets among them. */
  builds: string[];
  droplets: string[];
  /** Service instances by binding, and addresses by route. */
  bindings: Record<string, string>;
  routes: Record<string, string>;
  tasks: string[];
  /** The last end of an instance without being told to, by pod: when it was, or `evicted`, or the number of an end without a time. */
  ended: Record<string, string>;
}

const seenKey = 'seen';
const isText = (value: unknown): value is string => typeof value === 'string';

function parsed(text: string | undefined): Partial<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text ?? '');
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

/** What the ConfigMap says was seen; undefined when it does not say. */
export function readSeen(map: ConfigMap | undefined): Seen | undefined {
  const value = parsed(map?.data?.[seenKey]);
  const {
    begun,
    name,
    state,
    deployId,
    droplet,
    outcome,
    revision,
    processes,
    packages,
    builds,
    droplets,
    bindings,
    routes,
    tasks,
    ended,
  } = value ?? {};
  const isWhole =
    [begun, name, state, deployId, droplet, outcome].every(isText) &&
    typeof revision === 'number' &&
    [packages, builds, droplets, tasks].every((list) => Array.isArray(list)) &&
    [processes, bindings, routes, ended].every((record) => typeof record === 'object' && record !== null);
  return isWhole ? (value as unknown as Seen) : undefined;
}

/** A recorded event and its number; they count from 1. */
interface Numbered {
  number: number;
  event: AppEvent;
}

function eventIn(key: string, text: string): Numbered[] {
  if (!/^[1-9]\d{0,8}$/.test(key)) return [];
  const { time, type, actor, description } = parsed(text) ?? {};
  if (!isText(time) || !isText(type) || !isText(actor) || !isText(description)) return [];
  return [{ number: Number(key), event: { time, type, actor, description } }];
}

function numberedEvents(map: ConfigMap | undefined): Numbered[] {
  return Object.entries(map?.data ?? {})
    .flatMap(([key, text]) => eventIn(key, text))
    .toSorted((a, b) => a.number - b.number)
    .slice(-mostEvents);
}

/** The recorded events, in the order in which they were recorded. An entry that is none is left out. */
export const readEvents = (map: ConfigMap | undefined): AppEvent[] => numberedEvents(map).map(({ event }) => event);

/**
 * The entries to write for new events; null removes one. Each event is an entry of its own, so that a write sends only what is new.
 * @param events in the order in which they happened
 */
export function entriesFor(map: ConfigMap | undefined, events: readonly AppEvent[], seen: Seen): Record<string, string | null> {
  const known = numberedEvents(map);
  const first = (known.at(-1)?.number ?? 0) + 1;
  const added = events.slice(-mostEvents).map((event, at): Numbered => ({ number: first + at, event }));
  const kept = new Set([...known, ...added].slice(-mostEvents).map(({ number }) => String(number)));
  const gone = Object.keys(map?.data ?? {}).filter((key) => key !== seenKey && !kept.has(key));
  return {
    ...Object.fromEntries(gone.map((key) => [key, null])),
    ...Object.fromEntries(added.map(({ number, event }) => [String(number), JSON.stringify(event)])),
    [seenKey]: JSON.stringify(seen),
  };
}

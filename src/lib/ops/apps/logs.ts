// logs: lines of an app's instances and builds, live or the last ones.

import { labels } from '../../api/group.ts';
import type { Stored } from '../../api/object.ts';
import type { CFApp } from '../../api/types.generated.ts';
import { formatLogLines, formatSource } from '../../logs/format.ts';
import type { LogEntry } from '../../logs/entry.ts';
import { failedVersionEntries } from '../../logs/failed.ts';
import { recentLogs } from '../../logs/recent.ts';
import { followLogs } from '../../logs/stream.ts';
import type { SpaceSession } from '../../session/session.ts';

/** The number that cf's log system keeps. */
const recentLines = 1000;

/** One entry as cf prints it, and its parts. */
export interface PrintedEntry {
  entry: LogEntry;
  /** `APP/PROC/WEB/0` */
  source: string;
  lines: string[];
}

function scopeOf(session: SpaceSession, app: Stored<CFApp>): { ns: string; selector: string } {
  return { ns: session.space.guid, selector: `${labels.appGuid}=${app.metadata.name}` };
}

const printed = (entry: LogEntry): PrintedEntry => ({ entry, source: formatSource(entry.source), lines: formatLogLines(entry) });

/** The last lines of all instances and builds, oldest first, including the previous run of crashed containers and a version that failed. */
export async function readRecentLogs(session: SpaceSession, app: Stored<CFApp>): Promise<{ entries: PrintedEntry[]; notes: string[] }> {
  const { cluster, signal } = session;
  const { entries, notes } = await recentLogs(cluster, { ...scopeOf(session, app), lines: recentLines, signal });
  const all = [...entries, ...failedVersionEntries(app, entries)];
  // A stable sort: lines of one time keep their order.
  all.sort((a, b) => (a.time < b.time ? -1 : a.time > b.time ? 1 : 0));
  return { entries: all.map(printed), notes: notes.map(({ source, text }) => `${source.pod}/${source.container}: ${text}`) };
}

/** Every line from now on, until the command is interrupted. */
export async function* followAppLogs(session: SpaceSession, app: Stored<CFApp>): AsyncGenerator<PrintedEntry> {
  const { cluster, signal } = session;
  const stream = followLogs(cluster, { ...scopeOf(session, app), tailLines: 0, signal });
  try {
    for await (const entry of stream) yield printed(entry);
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

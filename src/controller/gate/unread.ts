// Reads how many bytes the kernel still holds for clients that have not read them. Node does not report this; Linux does, for all connections at
// once.

import { readlinkSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { Socket } from 'node:net';

/** Keys are the inodes of the connections. */
export type Unread = ReadonlyMap<string, number>;

const none = (): string => '';

/** Bytes that were written to a connection and have not arrived; empty if the system has no such table. */
export async function readUnread(): Promise<Unread> {
  const tables = await Promise.all(['tcp', 'tcp6'].map((name) => readFile(`/proc/self/net/${name}`, 'utf8').catch(none)));
  const unread = new Map<string, number>();
  for (const line of tables.flatMap((table) => table.split('\n').slice(1))) {
    // https://docs.kernel.org/networking/proc_net_tcp.html: number, both addresses, state, queues, timer, retransmits, user, timeout, inode
    const [, , , , queues = '', , , , , inode = ''] = line.trim().split(/ +/);
    const bytes = Number.parseInt(queues, 16);
    if (bytes > 0) unread.set(inode, bytes);
  }
  return unread;
}

/** The inode of a connection in the kernel's table; undefined if it is not known. */
export function inodeOf(socket: Socket): string | undefined {
  const { fd = -1 } = (socket as unknown as { _handle?: { fd?: number } | null })._handle ?? {};
  try {
    return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/self/fd/${fd}`))?.[1];
  } catch {
    return undefined;
  }
}

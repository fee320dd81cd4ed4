// Limits of the machine that several clusters on it would exceed.
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** Watchers of files per user. A cluster's programs hold about 20, and most systems allow 128: the seventh cluster's containerd starts without its CRI. */
const inotifyInstances = { file: '/proc/sys/fs/inotify/max_user_instances', least: 1024 };

/** Raises a lower limit until the machine's next start; a higher one stays. If it cannot be written, a line says what may fail. */
export function raiseLimits(log: (line: string) => void, { file, least } = inotifyInstances): void {
  try {
    const present = Number(readFileSync(file, 'utf8'));
    if (present >= least) return;
    writeFileSync(file, String(least));
    log(`raised fs.inotify.max_user_instances from ${String(present)} to ${String(least)}`);
  } catch {
    log(`fs.inotify.max_user_instances stays as it is (${file} cannot be written); a node that does not become ready may need it raised`);
  }
}

/** How Linux (6.8 and newer) treats pages of 64 KiB: `always inherit madvise [never]`, with the present one in brackets. */
const largerPages = '/sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled';

/**
 * Has Linux map 64 KiB at a page fault, in place of 4, until the machine's next start. Starting a process of Node takes 2,700 page faults otherwise, and
 * 1,000 with it. Where a hypervisor handles each (29 µs were measured), that is half of its time. A machine where somebody has chosen a size, or no
 * larger pages at all, stays as it is.
 */
export function mapLargerPages(log: (line: string) => void, file = largerPages): void {
  try {
    const isNever = (setting: string): boolean => readFileSync(setting, 'utf8').includes('[never]');
    if (!isNever(file) || isNever(join(dirname(file), '..', 'enabled'))) return;
    writeFileSync(file, 'always');
    log("64 KiB are mapped at a page fault until the machine's next start: processes start faster");
  } catch {
    // An older kernel, or not allowed: everything works, more slowly.
  }
}

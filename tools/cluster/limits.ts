// Limits of the machine that several clusters on it would exceed.
import { readFileSync, writeFileSync } from 'node:fs';

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

// How long a deletion waits.

import { readSettings } from '../session/settings.ts';
import { timerMs } from '../wait.ts';

/** In milliseconds: as `kf config --async-timeout` says, or else so many minutes. */
export const asyncTimeoutMs = (env: Parameters<typeof readSettings>[0], usualMinutes: number): number =>
  timerMs((readSettings(env).AsyncTimeout ?? usualMinutes) * 60_000);

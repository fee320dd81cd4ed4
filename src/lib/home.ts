// The home folder of the user.

import { homedir } from 'node:os';

/** Without HOME, that of the system's list of users. A random UID, as of a pod, is not in it: then `/`, as container runtimes set it. */
export function homeFolder(env: Readonly<Record<string, string | undefined>>): string {
  const { HOME = '' } = env;
  if (HOME !== '') return HOME;
  try {
    return homedir();
  } catch {
    return '/';
  }
}

// The command that starts the app: what `npm start` would run, without npm in between, so that signals reach the app.
import { existsSync } from 'node:fs';
import { join } from 'node:path';

/** Characters that only a shell interprets; a command without them is split at blanks and started as it is. */
const SHELL_CHARACTERS = /^\w+=|[|&;<>()$`\\"'*?[\]#~%!{}\n]/;

/** The web process as an argument list, or undefined if no start command is known. */
export function webCommand(manifest, appDir) {
  const scripts = manifest.scripts ?? {};
  if (scripts.start) {
    const steps = [scripts.prestart, scripts.start, scripts.poststart].filter(Boolean);
    if (steps.length === 1 && !SHELL_CHARACTERS.test(scripts.start)) return scripts.start.trim().split(/\s+/);
    return ['bash', '-c', steps.join(' && ')];
  }
  for (const file of ['server.js', manifest.main]) {
    if (file && existsSync(join(appDir, file))) return ['node', file];
  }
  return undefined;
}

// The development tools of node_modules, which are found even if a script was not started by npm.

import path from 'node:path';

const folder = path.join(import.meta.dirname, '..', 'node_modules', '.bin');

/** The environment of this process with `more` added, and with the tools of node_modules first on the path. */
export function toolsEnv(more: Record<string, string> = {}): NodeJS.ProcessEnv {
  const env = { ...process.env, ...more };
  return { ...env, PATH: [folder, env['PATH'] ?? ''].join(path.delimiter) };
}

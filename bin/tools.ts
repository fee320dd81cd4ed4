// The development tools of node_modules, found also when a script was not started by npm.

import path from 'node:path';

const folder = path.join(import.meta.dirname, '..', 'node_modules', '.bin');

/** The environment of this process with the tools of node_modules before everything else on the path. */
export const toolsEnv: NodeJS.ProcessEnv = { ...process.env, PATH: [folder, process.env['PATH'] ?? ''].join(path.delimiter) };

// Where `npm run demo` keeps what is its own, and what it prints when it is done: lines to paste, and how to clean up.

import path from 'node:path';

interface Demo {
  /** Path of the installed program. */
  kf: string;
  env: Readonly<Record<string, string | undefined>>;
  /** A cluster of the demo's own. */
  own: boolean;
}

/** The folder of one demo: an installed kf, its home and settings. Demos of other clusters have others, which `--down` leaves alone. */
export function demoFolder(cache: string, demo: { cluster: string } | { context: string }): string {
  const [kind, name] = 'cluster' in demo ? ['clusters', demo.cluster] : ['contexts', demo.context];
  return path.join(cache, 'demo', kind, encodeURIComponent(name));
}

/** Text that a shell takes as one word. */
export const quoted = (word: string): string => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

/** How to go on in a shell. The alias names the Node that runs the demo: the machine's own may be too old for kf. */
export function nextSteps({ kf, env, own }: Demo): string {
  const shown = ['KUBECONFIG', 'CF_HOME', 'KF_CONTEXT'].filter((name) => env[name] !== undefined);
  const exports = shown.map((name) => `  export ${name}=${quoted(env[name] ?? '')}`).join('\n');
  return `${exports}
  alias kf=${quoted(`${quoted(process.execPath)} ${quoted(kf)}`)}

  kf app hello                    how it does
  kf logs hello                   its log as it comes; Ctrl-C ends
  kf help                         everything else
  npm run demo -- --path DIR      pushes a folder of your own

Clean up:
  ${own ? 'npm run demo -- --down          takes the cluster down; what was compiled stays cached' : 'kf uninstall                    removes kf and its apps from the cluster'}`;
}

// The folder of `npm run demo`, and the lines that it prints at its end: commands to paste, and how to clean up.

import path from 'node:path';

interface Demo {
  /** Path of the installed program. */
  kf: string;
  env: Readonly<Record<string, string | undefined>>;
  /** The demo has its own cluster. */
  own: boolean;
  /** URLs of the pushed apps. */
  urls: readonly string[];
}

/** The folder of one demo: an installed kf, its home and settings. Demos of other clusters have other folders, which `--down` does not touch. */
export function demoFolder(cache: string, demo: { cluster: string } | { context: string }): string {
  const [kind, name] = 'cluster' in demo ? ['clusters', demo.cluster] : ['contexts', demo.context];
  return path.join(cache, 'demo', kind, encodeURIComponent(name));
}

/** Quotes a text as one word for a shell. */
export const quoted = (word: string): string => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

/** The next commands for a shell. The alias names the Node that runs the demo, because the machine's own may be too old for kf. */
export function nextSteps({ kf, env, own, urls }: Demo): string {
  const shown = ['KUBECONFIG', 'CF_HOME', 'KF_CONTEXT'].filter((name) => env[name] !== undefined);
  const exports = shown.map((name) => `  export ${name}=${quoted(env[name] ?? '')}`).join('\n');
  return `${exports}
  alias kf=${quoted(`${quoted(process.execPath)} ${quoted(kf)}`)}

${urls.map((url) => `  curl ${quoted(url)}\n`).join('')}  kf app hello                    its state and its instances
  kf logs hello                   follows its log; Ctrl-C ends
  kf help                         everything else
  npm run demo -- --path DIR      pushes a folder of your own

Clean up:
  ${own ? 'npm run demo -- --down          takes the cluster down; what was compiled stays cached' : 'kf uninstall                    removes kf and its apps from the cluster'}`;
}

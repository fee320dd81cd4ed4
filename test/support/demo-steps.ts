// What `npm run demo` prints when it is done: lines to paste, and how to clean up.

interface Demo {
  /** Path of the installed program. */
  kf: string;
  env: Readonly<Record<string, string | undefined>>;
  /** A cluster of the demo's own. */
  own: boolean;
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

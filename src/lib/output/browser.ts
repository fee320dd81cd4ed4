// Shows a URL in the user's browser.

import { spawn } from 'node:child_process';

type Env = Readonly<Record<string, string | undefined>>;

/** The program that opens a URL, with its arguments before it. */
function opener(env: Env, platform: NodeJS.Platform): [program: string, ...before: string[]] {
  const { BROWSER = '' } = env;
  if (BROWSER !== '') return [BROWSER];
  if (platform === 'darwin') return ['open'];
  return platform === 'win32' ? ['rundll32', 'url.dll,FileProtocolHandler'] : ['xdg-open'];
}

/** Starts the browser and does not wait for it. Resolves to false when there is no program for it. */
export function openInBrowser(url: string, env: Env): Promise<boolean> {
  const [program, ...before] = opener(env, process.platform);
  const child = spawn(program, [...before, url], { detached: true, stdio: 'ignore' });
  return new Promise((resolve) => {
    child.once('error', () => resolve(false));
    child.once('spawn', () => {
      child.unref();
      resolve(true);
    });
  });
}

// The Debian packages that a cluster needs, installed only if they are missing.
import { run, tryRun } from './process.ts';

const runtimePackages = ['containernetworking-plugins', 'iptables', 'conntrack', 'ipset', 'iproute2', 'openssl', 'util-linux'];
/** What the scripts of the cluster ring call. */
const scriptPackages = ['curl', 'jq'];
/** Gives a controller of the api ring a clock that a test can set. */
const clockPackages = ['libfaketime'];
/** Needed to compile runc with seccomp. */
const buildPackages = ['libseccomp-dev', 'pkg-config', 'gcc', 'libc6-dev'];

/**
 * Installs missing Debian packages without asking.
 * On a system without dpkg nothing is checked: a missing program is reported when it is used.
 */
export async function installPackages(log: (line: string) => void): Promise<void> {
  const wanted = [...runtimePackages, ...scriptPackages, ...clockPackages, ...buildPackages];
  const query = await tryRun('dpkg-query', ['-W', '-f', '${Package} ${db:Status-Abbrev}\n', ...wanted]).catch(() => undefined);
  if (!query) return;
  const installed = new Set(
    query.stdout
      .split('\n')
      .filter((line) => line.includes(' ii'))
      .map((line) => line.split(' ')[0]),
  );
  const missing = wanted.filter((name) => !installed.has(name));
  if (missing.length === 0) return;
  log(`installing Debian packages: ${missing.join(' ')}`);
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  const install = ['install', '-y', '-q', '--no-install-recommends', ...missing];
  if ((await tryRun('apt-get', install, { env })).code === 0) return;
  // Package lists may be missing or outdated.
  await run('apt-get', ['update', '-q'], { env });
  await run('apt-get', install, { env });
}

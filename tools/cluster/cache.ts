// The folders of built parts and of cluster state, outside the checkout.
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';

/** The cache folder: $KF_CACHE, else $XDG_CACHE_HOME/kf, else ~/.cache/kf. */
export function cacheFolder(env: NodeJS.ProcessEnv = process.env): string {
  if (env['KF_CACHE']) return resolve(env['KF_CACHE']);
  if (env['XDG_CACHE_HOME']) return resolve(env['XDG_CACHE_HOME'], 'kf');
  return join(homedir(), '.cache', 'kf');
}

/** The folder with one subfolder per cluster: $KF_CLUSTER_DIR, else `clusters` in the cache folder. */
export function clustersFolder(env: NodeJS.ProcessEnv = process.env): string {
  return env['KF_CLUSTER_DIR'] ? resolve(env['KF_CLUSTER_DIR']) : join(cacheFolder(env), 'clusters');
}

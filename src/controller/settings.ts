// The controller's settings: from the environment, then from flags.

import { hostname } from 'node:os';
import { parseArgs } from 'node:util';
import { places } from '../lib/api/group.ts';
import { KfError } from '../lib/errors.ts';
import type { LogLevel } from './runtime/log.ts';

export interface Settings {
  rootNamespace: string;
  systemNamespace: string;
  /** Unique per process; a restarted container of the same pod may continue with its Lease. */
  identity: string;
  /** Name of the Lease for leader election. */
  leaseName: string;
  /** undefined: no server. */
  httpPort: number | undefined;
  logLevel: LogLevel;
  /** Names of the reconcilers to run; empty: all. */
  reconcilers: string[];
  /** Folder with the bundle's other programs. */
  bundleDir: string | undefined;
}

const levels: readonly LogLevel[] = ['debug', 'info', 'warn', 'error'];

function levelOf(text: string | undefined): LogLevel {
  const level = levels.find((candidate) => candidate === (text ?? 'info'));
  if (level === undefined) throw new KfError('usage', `The log level must be one of ${levels.join(', ')}, not '${text ?? ''}'.`);
  return level;
}

function portOf(text: string | undefined): number | undefined {
  if (text === undefined || text === '') return undefined;
  const port = Number(text);
  if (!Number.isInteger(port) || port < 0 || port > 65_535)
    throw new KfError('usage', `KF_HTTP_PORT must be a port number, not '${text}'.`);
  return port;
}

/** Reads `KF_…` variables and `--reconcilers app,process`, `--log-level debug`. */
export function readSettings(args: readonly string[], env: Readonly<Record<string, string | undefined>>): Settings {
  const { values } = parseArgs({ args: [...args], options: { reconcilers: { type: 'string' }, 'log-level': { type: 'string' } } });
  return {
    rootNamespace: env['KF_ROOT_NAMESPACE'] ?? places.rootNamespace,
    systemNamespace: env['KF_SYSTEM_NAMESPACE'] ?? places.systemNamespace,
    identity: env['KF_POD_NAME'] ?? `${hostname()}-${String(process.pid)}`,
    leaseName: env['KF_LEASE_NAME'] ?? places.leaderRecord,
    httpPort: portOf(env['KF_HTTP_PORT']),
    logLevel: levelOf(values['log-level'] ?? env['KF_LOG_LEVEL']),
    reconcilers: (values.reconcilers ?? env['KF_RECONCILERS'] ?? '').split(',').filter((name) => name !== ''),
    bundleDir: env['KF_BUNDLE_DIR'],
  };
}

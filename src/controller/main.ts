// Program: the controller. Connects as its service account (or by kubeconfig, for development) and reconciles until SIGTERM or SIGINT.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { KfError, messageOf } from '../lib/errors.ts';
import { connect } from '../lib/kube/client.ts';
import { ServerClock } from '../lib/kube/server-clock.ts';
import { allReconcilers } from './reconcilers.ts';
import { createLogger, type Logger } from './runtime/log.ts';
import { Manager } from './runtime/manager.ts';
import type { Reconciler } from './runtime/reconciler.ts';
import { readSettings, type Settings } from './settings.ts';
import { sources } from './sources.ts';
import { defined } from '../lib/defined.ts';

/** Text of the program that a build's source container runs; empty when the bundle has none. */
function fetchProgram({ bundleDir }: Settings): string {
  const file = bundleDir === undefined ? undefined : join(bundleDir, 'fetch.mjs');
  return file !== undefined && existsSync(file) ? readFileSync(file, 'utf8') : '';
}

/** All reconcilers, or those that `--reconcilers` names. */
function chosenReconcilers(settings: Settings): Reconciler[] {
  const all = allReconcilers({ fetchProgram: fetchProgram(settings) });
  if (settings.reconcilers.length === 0) return all;
  const unknown = settings.reconcilers.filter((name) => !all.some((reconciler) => reconciler.name === name));
  if (unknown.length > 0) {
    throw new KfError('usage', `There is no reconciler ${unknown.join(', ')}; there are ${all.map(({ name }) => name).join(', ')}.`);
  }
  return all.filter(({ name }) => settings.reconcilers.includes(name));
}

async function run(settings: Settings, log: Logger): Promise<void> {
  const clock = new ServerClock();
  const cluster = await connect({ env: process.env, userAgent: 'kf-controller', onDate: clock.observe });
  const ended = new AbortController();
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.once(signal, () => {
      log.info('told to end', { signal });
      ended.abort();
    });
  }
  const manager = new Manager({
    cluster,
    sources: sources(settings.rootNamespace),
    reconcilers: chosenReconcilers(settings),
    leader: { ns: settings.systemNamespace, name: settings.leaseName, identity: settings.identity },
    rootNamespace: settings.rootNamespace,
    now: clock.now,
    ...defined({ httpPort: settings.httpPort }),
    log,
  });
  log.info('starts', { identity: settings.identity, server: cluster.identity.server, node: process.version });
  await manager.run(ended.signal);
  cluster.close();
}

async function main(): Promise<void> {
  const write = (line: string): void => void process.stdout.write(line);
  let log = createLogger('info', write);
  try {
    const settings = readSettings(process.argv.slice(2), process.env);
    log = createLogger(settings.logLevel, write);
    await run(settings, log);
    process.exit(0);
  } catch (error) {
    log.error('cannot continue', { error: messageOf(error) });
    process.exit(1);
  }
}

await main();

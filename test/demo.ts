// `npm run demo [-- --path DIR] [--context NAME] [--down]`: from nothing to an app that answers, on a real cluster.

import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { request } from 'node:http';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { configMapType } from '../src/lib/api/core.ts';
import { places } from '../src/lib/api/group.ts';
import { parseKfInfo } from '../src/lib/api/kf-info.ts';
import { messageOf } from '../src/lib/errors.ts';
import { connect } from '../src/lib/kube/client.ts';
import { fetchPackagesOf } from '../tools/cluster/npm-mirror.ts';
import { hasParts } from '../tools/cluster/parts.ts';
import { demoFolder, nextSteps, quoted } from './support/demo-steps.ts';
import { installPackedKf } from './support/installed-kf.ts';
import { endOn } from './support/interruption.ts';
import { clusterDown, clusterPrepare, clusterUp, writeSetupFile, type ClusterEnv } from './support/local-cluster.ts';

const usage = `usage: npm run demo [-- OPTIONS]

  --path DIR       push this folder too, as app "yours"
  --context NAME   take this cluster of your kubeconfig instead of one of the demo's own
  --down           take the demo's cluster down`;

/** KF_DEMO_CLUSTER: for users who must not touch another user's running demo. */
const clusterName = process.env['KF_DEMO_CLUSTER'] ?? 'demo';
const started = Date.now();
let running: ChildProcess | undefined;

interface Prepared {
  kf: string;
  env: NodeJS.ProcessEnv;
  setupFlags: string[];
  /** A cluster of the demo's own. */
  own: boolean;
}

const seconds = (): string => ((Date.now() - started) / 1000).toFixed(1);

function say(text: string): void {
  console.log(`\n[${seconds()} s] ${text}`);
}

/** Runs the installed kf and shows the command; a failing step ends the demo. */
function kf(prepared: Prepared, ...args: string[]): Promise<void> {
  console.log(`\n$ kf ${args.map(quoted).join(' ')}`);
  return new Promise((resolve, reject) => {
    running = spawn(prepared.kf, args, { stdio: ['ignore', 'inherit', 'inherit'], env: prepared.env });
    running.on('error', reject);
    running.on('exit', (code) => {
      running = undefined;
      if (code === 0) resolve();
      else reject(new Error(`\`kf ${args[0] ?? ''}\` ended with exit code ${String(code)}; what it said is above.`));
    });
  });
}

/** The outside address of the installation's gateway, as `kf setup` found it. */
async function readGateway(prepared: Prepared): Promise<{ address?: string; port: number; domain: string }> {
  const context = prepared.env['KF_CONTEXT'];
  const cluster = await connect({ env: prepared.env, userAgent: 'kf-demo', ...(context === undefined ? {} : { context }) });
  try {
    const map = await cluster.get(configMapType, places.rootNamespace, places.info);
    const { gateway, defaultDomain } = parseKfInfo(map?.data?.[places.infoKey] ?? '');
    return { port: 80, ...gateway.externalUrl, domain: defaultDomain };
  } finally {
    cluster.close();
  }
}

function get(where: { host: string; port: number; address?: string; path: string }): Promise<{ status: number; body: string }> {
  const { host, port, address = host } = where;
  return new Promise((resolve, reject) => {
    const outgoing = request({ host: address, port, path: where.path, headers: { host }, timeout: 10_000 }, (answer) => {
      let body = '';
      answer.setEncoding('utf8').on('data', (text: string) => (body += text));
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, body }));
    });
    outgoing.on('timeout', () => outgoing.destroy(new Error(`${host} did not answer within 10 s.`)));
    outgoing.on('error', reject);
    outgoing.end();
  });
}

const urlOf = (app: string, { domain, port }: { domain: string; port: number }): string =>
  `http://${app}.${domain}${port === 80 ? '' : `:${port}`}`;

async function showUrl(prepared: Prepared, app: string, urlPath: string, show: (body: string) => string): Promise<void> {
  const { domain, ...gateway } = await readGateway(prepared);
  const host = `${app}.${domain}`;
  console.log(`\n$ curl ${urlOf(app, { domain, port: gateway.port })}${urlPath}`);
  const answer = await get({ ...gateway, host, path: urlPath });
  console.log(`${answer.status}  ${show(answer.body)}`);
  if (answer.status !== 200) throw new Error(`${host} answered ${answer.status}.`);
}

const cacheFolder = (): string => path.resolve(process.env['KF_CACHE'] ?? '.kf');

async function prepare(context: string | undefined): Promise<Prepared> {
  const cache = demoFolder(cacheFolder(), context === undefined ? { cluster: clusterName } : { context });
  await mkdir(cache, { recursive: true });
  if (context !== undefined) {
    say('kf as a user installs it: npm pack, npm install -g');
    const env = { ...process.env, CF_HOME: path.join(cache, 'home'), KF_CONTEXT: context };
    return { kf: await installPackedKf(path.join(cache, 'kf')), env, setupFlags: [], own: false };
  }
  say(
    `A cluster of its own${hasParts() ? '' : ' (the first time this compiles Kubernetes: about 6 minutes on two cores; 1.5 GB stay in the cache)'}`,
  );
  const [clusterEnv, binary]: [ClusterEnv, string] = await Promise.all([clusterUp(clusterName), installPackedKf(path.join(cache, 'kf'))]);
  const env = { ...process.env, ...clusterEnv, CF_HOME: path.join(cache, 'home') };
  return { kf: binary, env, setupFlags: ['-f', await writeSetupFile(cache, clusterEnv)], own: true };
}

const firstLine = (body: string): string => (body.split('\n')[0] ?? '').slice(0, 200);

async function pushYours(prepared: Prepared, folder: string): Promise<void> {
  say(`Your folder ${folder}`);
  // The demo's own cluster has no internet, so npm's packages are downloaded outside of it.
  if (prepared.own) await fetchPackagesOf(folder, (line) => console.log(line));
  await kf(prepared, 'push', 'yours', '-p', folder);
}

async function demo(options: Options, folder: string | undefined): Promise<void> {
  const prepared = await prepare(options.context);
  say('kf into the cluster');
  await kf(prepared, 'setup', ...prepared.setupFlags);
  say('A sample app, from source to a URL');
  await kf(prepared, 'push', 'hello', '-p', 'examples/hello', '-m', '128M');
  await showUrl(prepared, 'hello', '/', firstLine);
  say(`The first 200 came ${seconds()} s after the start.`);
  if (folder !== undefined) await pushYours(prepared, folder);
  say('Its logs, three instances, and a bound service');
  await kf(prepared, 'logs', 'hello', '--recent');
  await kf(prepared, 'scale', 'hello', '-i', '3');
  await kf(prepared, 'create-user-provided-service', 'my-db', '-p', '{"uri":"postgres://db.example.com/hello"}');
  await kf(prepared, 'bind-service', 'hello', 'my-db');
  await kf(prepared, 'restart', 'hello');
  await showUrl(prepared, 'hello', '/services', (body) => {
    if (!body.includes('my-db')) throw new Error('The app does not see the bound service.');
    return 'the app sees my-db in VCAP_SERVICES';
  });
  await kf(prepared, 'apps');
  if (prepared.own && existsSync(path.join(cacheFolder(), 'go'))) {
    say('What the tests need besides, while the sources are here (once)');
    await clusterPrepare();
  }
  say('Done. To go on in this shell:');
  const gateway = await readGateway(prepared);
  const apps = folder === undefined ? ['hello'] : ['hello', 'yours'];
  console.log(nextSteps({ ...prepared, urls: apps.map((app) => urlOf(app, gateway)) }));
}

interface Options {
  path?: string;
  context?: string;
  down: boolean;
  help: boolean;
}

function readOptions(): Options {
  const boolean = { type: 'boolean', default: false } as const;
  try {
    return parseArgs({ options: { path: { type: 'string' }, context: { type: 'string' }, down: boolean, help: boolean } }).values;
  } catch (error) {
    throw new Error(`${messageOf(error)}\n\n${usage}`, { cause: error });
  }
}

/** The folder as typed, relative to the directory in which npm was started. */
function folderOf({ path: typed }: Options): string | undefined {
  if (typed === undefined) return undefined;
  const folder = path.resolve(process.env['INIT_CWD'] ?? '.', typed);
  if (!existsSync(folder)) throw new Error(`There is no folder ${folder}.`);
  return folder;
}

async function main(): Promise<void> {
  const options = readOptions();
  if (options.help) return console.log(usage);
  if (options.down) {
    await clusterDown(clusterName);
    await rm(demoFolder(cacheFolder(), { cluster: clusterName }), { recursive: true, force: true });
    return;
  }
  await demo(options, folderOf(options));
}

const interrupted = 'Interrupted. `npm run demo` goes on where this stopped; `npm run demo -- --down` cleans up.';
endOn('SIGINT', 130, () => running, interrupted);
endOn('SIGTERM', 143, () => running, interrupted);
try {
  await main();
} catch (error) {
  console.error(`\nThe demo stopped after ${seconds()} s: ${messageOf(error)}`);
  process.exitCode = 1;
}

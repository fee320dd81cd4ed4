// `npm run demo [-- --path DIR] [--context NAME] [--down]`: the main job, from nothing to an app that answers, on a real cluster.

import { spawn } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { request } from 'node:http';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { installPackedKf } from './support/installed-kf.ts';
import { clusterDown, clusterUp, writeSetupFile, type ClusterEnv } from './support/local-cluster.ts';

const clusterName = 'demo';
const started = Date.now();
const { values } = parseArgs({
  options: { path: { type: 'string' }, context: { type: 'string' }, down: { type: 'boolean', default: false } },
});

function say(text: string): void {
  console.log(`\n[${((Date.now() - started) / 1000).toFixed(1)} s] ${text}`);
}

interface Prepared {
  kf: string;
  env: NodeJS.ProcessEnv;
  setupFlags: string[];
}

/** Runs the installed kf and shows the command; a failing step ends the demo. */
function kf(prepared: Prepared, ...args: string[]): Promise<void> {
  console.log(`\n$ kf ${args.join(' ')}`);
  return new Promise((resolve, reject) => {
    const child = spawn(prepared.kf, args, { stdio: ['ignore', 'inherit', 'inherit'], env: prepared.env });
    child.on('error', reject);
    child.on('exit', (code) => (code === 0 ? resolve() : reject(new Error(`kf ${args.join(' ')} ended with exit code ${code}.`))));
  });
}

/** GETs an app's URL; `*.localhost` is looked for on loopback, as browsers and curl do. */
function fetchApp(host: string, port: number, urlPath: string): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const outgoing = request({ host: '127.0.0.1', port, path: urlPath, headers: { host }, timeout: 10_000 }, (answer) => {
      let body = '';
      answer.setEncoding('utf8').on('data', (text: string) => (body += text));
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, body }));
    });
    outgoing.on('error', reject);
    outgoing.end();
  });
}

async function showUrl(env: NodeJS.ProcessEnv, app: string, urlPath: string, show: (body: string) => string): Promise<void> {
  const port = Number(env['KF_CLUSTER_HTTP_PORT'] ?? '80');
  const host = `${app}.apps.localhost`;
  console.log(`\n$ curl http://${host}${port === 80 ? '' : `:${port}`}${urlPath}`);
  const answer = await fetchApp(host, port, urlPath);
  console.log(`${answer.status}  ${show(answer.body)}`);
  if (answer.status !== 200) throw new Error(`${host} answered ${answer.status}.`);
}

async function prepare(): Promise<Prepared> {
  const cache = path.join(process.env['KF_CACHE'] ?? '.kf', 'demo');
  await mkdir(cache, { recursive: true });
  if (values.context !== undefined) {
    const env = { ...process.env, CF_HOME: path.join(cache, values.context), KF_CONTEXT: values.context };
    return { kf: await installPackedKf(path.join(cache, 'kf')), env, setupFlags: [] };
  }
  say('A cluster of its own (the first time this compiles Kubernetes: about ten minutes on two cores, 3 GB of cache).');
  const [clusterEnv, binary]: [ClusterEnv, string] = await Promise.all([clusterUp(clusterName), installPackedKf(path.join(cache, 'kf'))]);
  const env = { ...process.env, ...clusterEnv, CF_HOME: path.join(cache, clusterName) };
  return { kf: binary, env, setupFlags: ['-f', await writeSetupFile(cache, clusterEnv)] };
}

const firstLine = (body: string): string => body.split('\n')[0] ?? '';

async function main(): Promise<void> {
  if (values.down) return clusterDown(clusterName);
  const prepared = await prepare();
  say('kf into the cluster');
  await kf(prepared, 'setup', ...prepared.setupFlags);
  say('A sample app, from source to a URL');
  await kf(prepared, 'push', 'hello', '-p', 'test/fixtures/apps/node-hello', '-m', '128M');
  await showUrl(prepared.env, 'hello', '/', firstLine);
  say(`The first 200 came ${((Date.now() - started) / 1000).toFixed(1)} s after the start.`);
  if (values.path !== undefined) {
    say(`Your folder ${values.path}`);
    await kf(prepared, 'push', 'yours', '-p', values.path);
  }
  say('Its logs, three instances, and a bound service');
  await kf(prepared, 'logs', 'hello', '--recent');
  await kf(prepared, 'scale', 'hello', '-i', '3');
  await kf(prepared, 'create-user-provided-service', 'my-db', '-p', '{"uri":"postgres://db.example.com/hello"}');
  await kf(prepared, 'bind-service', 'hello', 'my-db');
  await kf(prepared, 'restart', 'hello');
  await showUrl(prepared.env, 'hello', '/env', (body) => (body.includes('postgres://db.example.com/hello') ? 'the app sees my-db in VCAP_SERVICES' : body));
  await kf(prepared, 'apps');
  printNext(prepared);
}

function printNext(prepared: Prepared): void {
  const shown = ['KUBECONFIG', 'CF_HOME', 'KF_CONTEXT'].filter((name) => prepared.env[name] !== undefined);
  say('What next?');
  console.log(`  ${shown.map((name) => `export ${name}=${prepared.env[name] ?? ''}`).join('; ')}
  alias kf=${prepared.kf}
  kf push my-app -p PATH        your own folder
  kf logs hello                 follow its logs (Ctrl-C ends)
  kf help                       everything else
Clean up:
  ${values.context === undefined ? 'npm run demo -- --down       takes the cluster down, leaves the cache' : 'kf uninstall                 removes kf and its apps from the cluster'}`);
}

await main();

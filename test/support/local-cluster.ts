// A cluster for tests and the demo: created if none is given, described for `kf setup`, deleted by its own tool.

import { execFile, spawn } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';

const execute = promisify(execFile);

export type ClusterEnv = Record<string, string>;

function clusterTool(args: string[]): Promise<number> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ['tools/cluster/cli.ts', ...args], { stdio: ['ignore', 2, 2] });
    child.on('error', reject);
    child.on('exit', (code) => resolve(code ?? 1));
  });
}

/** Evaluates `export` lines in a shell: the variables of a cluster, and the PATH with its programs. */
async function evaluateExports(exports: string): Promise<ClusterEnv> {
  const { stdout } = await execute('sh', ['-c', 'eval "$1" && env -0', 'sh', exports]);
  const entries = stdout
    .split('\0')
    .map((entry): [string, string] => [entry.slice(0, entry.indexOf('=')), entry.slice(entry.indexOf('=') + 1)]);
  return Object.fromEntries(entries.filter(([name]) => /^(KF_|KUBECONFIG$|PATH$)/.test(name)));
}

/** Starts the named cluster (if it does not run yet) and returns the variables of its `env` command. */
export async function clusterUp(name: string, ...flags: string[]): Promise<ClusterEnv> {
  const code = await clusterTool(['up', '--name', name, ...flags]);
  if (code !== 0) throw new Error(`The cluster '${name}' did not come up (exit ${code}).`);
  const { stdout } = await execute(process.execPath, ['tools/cluster/cli.ts', 'env', '--name', name]);
  return evaluateExports(stdout);
}

/** Builds the programs that only the tests need; Go's caches are removed then. */
export async function clusterPrepare(): Promise<void> {
  const code = await clusterTool(['prepare']);
  if (code !== 0) throw new Error(`What the tests need could not be built (exit ${code}).`);
}

export async function clusterDown(name: string): Promise<void> {
  const code = await clusterTool(['down', '--name', name]);
  if (code !== 0) throw new Error(`The cluster '${name}' did not go down (exit ${code}).`);
}

/** Writes the setup.yaml that names the images in the cluster's own registry; returns its path. */
export async function writeSetupFile(folder: string, env: ClusterEnv): Promise<string> {
  const registry = env['KF_CLUSTER_NODE_REGISTRY'] ?? '10.244.0.1:5000';
  const file = path.join(folder, 'setup.yaml');
  const text = `# Settings of \`kf setup\` for a cluster from tools/cluster: its images lie in a registry on the node.
images:
  node: ${registry}/kf/node:24
  registry: ${registry}/kf/registry:3
  traefik: ${registry}/kf/traefik:3.6
  builder: ${registry}/kf/builder:1
  run: ${registry}/kf/run:1
insecureRegistries: ['${registry}'${env['KF_CLUSTER_PRIVATE_REGISTRY'] === undefined ? '' : `, '${env['KF_CLUSTER_PRIVATE_REGISTRY']}'`}]
gatewayExposure: hostport
gatewayPort: ${env['KF_CLUSTER_HTTP_PORT'] ?? '80'}
httpsPort: ${env['KF_CLUSTER_HTTPS_PORT'] ?? '443'}
${env['KF_CLUSTER_NPM_REGISTRY'] === undefined ? '' : `buildEnv: {NPM_CONFIG_REGISTRY: '${env['KF_CLUSTER_NPM_REGISTRY']}', NPM_CONFIG_REPLACE_REGISTRY_HOST: always}\n`}`;
  await mkdir(folder, { recursive: true });
  await writeFile(file, text);
  return file;
}

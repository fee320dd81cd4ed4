// The programs a cluster is made of: which Go module each comes from, how it is built, where the result is cached.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { cacheFolder } from './cache.ts';
import { run, tryRun } from './process.ts';

interface Part {
  /** Folder below `parts/` with the Go module that pins everything. */
  name: string;
  /** Binary name → Go package. */
  binaries: Record<string, string>;
  /** Folder name in the result → folder of a dependency, copied as it is. */
  folders?: Record<string, { module: string; folder: string }>;
  flags?: string[];
  /** Variables set by the linker: import path of the variable → value. */
  variables?: Record<string, string>;
  cgo?: boolean;
}

/** Two packages that say which version a program is: the first to people, the second in its user agent. */
const kubernetesVersion = ['k8s.io/component-base/version', 'k8s.io/client-go/pkg/version'].flatMap((source) => [
  [`${source}.gitVersion`, 'v1.36.3'],
  [`${source}.gitMajor`, '1'],
  [`${source}.gitMinor`, '36'],
]);

const parts: Part[] = [
  {
    name: 'kubernetes',
    binaries: { kfnode: '.', kubectl: 'k8s.io/kubernetes/cmd/kubectl' },
    variables: Object.fromEntries(kubernetesVersion),
  },
  {
    name: 'containerd',
    binaries: {
      containerd: 'github.com/containerd/containerd/v2/cmd/containerd',
      'containerd-shim-runc-v2': 'github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2',
      ctr: 'github.com/containerd/containerd/v2/cmd/ctr',
    },
    variables: { 'github.com/containerd/containerd/v2/version.Version': '2.4.2' },
  },
  // Without the tag a runc fails every pod that asks for a seccomp profile.
  { name: 'runc', binaries: { runc: 'github.com/opencontainers/runc' }, flags: ['-tags=seccomp'], cgo: true },
  { name: 'netpol', binaries: { netpol: '.' } },
  { name: 'coredns', binaries: { coredns: 'github.com/coredns/coredns' } },
  { name: 'metrics-server', binaries: { 'metrics-server': 'sigs.k8s.io/metrics-server/cmd/metrics-server' } },
  { name: 'local-path-provisioner', binaries: { 'local-path-provisioner': 'github.com/rancher/local-path-provisioner' } },
  { name: 'registry', binaries: { registry: 'github.com/distribution/distribution/v3/cmd/registry' } },
  { name: 'crane', binaries: { crane: 'github.com/google/go-containerregistry/cmd/crane' } },
  {
    name: 'lifecycle',
    binaries: {
      lifecycle: 'github.com/buildpacks/lifecycle/cmd/lifecycle',
      launcher: 'github.com/buildpacks/lifecycle/cmd/launcher',
    },
    variables: { 'github.com/buildpacks/lifecycle/cmd.Version': '0.21.0' },
  },
  {
    name: 'traefik',
    binaries: { traefik: 'github.com/traefik/traefik/v3/cmd/traefik' },
    variables: { 'github.com/traefik/traefik/v3/pkg/version.Version': '3.6.12' },
  },
  {
    name: 'gateway-api',
    binaries: {},
    folders: { 'gateway-crds': { module: 'sigs.k8s.io/gateway-api', folder: 'config/crd/standard' } },
  },
  { name: 'pause', binaries: { pause: '.' } },
  { name: 'staticserver', binaries: { staticserver: '.' } },
  {
    name: 'kwok',
    binaries: { kwok: 'sigs.k8s.io/kwok/cmd/kwok' },
    // How its nodes and pods behave: ready at once, with heartbeats.
    folders: {
      'kwok-node': { module: 'sigs.k8s.io/kwok', folder: 'kustomize/stage/node/fast' },
      'kwok-heartbeat': { module: 'sigs.k8s.io/kwok', folder: 'kustomize/stage/node/heartbeat-with-lease' },
      'kwok-pod': { module: 'sigs.k8s.io/kwok', folder: 'kustomize/stage/pod/fast' },
    },
  },
];

/** Part names by what a cluster is for. */
export const partSets = {
  controlPlane: ['kubernetes'],
  kwok: ['kwok'],
  node: parts.map((part) => part.name).filter((name) => name !== 'kwok'),
} as const;

/** Name of a binary (`kfnode`, `traefik`, …) or folder (`gateway-crds`) → its absolute path. */
export type PartPaths = Readonly<Record<string, string>>;

/** Looks a path up and says which part lacks. */
export function partPath(paths: PartPaths, name: string): string {
  const path = paths[name];
  if (path === undefined) throw new Error(`No part provides "${name}".`);
  return path;
}

const partsSource = join(import.meta.dirname, 'parts');

/**
 * Builds what is not yet in the cache and returns the paths of all results.
 * Safe to run several times at once: each build goes to a folder of its own and is then renamed.
 * @param names part names, see `partSets`
 * @param log takes one progress line at a time
 */
export async function buildParts(names: readonly string[], log: (line: string) => void): Promise<PartPaths> {
  const goVersion = (await goCommand(['env', 'GOVERSION'])).trim();
  const paths: Record<string, string> = {};
  for (const name of names) {
    const part = parts.find((candidate) => candidate.name === name);
    if (!part) throw new Error(`There is no part "${name}".`);
    const folder = join(cacheFolder(), 'parts', `${name}-${partHash(part, goVersion)}`);
    if (!existsSync(folder)) await buildPart(part, folder, log);
    for (const result of [...Object.keys(part.binaries), ...Object.keys(part.folders ?? {})]) paths[result] = join(folder, result);
  }
  return paths;
}

async function goCommand(args: string[]): Promise<string> {
  const result = await tryRun('go', args).catch((cause: unknown) => {
    throw new Error(
      'Go is needed to build the parts of the cluster; `go` is not in the PATH. Any Go from 1.21 on will do: it fetches the version that the modules ask for.',
      { cause },
    );
  });
  if (result.code !== 0) throw new Error(`go ${args.join(' ')} failed: ${result.stderr.trim()}`);
  return result.stdout;
}

function partHash(part: Part, goVersion: string): string {
  const hash = createHash('sha256').update(JSON.stringify([part, goVersion, process.arch]));
  const source = join(partsSource, part.name);
  for (const file of readdirSync(source).toSorted()) {
    if (file === 'go.mod' || file === 'go.sum' || file.endsWith('.go')) hash.update(`${file}\0`).update(readFileSync(join(source, file)));
  }
  return hash.digest('hex').slice(0, 12);
}

async function buildPart(part: Part, folder: string, log: (line: string) => void): Promise<void> {
  const started = Date.now();
  const seconds = (): string => `${String(Math.round((Date.now() - started) / 1000))} s`;
  log(`${part.name}: building (once; kept in ${folder})`);
  const ticker = setInterval(() => {
    log(`${part.name}: still building, ${seconds()}`);
  }, 15_000);
  const temporary = `${folder}.${String(process.pid)}.tmp`;
  try {
    rmSync(temporary, { recursive: true, force: true });
    mkdirSync(temporary, { recursive: true });
    await compile(part, temporary);
    await copyFolders(part, temporary);
    publish(temporary, folder);
  } finally {
    clearInterval(ticker);
    rmSync(temporary, { recursive: true, force: true });
  }
  log(`${part.name}: built in ${seconds()}`);
}

async function compile(part: Part, target: string): Promise<void> {
  const cwd = join(partsSource, part.name);
  const set = Object.entries(part.variables ?? {}).map(([name, value]) => `-X ${name}=${value}`);
  const linker = ['-s', '-w', ...set].join(' ');
  for (const [binary, source] of Object.entries(part.binaries)) {
    const args = ['build', '-trimpath', '-buildvcs=false', `-ldflags=${linker}`, ...(part.flags ?? []), '-o', join(target, binary), source];
    await run('go', args, { cwd, env: { ...process.env, GOWORK: 'off', CGO_ENABLED: part.cgo ? '1' : '0' } });
  }
}

async function copyFolders(part: Part, target: string): Promise<void> {
  const cwd = join(partsSource, part.name);
  for (const [name, { module, folder }] of Object.entries(part.folders ?? {})) {
    await run('go', ['mod', 'download', module], { cwd });
    const root = (await run('go', ['list', '-m', '-f', '{{.Dir}}', module], { cwd })).trim();
    const copy = join(target, name);
    mkdirSync(copy);
    // File by file: the module cache is read-only, its modes are not wanted here.
    for (const file of readdirSync(join(root, folder))) {
      if (file.endsWith('.yaml')) writeFileSync(join(copy, file), readFileSync(join(root, folder, file)));
    }
  }
}

/** Puts a finished folder in place; when another build of the same part was faster, its result stays. */
function publish(temporary: string, folder: string): void {
  try {
    renameSync(temporary, folder);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code !== 'ENOTEMPTY' && code !== 'EEXIST') throw error;
  }
}

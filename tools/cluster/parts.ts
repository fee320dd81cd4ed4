// The programs of a cluster: the Go module of each, and the cached result.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';

import { BuildProgress } from './build-progress.ts';
import type { ProgressOutput } from './build-progress.ts';
import { cacheFolder } from './cache.ts';
import { compilePart, copyFolders, goCommand, listPackages, removeGoCaches } from './go-build.ts';
import type { Part } from './part.ts';
import { listStates, withLock } from './state.ts';
import { markUsed, removeUnused } from './unused-parts.ts';

/** Two packages with the version of a program: the first for people, the second in its user agent. */
const kubernetesVersion = ['k8s.io/component-base/version', 'k8s.io/client-go/pkg/version'].flatMap((source) => [
  [`${source}.gitVersion`, 'v1.36.3'],
  [`${source}.gitMajor`, '1'],
  [`${source}.gitMinor`, '36'],
]);

const parts: Part[] = [
  {
    name: 'kubernetes',
    binaries: { kfnode: '.', kubectl: './kubectl' },
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
  // Without the tag runc fails every pod that requests a seccomp profile.
  { name: 'runc', binaries: { runc: 'github.com/opencontainers/runc' }, flags: ['-tags=seccomp'], cgo: true },
  {
    name: 'netpol',
    binaries: { netpol: '.' },
    // It checks three chains that nobody else changes with 20 runs of iptables, and would do so after each change of a pod: once a period is enough.
    patches: {
      'github.com/cloudnativelabs/kube-router': {
        'pkg/controllers/netpol/network_policy_controller.go': [
          {
            text: '\t// ensure kube-router specific top level chains and corresponding rules exist\n\tnpc.ensureTopLevelChains()\n',
            by: '\tif time.Since(topLevelChainsEnsured) > npc.syncPeriod/2 {\n\t\tnpc.ensureTopLevelChains()\n\t\ttopLevelChainsEnsured = time.Now()\n\t}\n',
          },
          {
            text: 'func (npc *NetworkPolicyController) fullPolicySync() {\n',
            by: 'var topLevelChainsEnsured time.Time\n\nfunc (npc *NetworkPolicyController) fullPolicySync() {\n',
          },
        ],
      },
    },
  },
  { name: 'coredns', binaries: { coredns: '.' } },
  { name: 'metrics-server', binaries: { 'metrics-server': 'sigs.k8s.io/metrics-server/cmd/metrics-server' } },
  { name: 'local-path-provisioner', binaries: { 'local-path-provisioner': 'github.com/rancher/local-path-provisioner' } },
  { name: 'registry', binaries: { registry: '.' } },
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
    // Two thirds of its sources are the SDKs of clouds, which the gateway of a test cluster never calls.
    patches: {
      'github.com/go-acme/lego/v4': { 'providers/dns/zz_gen_dns_providers.go': 'patches/lego/dns_providers.go' },
      'github.com/traefik/traefik/v3': {
        'pkg/provider/ecs/ecs.go': 'patches/ecs/ecs.go',
        'pkg/provider/ecs/config.go': null,
        'pkg/provider/ecs/label.go': null,
      },
    },
  },
  {
    name: 'gateway-api',
    binaries: {},
    folders: { 'gateway-crds': { module: 'sigs.k8s.io/gateway-api', folder: 'config/crd/standard' } },
  },
  {
    name: 'cert-manager',
    binaries: { 'cert-manager': '.' },
    folders: { 'cert-manager-crds': { module: 'github.com/cert-manager/cert-manager', folder: 'deploy/crds' } },
  },
  { name: 'pause', binaries: { pause: '.' } },
  { name: 'staticserver', binaries: { staticserver: '.' } },
  {
    name: 'kwok',
    binaries: { kwok: 'sigs.k8s.io/kwok/cmd/kwok' },
    // The behaviour of its nodes and pods: ready at once, with heartbeats.
    folders: {
      'kwok-node': { module: 'sigs.k8s.io/kwok', folder: 'kustomize/stage/node/fast' },
      'kwok-heartbeat': { module: 'sigs.k8s.io/kwok', folder: 'kustomize/stage/node/heartbeat-with-lease' },
      'kwok-pod': { module: 'sigs.k8s.io/kwok', folder: 'kustomize/stage/pod/fast' },
    },
  },
];

/** Part names by the purpose of a cluster. */
export const partSets = {
  controlPlane: ['kubernetes'],
  kwok: ['kwok'],
  certManager: ['cert-manager'],
  node: parts.map((part) => part.name).filter((name) => name !== 'kwok' && name !== 'cert-manager'),
} as const;

/** Name of a binary (`kfnode`, `traefik`, …) or folder (`gateway-crds`) → its absolute path. */
export type PartPaths = Readonly<Record<string, string>>;

/** Returns a path, or reports which part is missing. */
export function partPath(paths: PartPaths, name: string): string {
  const path = paths[name];
  if (path === undefined) throw new Error(`No part provides "${name}".`);
  return path;
}

/** How the name of a folder ends in which a part is being built. */
const unfinished = '.tmp';

const partsCache = (): string => join(cacheFolder(), 'parts');

const partsSource = join(import.meta.dirname, 'parts');

/** CPU seconds that each part takes if all are built in this order with empty caches; a part without a value takes few. The bar uses them. */
const cpuSeconds: Record<string, number> = {
  kubernetes: 340,
  containerd: 40,
  runc: 15,
  netpol: 2,
  coredns: 8,
  'metrics-server': 6,
  'local-path-provisioner': 3,
  registry: 15,
  crane: 3,
  lifecycle: 22,
  traefik: 50,
  'cert-manager': 150,
  kwok: 9,
};

/**
 * Builds what is not yet in the cache and returns the paths of all results. Safe to run several times at once: one builds, the others wait for it.
 * When nothing lacks any more, Go's own caches of these builds are removed; earlier versions that nobody used for two weeks are removed too.
 * @param names part names, see `partSets`
 * @param output takes the progress
 */
export async function buildParts(names: readonly string[], output: ProgressOutput): Promise<PartPaths> {
  const goVersion = (await goCommand(['env', 'GOVERSION'])).trim();
  const wanted = names.map((name) => knownPart(name));
  if (wanted.some((part) => !isBuilt(part, goVersion))) {
    await withLock('parts', () => buildMissing(wanted, goVersion, output), cacheFolder());
  }
  await keepUsed(wanted, goVersion);
  return Object.fromEntries(wanted.flatMap((part) => resultsOf(part, partFolder(part, goVersion))));
}

/** Whether the cache has parts already. */
export function hasParts(): boolean {
  return existsSync(partsCache()) && readdirSync(partsCache()).some((name) => !name.endsWith(unfinished));
}

async function keepUsed(wanted: readonly Part[], goVersion: string): Promise<void> {
  const now = Date.now();
  for (const part of wanted) markUsed(partFolder(part, goVersion), now);
  await removeUnused(cacheFolder(), {
    named: parts.map((part) => basename(partFolder(part, goVersion))),
    inUse: listStates().flatMap((state) => Object.values(state.parts)),
    now,
  });
}

function knownPart(name: string): Part {
  const part = parts.find((candidate) => candidate.name === name);
  if (!part) throw new Error(`There is no part "${name}".`);
  return part;
}

function resultsOf(part: Part, folder: string): [string, string][] {
  const names = [part.binaries, part.folders ?? {}].flatMap((record) => Object.keys(record));
  return names.map((name) => [name, join(folder, name)]);
}

function partFolder(part: Part, goVersion: string): string {
  return join(partsCache(), `${part.name}-${partHash(part, goVersion)}`);
}

function isBuilt(part: Part, goVersion: string): boolean {
  return existsSync(partFolder(part, goVersion));
}

function partHash(part: Part, goVersion: string): string {
  const hash = createHash('sha256').update(JSON.stringify([part, goVersion, process.arch]));
  const source = join(partsSource, part.name);
  for (const file of readdirSync(source, { recursive: true, encoding: 'utf8' }).toSorted()) {
    if (file === 'go.mod' || file === 'go.sum' || file.endsWith('.go')) hash.update(`${file}\0`).update(readFileSync(join(source, file)));
  }
  return hash.digest('hex').slice(0, 12);
}

async function buildMissing(wanted: readonly Part[], goVersion: string, output: ProgressOutput): Promise<void> {
  const missing = wanted.filter((part) => !isBuilt(part, goVersion));
  // Another process has built them in the meantime.
  if (missing.length === 0) return;
  removeUnfinishedParts();
  const progress = new BuildProgress(
    missing.map(({ name }) => ({ name, weight: cpuSeconds[name] ?? 2 })),
    output,
  );
  try {
    let packages = packagesOf(missing[0]);
    for (const [index, part] of missing.entries()) {
      const current = await packages;
      progress.start(part.name, current);
      // The next part's sources are downloaded while this one is compiled.
      packages = packagesOf(missing[index + 1]);
      await buildPart(part, partFolder(part, goVersion), () => progress.compiled());
      progress.finish();
    }
  } finally {
    progress.end();
  }
  if (parts.every((part) => isBuilt(part, goVersion))) removeGoCaches();
}

/** The packages of a part, for the bar; the compiler reports errors in them better. */
function packagesOf(part: Part | undefined): Promise<string[]> {
  return part ? listPackages(part, join(partsSource, part.name)).catch(() => []) : Promise.resolve([]);
}

/** Removes what an interrupted build left. Only the holder of the lock builds, so nothing of it is in use. */
export function removeUnfinishedParts(): void {
  if (!existsSync(partsCache())) return;
  for (const name of readdirSync(partsCache())) {
    if (name.endsWith(unfinished)) rmSync(join(partsCache(), name), { recursive: true, force: true });
  }
}

/** A part is built in a folder of its own, which is then renamed: nobody sees half of one. */
async function buildPart(part: Part, folder: string, compiled: () => void): Promise<void> {
  const source = join(partsSource, part.name);
  const temporary = `${folder}.${String(process.pid)}${unfinished}`;
  try {
    rmSync(temporary, { recursive: true, force: true });
    mkdirSync(temporary, { recursive: true });
    await compilePart(part, source, temporary, compiled);
    await copyFolders(part, source, temporary);
    renameSync(temporary, folder);
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
}

// Builds the programs and images of clusters and tests, before anything is started or tested: on a new machine this takes many minutes.
import { join } from 'node:path';

import { nodeRegistry } from './addresses.ts';
import { progressOutput } from './build-progress.ts';
import { cacheFolder } from './cache.ts';
import { buildImages } from './images/index.ts';
import type { BuiltImage } from './images/index.ts';
import { mapLargerPages, raiseLimits } from './limits.ts';
import { fetchNpmPackages } from './npm-mirror.ts';
import { installPackages } from './packages.ts';
import { buildParts, partSets } from './parts.ts';
import type { PartPaths } from './parts.ts';
import type { ClusterMode } from './state.ts';
import { prepareReleases } from '../releases/releases.ts';

export interface Ingredients {
  parts: PartPaths;
  images: BuiltImage[];
}

/** Builds what a cluster needs and the cache lacks; nothing is started. */
export async function prepareCluster(options: { mode: ClusterMode; kwok: boolean }, log: (line: string) => void): Promise<Ingredients> {
  assertPossible();
  raiseLimits(log);
  await installPackages(log);
  const isFull = options.mode === 'full';
  const names = isFull ? partSets.node : partSets.controlPlane;
  const parts = await buildParts(options.kwok ? [...names, ...partSets.kwok] : names, progressOutput(log));
  const images = isFull ? await buildImages({ cacheDir: join(cacheFolder(), 'images'), parts, log, insideRegistry: nodeRegistry }) : [];
  return { parts, images };
}

/** Builds what the tests of these rings need, with a line for each step. A machine of CI is tuned for them: nobody else works on it. */
export async function prepareRings(rings: readonly string[], log: (line: string) => void): Promise<void> {
  if (process.env['CI'] === 'true') mapLargerPages(log);
  if (rings.includes('unit')) await buildParts(['staticserver'], progressOutput(log));
  if (!rings.includes('cluster')) {
    if (rings.includes('api')) await prepareCluster({ mode: 'control-plane', kwok: false }, log);
    return;
  }
  // It includes everything that a control plane needs.
  await prepareCluster({ mode: 'full', kwok: true }, log);
  await buildParts(partSets.certManager, progressOutput(log));
  await fetchNpmPackages(log);
  await prepareReleases(log);
}

function assertPossible(): void {
  const instead =
    'With docker, make a cluster with kind or k3d instead, and give its kubeconfig context to kf and to `npm run demo -- --context NAME`.';
  if (process.platform !== 'linux') throw new Error(`A cluster from packages needs Linux. ${instead}`);
  if (process.getuid?.() !== 0)
    throw new Error(`A cluster from packages needs root, since it makes namespaces, mounts and cgroups. ${instead}`);
}

// Every image of the cluster: its layers, its user, its start command.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import type { ImageConfig } from '../../../src/lib/oci/image.ts';
import type { Layer, LayerEntry } from '../../../src/lib/oci/layer.ts';
import { partPath } from '../parts.ts';
import type { PartPaths } from '../parts.ts';
import { appUser, debianLayer, nodeLayer, npmLayer, pipLayer, pythonLayer, systemUser } from './base-layers.ts';
import type { PackContext } from './base-layers.ts';
import { builderLabels, buildpacksLayer, lifecycleLayer } from './builder.ts';
import { goLayer } from './go-layer.ts';
import { fileStamp, storedLayer } from './layer-store.ts';
import { diskFile, textFile } from './rootfs.ts';

export interface ImageDefinition {
  /** Without a registry: `kf/node:24`. */
  name: string;
  layers: Layer[];
  config: Omit<ImageConfig, 'architecture' | 'os'>;
  /** `cluster` images are needed by the node to become Ready, `platform` images by kf and its apps. */
  group: 'cluster' | 'platform';
}

/** The sandbox image is requested by this name, which is fixed in containerd's configuration. */
export const pauseImage = 'kf.local/pause:1';

const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
const CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt';
const appEnv = { PATH, LANG: 'C.UTF-8', HOME: '/home/vcap' };
const user = `${String(appUser)}:${String(appUser)}`;
const system = `${String(systemUser)}:${String(systemUser)}`;

/** Packs the layers that are not in the cache. `prefix` (with a trailing slash) precedes the run image's name inside the builder. */
export async function defineImages(parts: PartPaths, prefix: string, context: PackContext): Promise<ImageDefinition[]> {
  const debian = await debianLayer(context);
  const node = await nodeLayer(context);
  return [
    ...(await clusterImages(parts, debian, context)),
    ...(await platformImages(parts, debian, node, context)),
    ...(await buildImages(parts, prefix, [debian, node], context)),
    ...(await sampleImages([debian, node], context)),
  ];
}

async function clusterImages(parts: PartPaths, debian: Layer, context: PackContext): Promise<ImageDefinition[]> {
  const pause = await programLayer('pause', partPath(parts, 'pause'), 'pause', context);
  const images: ImageDefinition[] = [
    { name: pauseImage, group: 'cluster', layers: [pause], config: { entrypoint: ['/pause'], user: '65535:65535' } },
    { name: 'kf/debian:12', group: 'cluster', layers: [debian], config: { cmd: ['bash'], env: appEnv, user } },
  ];
  const programs = { coredns: 'kf/coredns:1', 'metrics-server': 'kf/metrics-server:0.9' };
  for (const [program, name] of Object.entries(programs)) {
    if (parts[program] !== undefined)
      images.push(await programImage(parts, program, name, { layers: [debian], group: 'cluster' }, context));
  }
  const storage = 'local-path-provisioner';
  if (parts[storage] !== undefined) {
    const image = await programImage(parts, storage, `kf/${storage}:0.0.30`, { layers: [debian], group: 'cluster' }, context);
    // Its pods that create and delete volumes write to folders of the node: they run as root unless a pod says otherwise.
    images.push({ ...image, config: { ...image.config, user: '0:0' } });
  }
  return images;
}

async function platformImages(parts: PartPaths, debian: Layer, node: Layer, context: PackContext): Promise<ImageDefinition[]> {
  const registry = await programImage(parts, 'registry', 'kf/registry:3', { layers: [debian], group: 'platform' }, context);
  const registryFiles = await registryConfigLayer(context);
  return [
    {
      name: 'kf/node:24',
      group: 'platform',
      layers: [debian, node],
      config: { cmd: ['node'], env: { ...appEnv, NODE_VERSION: '24' }, user },
    },
    {
      ...registry,
      layers: [...registry.layers, registryFiles],
      config: { ...registry.config, cmd: ['serve', '/etc/distribution/config.yml'], user, exposedPorts: ['5000/tcp'] },
    },
    await programImage(parts, 'traefik', 'kf/traefik:3.6', { layers: [debian], group: 'platform' }, context),
  ];
}

/** An image that starts one program of /usr/local/bin as a user without files. */
async function programImage(
  parts: PartPaths,
  program: string,
  name: string,
  base: Pick<ImageDefinition, 'layers' | 'group'>,
  context: PackContext,
): Promise<ImageDefinition> {
  const layer = await programLayer(program, partPath(parts, program), `usr/local/bin/${program}`, context);
  const config = { entrypoint: [program], env: { PATH, SSL_CERT_FILE: CERTIFICATES }, user: system, workingDir: '/' };
  return { name, group: base.group, layers: [...base.layers, layer], config };
}

function programLayer(name: string, source: string, target: string, context: PackContext): Promise<Layer> {
  return storedLayer(
    { name, inputs: [fileStamp(source), target], entries: () => [diskFile(target, source)] },
    context.cacheDir,
    context.log,
  );
}

/** Defaults of the registry: files below /var/lib/registry, deletion allowed, logs as JSON. */
const REGISTRY_CONFIG = `version: 0.1
log: {level: info, formatter: json, accesslog: {disabled: true}}
storage:
  filesystem: {rootdirectory: /var/lib/registry}
  delete: {enabled: true}
http: {addr: ":5000"}
health: {storagedriver: {enabled: true, interval: 10s, threshold: 3}}
`;

function registryConfigLayer(context: PackContext): Promise<Layer> {
  const folder: LayerEntry = { type: 'directory', name: 'var/lib/registry', uid: appUser, gid: appUser };
  const entries = (): LayerEntry[] => [textFile('etc/distribution/config.yml', REGISTRY_CONFIG), folder];
  return storedLayer({ name: 'registry-config', inputs: [REGISTRY_CONFIG], entries }, context.cacheDir, context.log);
}

/** The target of builds, with the terms of the buildpack specification. */
const TARGET_LABELS = { 'io.buildpacks.base.distro.name': 'debian', 'io.buildpacks.base.distro.version': '12' };

async function buildImages(parts: PartPaths, prefix: string, base: Layer[], context: PackContext): Promise<ImageDefinition[]> {
  const runImage = `${prefix}kf/run:1`;
  const run = [...base, await pythonLayer(context)];
  const tools = [await npmLayer(context), await pipLayer(context), await goLayer(context)];
  const lifecycle = await lifecycleLayer(parts, context);
  const buildpacks = await buildpacksLayer(parts, runImage, context);
  const ids = { CNB_USER_ID: String(appUser), CNB_GROUP_ID: String(appUser), CNB_STACK_ID: 'kf' };
  const labels = { ...TARGET_LABELS, ...builderLabels(runImage, buildpacks.diffId) };
  return [
    {
      name: 'kf/run:1',
      group: 'platform',
      layers: run,
      config: { env: appEnv, user, labels: { ...TARGET_LABELS, 'io.buildpacks.stack.id': 'kf' } },
    },
    {
      name: 'kf/builder:1',
      group: 'platform',
      layers: [...run, ...tools, lifecycle, buildpacks],
      config: { env: { ...appEnv, ...ids }, user, workingDir: '/workspace', labels },
    },
  ];
}

async function sampleImages(base: Layer[], context: PackContext): Promise<ImageDefinition[]> {
  const folder = join(import.meta.dirname, 'samples');
  const files = readdirSync(folder)
    .sort()
    .map((file) => textFile(`app/${file}`, readFileSync(join(folder, file), 'utf8')));
  const inputs = files.map((file) => [file.name, file.type === 'file' ? file.source.toString() : '']);
  const layer = await storedLayer({ name: 'samples', inputs, entries: () => files }, context.cacheDir, context.log);
  const sample = (name: string, script: string, extra: Record<string, string> = {}): ImageDefinition => ({
    name,
    group: 'platform',
    layers: [...base, layer],
    config: {
      entrypoint: ['node'],
      cmd: [`/app/${script}`],
      env: { ...appEnv, ...extra },
      user,
      workingDir: '/app',
      exposedPorts: ['8080/tcp'],
    },
  });
  const { user: _, ...rootConfig } = sample('kf/root:1', 'server.cjs', { SAMPLE_VERSION: 'root' }).config;
  return [
    sample('kf/sample:1', 'server.cjs', { SAMPLE_VERSION: '1' }),
    sample('kf/sample:2', 'server.cjs', { SAMPLE_VERSION: '2' }),
    sample('kf/crash:1', 'crash.cjs'),
    sample('kf/silent:1', 'silent.cjs'),
    sample('kf/wrongport:1', 'wrongport.cjs'),
    { name: 'kf/root:1', group: 'platform', layers: [...base, layer], config: rootConfig },
  ];
}

// Makes an image: a config and a manifest for existing layers.

import { type Blob, type Descriptor, type Digest, jsonBlob, MEDIA_TYPES } from './descriptor.ts';
import { type Layer, layerDescriptor } from './layer.ts';
import { defined } from '../defined.ts';

/** The start settings of a container; https://github.com/opencontainers/image-spec/blob/v1.1.1/config.md. */
export interface ImageConfig {
  architecture: string;
  os: string;
  entrypoint?: string[];
  cmd?: string[];
  env?: Record<string, string>;
  user?: string;
  workingDir?: string;
  labels?: Record<string, string>;
  /** `8080/tcp` */
  exposedPorts?: string[];
}

/** Config and manifest as blobs, without the layers. */
export interface Image {
  config: Blob;
  manifest: Blob;
  layers: Layer[];
}

/** The parts of a manifest (image-spec manifest.md) that kf reads and writes. */
export interface Manifest {
  schemaVersion: 2;
  mediaType: string;
  config: Descriptor;
  layers: Descriptor[];
  annotations?: Record<string, string>;
}

/** The parts of a config blob that kf reads and writes; keys as in the specification. */
export interface ConfigFile {
  created?: string;
  architecture: string;
  os: string;
  config?: {
    User?: string;
    ExposedPorts?: Record<string, Record<string, never>>;
    Env?: string[];
    Entrypoint?: string[];
    Cmd?: string[];
    WorkingDir?: string;
    Labels?: Record<string, string>;
  };
  rootfs: { type: 'layers'; diff_ids: Digest[] };
  history?: { created?: string; created_by?: string; empty_layer?: boolean }[];
}

/** Fixed, so that equal content has equal digests. */
const CREATED = '1970-01-01T00:00:00Z';

/** Pure: equal input gives equal bytes. The lowest layer comes first. */
export function imageFromLayers(options: { layers: Layer[]; config: ImageConfig; annotations?: Record<string, string> }): Image {
  const config = jsonBlob(MEDIA_TYPES.config, configFile(options.config, options.layers));
  const manifest: Manifest = {
    schemaVersion: 2,
    mediaType: MEDIA_TYPES.manifest,
    config: config.descriptor,
    layers: options.layers.map(layerDescriptor),
    ...defined({ annotations: options.annotations && sorted(options.annotations) }),
  };
  return { config, manifest: jsonBlob(MEDIA_TYPES.manifest, manifest), layers: options.layers };
}

function configFile(config: ImageConfig, layers: Layer[]): ConfigFile {
  const { entrypoint, cmd, env, user, workingDir, labels, exposedPorts } = config;
  return {
    created: CREATED,
    architecture: config.architecture,
    os: config.os,
    config: defined({
      User: user,
      ExposedPorts: exposedPorts && Object.fromEntries([...exposedPorts].sort().map((port) => [port, {}])),
      Env: env && Object.entries(env).map(([name, value]) => `${name}=${value}`),
      Entrypoint: entrypoint,
      Cmd: cmd,
      WorkingDir: workingDir,
      Labels: labels && sorted(labels),
    }),
    rootfs: { type: 'layers', diff_ids: layers.map((layer) => layer.diffId) },
    // One entry per layer: tools that extend an image (for example the CNB lifecycle) pair history with layers.
    history: layers.map(() => ({ created: CREATED, created_by: 'kf' })),
  };
}

function sorted(record: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)));
}

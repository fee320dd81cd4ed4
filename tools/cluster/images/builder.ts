// The builder image's own layers: the CNB lifecycle, the buildpacks, and the files that name them.
// https://github.com/buildpacks/spec/blob/platform/0.14/platform.md and https://buildpacks.io/docs/reference/spec/ specify the paths.
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

import type { Layer, LayerEntry } from '../../../src/lib/oci/layer.ts';
import { partPath } from '../parts.ts';
import type { PartPaths } from '../parts.ts';
import { appUser } from './base-layers.ts';
import type { PackContext } from './base-layers.ts';
import { fileStamp, storedLayer } from './layer-store.ts';
import { lifecycleSboms } from './lifecycle-sbom.ts';
import { diskFile, textFile } from './rootfs.ts';

export const lifecycleVersion = '0.21.0';
const BUILDPACK_APIS = ['0.7', '0.8', '0.9', '0.10', '0.11', '0.12'];
const PLATFORM_APIS = ['0.7', '0.8', '0.9', '0.10', '0.11', '0.12', '0.13', '0.14', '0.15'];
/** The lifecycle is one program; its name at the start selects the phase. */
const PHASES = ['analyzer', 'builder', 'creator', 'detector', 'exporter', 'extender', 'rebaser', 'restorer'];

const buildpacksSource = join(import.meta.dirname, '..', 'buildpacks');

interface GroupMember {
  id: string;
  optional?: boolean;
}

/** Tried in this order; the Procfile's processes come last so that they have priority. */
const ORDER: GroupMember[][] = [
  [{ id: 'kf/nodejs' }, { id: 'kf/procfile', optional: true }],
  [{ id: 'kf/go' }, { id: 'kf/procfile', optional: true }],
  [{ id: 'kf/python' }, { id: 'kf/procfile', optional: true }],
  [{ id: 'kf/staticfile' }, { id: 'kf/procfile', optional: true }],
  [{ id: 'kf/binary' }, { id: 'kf/procfile', optional: true }],
];

export interface Buildpack {
  id: string;
  name: string;
  version: string;
  api: string;
  folder: string;
}

/** The buildpacks of this project, sorted by id. */
export function readBuildpacks(): Buildpack[] {
  const folders = readdirSync(buildpacksSource, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  return folders.map(({ name }) => readBuildpack(join(buildpacksSource, name))).sort((a, b) => (a.id < b.id ? -1 : 1));
}

function readBuildpack(folder: string): Buildpack {
  const description = readFileSync(join(folder, 'buildpack.toml'), 'utf8');
  const value = (key: string): string => {
    const match = new RegExp(`^${key} = "(.*)"$`, 'm').exec(description);
    if (match?.[1] === undefined) throw new Error(`${folder}/buildpack.toml has no ${key}.`);
    return match[1];
  };
  return { id: value('id'), name: value('name'), version: value('version'), api: value('api'), folder };
}

/** /cnb/lifecycle with its description. */
export function lifecycleLayer(parts: PartPaths, context: PackContext): Promise<Layer> {
  const programs = ['lifecycle', 'launcher'].map((name) => ({ name, path: partPath(parts, name) }));
  const description = lifecycleDescription();
  const sboms = Object.entries(lifecycleSboms(lifecycleVersion));
  return storedLayer(
    {
      name: 'lifecycle',
      inputs: [programs.map(({ path }) => fileStamp(path)), PHASES, description, sboms],
      entries: () => [
        ...programs.map(({ name, path }) => diskFile(`cnb/lifecycle/${name}`, path)),
        ...PHASES.map((phase): LayerEntry => ({ type: 'symlink', name: `cnb/lifecycle/${phase}`, target: 'lifecycle' })),
        ...sboms.map(([name, text]) => textFile(`cnb/lifecycle/${name}`, text)),
        textFile('cnb/lifecycle.toml', description),
      ],
    },
    context.cacheDir,
    context.log,
  );
}

/** /cnb/buildpacks, the order in which they are tried, the run image, and the folders that a build mounts over or writes to. */
export function buildpacksLayer(parts: PartPaths, runImage: string, context: PackContext): Promise<Layer> {
  const server = partPath(parts, 'staticserver');
  const files = readBuildpacks().flatMap((buildpack) => buildpackFiles(buildpack));
  const owned = (name: string): LayerEntry => ({ type: 'directory', name, uid: appUser, gid: appUser });
  const staticfile = readBuildpacks().find(({ id }) => id === 'kf/staticfile');
  if (!staticfile) throw new Error('There is no buildpack kf/staticfile to hold the web server.');
  return storedLayer(
    {
      name: 'buildpacks',
      inputs: [fileStamp(server), files.map(({ name, mode, text }) => [name, mode, text]), orderFile(), runImage],
      entries: () => [
        ...files.map(({ name, mode, text }) => textFile(name, text, mode)),
        diskFile(`${imageFolder(staticfile)}/staticserver`, server),
        textFile('cnb/order.toml', orderFile()),
        textFile('cnb/run.toml', `[[images]]\nimage = "${runImage}"\n`),
        ...['workspace', 'layers', 'platform', 'platform/env', 'cnb/tmp'].map(owned),
      ],
    },
    context.cacheDir,
    context.log,
  );
}

interface SourceFile {
  name: string;
  mode: number;
  text: string;
}

function buildpackFiles(buildpack: Buildpack): SourceFile[] {
  const files = readdirSync(buildpack.folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return files
    .map((file) => {
      const path = join(file.parentPath, file.name);
      const executable = (statSync(path).mode & 0o100) !== 0;
      return {
        name: `${imageFolder(buildpack)}${path.slice(buildpack.folder.length)}`,
        mode: executable ? 0o755 : 0o644,
        text: readFileSync(path, 'utf8'),
      };
    })
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

function imageFolder(buildpack: Buildpack): string {
  return `cnb/buildpacks/${buildpack.id.replaceAll('/', '_')}/${buildpack.version}`;
}

function versionOf(id: string): string {
  const buildpack = readBuildpacks().find((candidate) => candidate.id === id);
  if (!buildpack) throw new Error(`The order names the buildpack ${id}, which does not exist.`);
  return buildpack.version;
}

function orderFile(): string {
  const groups = ORDER.map((group) => {
    const members = group.map(
      ({ id, optional }) => `  [[order.group]]\n  id = "${id}"\n  version = "${versionOf(id)}"\n${optional ? '  optional = true\n' : ''}`,
    );
    return `[[order]]\n${members.join('')}`;
  });
  return groups.join('\n');
}

function lifecycleDescription(): string {
  return `[apis]
[apis.buildpack]
  deprecated = []
  supported = ${JSON.stringify(BUILDPACK_APIS)}
[apis.platform]
  deprecated = []
  supported = ${JSON.stringify(PLATFORM_APIS)}

[lifecycle]
  version = "${lifecycleVersion}"
`;
}

/** Labels that list the content of a builder for tools; the same keys as on published builders. */
export function builderLabels(runImage: string, buildpacksDiffId: string): Record<string, string> {
  const buildpacks = readBuildpacks();
  const apis = { buildpack: { deprecated: [], supported: BUILDPACK_APIS }, platform: { deprecated: [], supported: PLATFORM_APIS } };
  const layers = Object.fromEntries(
    buildpacks.map(({ id, name, version, api }) => [id, { [version]: { api, name, layerDiffID: buildpacksDiffId } }]),
  );
  const order = ORDER.map((group) => ({
    group: group.map(({ id, optional }) => ({ id, version: versionOf(id), ...(optional ? { optional } : {}) })),
  }));
  const metadata = {
    description: 'kf builder: Node.js, Go, Python, static files, binaries, Procfile',
    buildpacks: buildpacks.map(({ id, name, version }) => ({ id, name, version })),
    stack: { runImage: { image: runImage, mirrors: null } },
    images: [{ image: runImage, mirrors: null }],
    lifecycle: { version: lifecycleVersion, api: { buildpack: '0.7', platform: '0.7' }, apis },
    createdBy: { name: 'kf', version: '1' },
  };
  return {
    'io.buildpacks.builder.metadata': JSON.stringify(metadata),
    'io.buildpacks.buildpack.layers': JSON.stringify(layers),
    'io.buildpacks.buildpack.order': JSON.stringify(order),
    'io.buildpacks.lifecycle.version': lifecycleVersion,
    'io.buildpacks.lifecycle.apis': JSON.stringify(apis),
    'io.buildpacks.stack.id': 'kf',
  };
}

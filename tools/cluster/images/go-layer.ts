// The Go of this machine as a layer of the builder: what `go build` needs on Linux, without tests, manuals and other systems.
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

import type { Layer, LayerEntry } from '../../../src/lib/oci/layer.ts';
import { goCommand } from '../go-build.ts';
import type { PackContext } from './base-layers.ts';
import { storedLayer } from './layer-store.ts';
import { diskFile } from './rootfs.ts';

/** Increase it when other files are packed. */
const GO_FORMAT = 1;

/** Programs that `go build` starts; the others come with commands that no build needs. */
const TOOLS = ['asm', 'compile', 'link'];

const OTHER_SYSTEMS = 'aix|android|darwin|dragonfly|freebsd|illumos|ios|js|netbsd|openbsd|plan9|solaris|wasip1|windows';

/** Sources that a build on Linux never reads: commands, tests with their data, and files whose name ends in another system. */
const UNUSED_SOURCE = new RegExp(`^cmd/|(^|/)testdata/|_test\\.go$|_(${OTHER_SYSTEMS})(_[a-z0-9]+)?\\.(go|s|h)$`);

/** Whether a file below GOROOT is packed. */
export function isPacked(path: string, toolFolder: string): boolean {
  if (path.startsWith('src/')) return !UNUSED_SOURCE.test(path.slice('src/'.length));
  if (['VERSION', 'go.env', 'bin/go', 'lib/time/zoneinfo.zip'].includes(path)) return true;
  return path.startsWith('pkg/include/') || TOOLS.some((tool) => path === `${toolFolder}/${tool}`);
}

/** /usr/local/go, and `go` in the PATH; 110 MB unpacked. */
export async function goLayer(context: PackContext): Promise<Layer> {
  const [root = '', version = '', toolFolder = ''] = (await goCommand(['env', 'GOROOT', 'GOVERSION', 'GOTOOLDIR'])).split('\n');
  const tools = toolFolder.slice(root.length + 1);
  return storedLayer(
    {
      name: 'go',
      inputs: [GO_FORMAT, version, process.arch],
      entries: () => [...goEntries(root, tools), { type: 'symlink', name: 'usr/local/bin/go', target: '../go/bin/go' }],
    },
    context.cacheDir,
    context.log,
  );
}

function goEntries(root: string, tools: string): LayerEntry[] {
  const files = ['VERSION', 'go.env', ...['bin', 'lib', 'pkg', 'src'].flatMap((folder) => filesBelow(root, folder))];
  return files
    .filter((file) => isPacked(file, tools))
    .map((file) => {
      const path = join(root, file);
      return diskFile(`usr/local/go/${file}`, path, (statSync(path).mode & 0o100) === 0 ? 0o644 : 0o755);
    });
}

function filesBelow(root: string, folder: string): string[] {
  const entries = readdirSync(join(root, folder), { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name).slice(root.length + 1));
}

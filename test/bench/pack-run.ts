// One measured run of the pack bench, in a process of its own so that its peak memory is its own:
// `node pack-run.ts TREE CACHE REGISTRY REPOSITORY COMPRESSION`.

import { directConnection } from '../../src/lib/oci/http.ts';
import { RegistryClient } from '../../src/lib/oci/registry.ts';
import { listSource } from '../../src/lib/source/source.ts';
import { packSource, pushSource } from '../../src/lib/source/pack.ts';

const [tree = '', cacheDir = '', registry = '', repository = '', compression = 'gzip'] = process.argv.slice(2);
const times: Record<string, number> = {};
const start = performance.now();
let last = start;
const lap = (name: string): void => {
  times[name] = Math.round(performance.now() - last);
  last = performance.now();
};

const listing = await listSource(tree, { cacheDir });
lap('list');
const packed = await packSource(listing, { cacheDir, compression: compression as 'gzip' | 'zstd' });
listing.close();
lap('pack');
// The bench's registries use plain HTTP.
const connection = directConnection(registry, { insecure: true });
const client = new RegistryClient({ send: connection.send });
await pushSource(packed, { client, repository, tag: 'bench' });
connection.close();
lap('upload');
const peakMiB = Math.round(process.resourceUsage().maxRSS / 1024);
const { files, entries, contentHash } = listing;
const { size: layerBytes, digest } = packed.layer;
const wall = Math.round(performance.now() - start);
console.log(JSON.stringify({ ...times, wall, peakMiB, layerBytes, digest, files, entries, contentHash }));

// The image of the pull test: one tiny layer, pushed in the same way as source code.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { defined } from '../../defined.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { layerFromEntries } from '../../oci/layer.ts';
import { pushSingleLayerImage } from '../../oci/push.ts';
import { registryName } from '../../../templates/setup/registry.ts';
import { systemNamespace } from '../../../templates/setup/options.ts';
import { connectToPushPort } from '../registry/access.ts';
import type { BasicCredential } from '../../../templates/registry-secret.ts';

/** Pushes the image and returns its digest. The layer is always the same, so a second setup uploads nothing. */
export async function pushTestImage(
  cluster: Cluster,
  repository: string,
  credential: BasicCredential,
  signal?: AbortSignal,
): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), 'kf-pull-test-'));
  try {
    const entries = [{ type: 'file' as const, name: 'kf-pull-test', source: Buffer.from('kf setup\n') }];
    const layer = await layerFromEntries(entries, { output: path.join(folder, 'layer'), compression: 'gzip' });
    const client = connectToPushPort(cluster, { namespace: systemNamespace, service: registryName, port: 5000 }, credential);
    const pushed = await pushSingleLayerImage({ client, repository, tag: 'latest', layer, ...defined({ signal }) });
    return pushed.digest;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

// Tests the registry that setup installs: pushes an image through the push port and lets nodes pull it, before anything that needs the registry is
// installed.

import { randomUUID } from 'node:crypto';
import { nodeType, secretType, type Node } from '../../api/core.ts';
import { dockerConfigJson, pullUser, pushUser, registryPassword } from '../../api/registry-credentials.ts';
import { setupScope } from '../../api/repositories.ts';
import type { Stored } from '../../api/object.ts';
import { defined } from '../../defined.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { systemNamespace, type SetupPlan } from '../../../templates/setup/options.ts';
import { buildPullSecret } from '../../../templates/setup/pull-test.ts';
import { pullPrefix } from '../../../templates/setup/registry.ts';
import { provePull } from './proofs.ts';
import { pushTestImage } from './push-test.ts';

function takesPods(node: Node): boolean {
  const isReady = node.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false;
  const isOpen = (node.spec?.taints ?? []).every(({ effect }) => effect === 'PreferNoSchedule');
  const os = node.status?.nodeInfo?.operatingSystem ?? 'linux';
  return isReady && isOpen && node.spec?.unschedulable !== true && os === 'linux';
}

/**
 * One node of each class. Classes differ in runtime, operating system and architecture, which affect pulls. Nodes that accept no pods do not
 * count.
 */
export function nodesOfEachClass(nodes: Stored<Node>[]): string[] {
  const classes = new Map<string, string>();
  for (const node of nodes.filter((candidate) => takesPods(candidate))) {
    const { containerRuntimeVersion = '', osImage = '', architecture = '' } = node.status?.nodeInfo ?? {};
    const key = [containerRuntimeVersion, osImage, architecture].join(' ');
    if (!classes.has(key)) classes.set(key, node.metadata.name);
  }
  return [...classes.values()];
}

/** Generous, because the clock of this machine may be wrong by hours. */
const testSeconds = 24 * 3600;

/** Pushes an image through the push port and lets a node of each class pull it, with credentials only for this test. @throws KfError */
export async function proveRegistry(cluster: Cluster, plan: SetupPlan, key: Buffer, signal?: AbortSignal): Promise<void> {
  const until = Math.floor(Date.now() / 1000) + testSeconds;
  const push = pushUser(setupScope, until);
  const repository = `${setupScope}/pull-test-packages`;
  const digest = await pushTestImage(cluster, repository, { username: push, password: registryPassword(key, push) }, signal);
  const pull = pullUser(setupScope, until);
  const host = pullPrefix(plan).split('/')[0] ?? '';
  const name = `kf-pull-test-${randomUUID().slice(0, 8)}`;
  const secret = buildPullSecret(systemNamespace, name, dockerConfigJson(host, pull, registryPassword(key, pull)));
  await cluster.create(secretType, secret);
  try {
    const nodes = nodesOfEachClass((await cluster.list(nodeType)).items);
    const image = `${pullPrefix(plan)}${repository}@${digest}`;
    // If no node accepts pods now (an autoscaler at zero), the scheduler reports what is missing.
    const tests = nodes.length === 0 ? [undefined] : nodes;
    await Promise.all(tests.map((node) => provePull(cluster, { image, pullSecret: name, ...defined({ node }) }, signal)));
  } finally {
    await cluster.delete(secretType, systemNamespace, name);
  }
}

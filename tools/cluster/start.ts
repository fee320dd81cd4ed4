// Starts the programs of a cluster in the order of their dependencies, as many at once as possible, and waits until all are ready.
import { mkdirSync } from 'node:fs';

import { addonImages, addonObjects, applyObjects, expectedObjects, nodeObject, notReady } from './addons.ts';
import { firstNode, nodePlace } from './addresses.ts';
import { ApiClient, waitUntil } from './api.ts';
import type { ApiObject } from './api.ts';
import { programCgroup } from './cgroups.ts';
import { apiServer, controllerManager, etcd, kwok, scheduler, writeAuditPolicy } from './control-plane.ts';
import { bringImages, importImages, waitForContainerd } from './image-store.ts';
import type { BuiltImage } from './images/index.ts';
import { makeNamespaces, startInside } from './namespaces.ts';
import type { NodeProgram } from './namespaces.ts';
import { connectToFirstNode, connectToHost } from './network.ts';
import { npmMirror } from './npm-mirror.ts';
import { partPath } from './parts.ts';
import type { PartPaths } from './parts.ts';
import { makeNodePki, makePki } from './pki.ts';
import type { ProcessMark } from './process.ts';
import { clusterPaths, nodeCount, nodePaths, writeState } from './state.ts';
import type { ClusterState } from './state.ts';
import { containerd, kubelet, kubeProxy, networkPolicies, registries, writeRegistryConfig, writeWorkerConfig } from './worker.ts';

const apiTimeoutMs = 60_000;
const readyTimeoutMs = 180_000;

interface Start {
  state: ClusterState;
  init: ProcessMark;
  parts: PartPaths;
  images: BuiltImage[];
  client: ApiClient;
  log: (line: string) => void;
}

/** Starts a cluster whose programs do not run. Records its init in `state` as soon as it exists. */
export async function startCluster(
  state: ClusterState,
  parts: PartPaths,
  images: BuiltImage[],
  log: (line: string) => void,
): Promise<void> {
  const paths = clusterPaths(state.name);
  mkdirSync(paths.config, { recursive: true });
  await makePki(paths, state.name, state.number);
  writeAuditPolicy(paths);
  writeWorkerConfig(paths, state.name, 0);
  writeRegistryConfig(paths);
  state.init = await makeNamespaces(state.name, 0);
  writeState(state);
  await connectToHost(state.init, state.number, paths.folder);
  const client = new ApiClient(paths.adminKubeconfig);
  const startedAt = Date.now();
  const timed = (line: string): void => {
    log(`${((Date.now() - startedAt) / 1000).toFixed(1)} s: ${line}`);
  };
  const start: Start = { state, init: state.init, parts, images, client, log: timed };
  try {
    const api = startControlPlane(start);
    await Promise.all([api, ...(state.mode === 'full' ? [startNode(start, api), startAddons(start, api)] : [])]);
    // After the add-ons, which are then on the first node.
    for (let index = 1; index < nodeCount(state); index += 1) await startFurtherNode(start, index);
    if (state.kwokNodes > 0) await startKwok(start);
  } finally {
    client.close();
  }
}

function run(start: Start, program: NodeProgram): Promise<void> {
  return startInside(start.init, programCgroup(start.state.name), program);
}

async function startControlPlane(start: Start): Promise<void> {
  const kfnode = partPath(start.parts, 'kfnode');
  await Promise.all([run(start, etcd(kfnode)), run(start, apiServer(kfnode))]);
  await waitUntil('the API server to be ready', apiTimeoutMs, () => start.client.isReady());
  start.log('API server is ready');
  const needsScheduler = start.state.mode === 'full' || start.state.kwokNodes > 0;
  await Promise.all([run(start, controllerManager(kfnode)), ...(needsScheduler ? [run(start, scheduler(kfnode))] : [])]);
}

/** @param api is fulfilled when the API server is ready */
async function startNode(start: Start, api: Promise<void>): Promise<void> {
  const { init, parts, images } = start;
  const { data } = clusterPaths(start.state.name);
  await Promise.all([containerd(parts), ...registries(parts), npmMirror()].map((program) => run(start, program)));
  await waitForContainerd(init, parts, apiTimeoutMs);
  // The images that the node itself needs are loaded first; the node can become ready while the others follow.
  const first = new Set(addonImages(parts, images).map((image) => image.archive));
  await bringImages(
    init,
    parts,
    data,
    images.filter((image) => first.has(image.archive)),
  );
  start.log('images of the add-ons are imported');
  await api;
  await Promise.all([kubelet(parts, firstNode), kubeProxy(parts), networkPolicies(parts, firstNode)].map((program) => run(start, program)));
  await bringImages(init, parts, data, images);
  start.log('all images are imported');
}

/** Starts a node that does not run, in a cluster that does: at the first time, or with the files that it had. Returns when it is ready. */
export async function startNodeAlone(
  state: ClusterState,
  index: number,
  ingredients: Pick<Start, 'parts' | 'images' | 'log'>,
): Promise<void> {
  const client = new ApiClient(clusterPaths(state.name).adminKubeconfig);
  try {
    if (state.init === undefined) throw new Error(`Cluster ${state.name} does not run.`);
    await startFurtherNode({ state, init: state.init, client, ...ingredients }, index);
  } finally {
    client.close();
  }
}

async function startFurtherNode(start: Start, index: number): Promise<void> {
  const { state, parts } = start;
  const [paths, place] = [nodePaths(state.name, index), nodePlace(index)];
  mkdirSync(paths.config, { recursive: true });
  await makeNodePki(clusterPaths(state.name), paths, place);
  writeWorkerConfig(paths, state.name, index);
  const init = await makeNamespaces(state.name, index);
  state.others = { ...state.others, [index]: init };
  writeState(state);
  await connectToFirstNode(start.init, init, place, index);
  const launch = (program: NodeProgram): Promise<void> => startInside(init, programCgroup(state.name, index), program);
  await launch(containerd(parts));
  await waitForContainerd(init, parts, apiTimeoutMs);
  // It pulls all others from the registry of the first node when a pod needs them.
  await importImages(init, parts, addonImages(parts, start.images));
  await Promise.all([kubelet(parts, place), kubeProxy(parts), networkPolicies(parts, place)].map(launch));
  await waitForObjects(start, [nodeObject(index)]);
  start.log(`${place.name} is ready`);
}

async function startAddons(start: Start, api: Promise<void>): Promise<void> {
  await api;
  await applyObjects(start.client, addonObjects(start.parts, start.images));
  start.log('add-ons are applied');
  await waitForObjects(start, expectedObjects(start.parts, 1));
}

async function waitForObjects(start: Start, objects: ApiObject[]): Promise<void> {
  let waitedFor = '';
  const check = async (): Promise<boolean> => {
    const missing = await notReady(start.client, objects);
    if (missing.join() !== waitedFor && missing.length > 0) start.log(`waiting for ${missing.join(', ')}`);
    waitedFor = missing.join();
    return missing.length === 0;
  };
  const { log } = clusterPaths(start.state.name);
  await waitUntil(`the cluster to be ready; the lines above name what is not, and ${log} says why`, readyTimeoutMs, check);
}

async function startKwok(start: Start): Promise<void> {
  const nodes = Array.from({ length: start.state.kwokNodes }, (_, index) => kwokNode(`kwok-${String(index)}`));
  await run(start, kwok(start.parts));
  await Promise.all(nodes.map((node) => start.client.apply(node)));
  await waitForObjects(start, nodes);
}

function kwokNode(name: string): ApiObject {
  const capacity = { cpu: '64', memory: '256Gi', pods: '500', 'ephemeral-storage': '1Ti' };
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name,
      annotations: { 'kwok.x-k8s.io/node': 'fake' },
      labels: { type: 'kwok', 'kubernetes.io/hostname': name, 'kubernetes.io/os': 'linux', 'kubernetes.io/arch': 'amd64' },
    },
    spec: {},
    status: { allocatable: capacity, capacity } as ApiObject['status'] & object,
  };
}

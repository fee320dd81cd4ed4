// The add-ons of a new cluster: Gateway API CRDs, CoreDNS, metrics-server, storage provisioner.
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

import { parseAllDocuments } from 'yaml';

import { dnsServiceAddress, nodePlace } from './addresses.ts';
import { isTrue } from './api.ts';
import type { ApiClient, ApiObject } from './api.ts';
import { pauseImage } from './images/index.ts';
import { partPath } from './parts.ts';
import type { PartPaths } from './parts.ts';

const folder = join(import.meta.dirname, 'addons');

type Fill = (text: string) => string;

function readManifests(file: string, fill: Fill): ApiObject[] {
  return parseAllDocuments(fill(readFileSync(file, 'utf8')))
    .map((document) => document.toJS() as ApiObject | null)
    .filter((object) => object !== null);
}

function readAll(parts: PartPaths, fill: Fill): ApiObject[] {
  const crds = partPath(parts, 'gateway-crds');
  const crdObjects = readdirSync(crds).flatMap((file) => readManifests(join(crds, file), (text) => text));
  const files = ['coredns.yaml', 'storage.yaml', 'metrics-server.yaml'];
  return [
    ...crdObjects.filter((object) => object.kind === 'CustomResourceDefinition'),
    ...files.flatMap((file) => readManifests(join(folder, file), fill)),
  ];
}

/** All objects of a new cluster, in the order of creation, with `${name}` in the manifests filled in. */
export function addonObjects(parts: PartPaths, images: { name: string }[]): ApiObject[] {
  const values: Record<string, string> = { dnsAddress: dnsServiceAddress };
  for (const { name } of images) {
    const short = /\/([^/:]+):[^/]+$/.exec(name)?.[1];
    if (short) values[`image.${short}`] = name;
  }
  return readAll(parts, (text) =>
    text.replaceAll(/\$\{([\w.-]+)\}/g, (_, name: string) => {
      const value = values[name];
      if (value === undefined) throw new Error(`The manifests of the add-ons ask for "${name}", which has no value.`);
      return value;
    }),
  );
}

/** The images that a node needs to become ready, including those of its pods. */
export function addonImages<T extends { name: string }>(parts: PartPaths, images: T[]): T[] {
  const manifests = JSON.stringify(addonObjects(parts, images));
  return images.filter(({ name }) => name === pauseImage || manifests.includes(name));
}

/** The Node of the node with this number, as it is named in requests. */
export function nodeObject(index: number): ApiObject {
  return { apiVersion: 'v1', kind: 'Node', metadata: { name: nodePlace(index).name } };
}

/** The objects that must be ready in a cluster with so many nodes: the nodes and all add-ons. */
export function expectedObjects(parts: PartPaths, nodes: number): ApiObject[] {
  return [...Array.from({ length: nodes }, (_, index) => nodeObject(index)), ...readAll(parts, (text) => text)];
}

/** Applies objects: namespaces and CRDs first, then all others at once. */
export async function applyObjects(client: ApiClient, objects: ApiObject[]): Promise<void> {
  const isBase = (object: ApiObject): boolean => object.kind === 'Namespace' || object.kind === 'CustomResourceDefinition';
  await Promise.all(objects.filter(isBase).map((object) => client.apply(object)));
  await Promise.all(objects.filter((object) => !isBase(object)).map((object) => client.apply(object)));
}

const readyCondition: Record<string, string> = {
  CustomResourceDefinition: 'Established',
  Deployment: 'Available',
  APIService: 'Available',
  Node: 'Ready',
};

/** The objects that are not ready yet, as `Kind name`. */
export async function notReady(client: ApiClient, objects: Pick<ApiObject, 'apiVersion' | 'kind' | 'metadata'>[]): Promise<string[]> {
  const states = await Promise.all(
    objects.map(async (object) => {
      const condition = readyCondition[object.kind];
      const live = condition === undefined ? undefined : await client.get(object);
      // A node that has just become ready has its taint for a moment longer, and accepts no pod until it is removed.
      const ready = condition === undefined || (isTrue(live, condition) && live?.spec?.['taints'] === undefined);
      return ready ? [] : [`${object.kind} ${object.metadata.name}`];
    }),
  );
  return states.flat();
}

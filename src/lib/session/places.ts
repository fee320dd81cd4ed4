// Orgs and spaces by name.

import { findCondition } from '../api/conditions.ts';
import { conditionTypes, kinds, labels, reasons } from '../api/group.ts';
import { nearest, sha224 } from '../api/names.ts';
import type { Stored } from '../api/object.ts';
import type { CFOrg, CFSpace } from '../api/types.generated.ts';
import { defined } from '../defined.ts';
import { KfError } from '../errors.ts';
import type { Cluster } from '../kube/cluster.ts';
import type { NameAndGuid } from './state.ts';

/** The part of a session that these look-ups need. */
interface Reader {
  readonly cluster: Cluster;
  readonly root: string;
  readonly signal: AbortSignal;
  readonly bin: string;
}

const toNamed = (object: Stored<CFOrg> | Stored<CFSpace>): NameAndGuid => ({ name: object.spec.displayName, guid: object.metadata.name });

/** The controller refused the org or space because its GUID belongs to another one: commands in it would work in the other one's namespace. */
const isRefused = (item: Stored<CFOrg> | Stored<CFSpace>): boolean =>
  ([reasons.guidTaken, reasons.namespaceNotOurs] as string[]).includes(findCondition(item, conditionTypes.ready)?.reason ?? '');

const hasName = (item: CFOrg | CFSpace): boolean => findCondition(item, conditionTypes.claimed)?.status === 'True';

/**
 * The order of two with the same name: the one that has the name first, then the older one. Times have whole seconds, so the GUID decides between
 * those of one second, in every command alike.
 */
export function byClaim<T extends CFOrg | CFSpace>(one: Stored<T>, other: Stored<T>): number {
  const age = ({ metadata }: Stored<T>): string => `${metadata.creationTimestamp ?? ''} ${metadata.name}`;
  return Number(hasName(other)) - Number(hasName(one)) || age(one).localeCompare(age(other));
}

function pick(items: (Stored<CFOrg> | Stored<CFSpace>)[], name: string): NameAndGuid | undefined {
  const [first] = items
    .filter((item) => item.spec.displayName === name && item.metadata.deletionTimestamp === undefined && !isRefused(item))
    .toSorted(byClaim);
  return first === undefined ? undefined : toNamed(first);
}

function didYouMean(name: string, names: string[], command: string): string[] {
  const near = nearest(name, names);
  return near === undefined ? [command] : [`Did you mean '${near}'?`, command];
}

const byName = (items: readonly (Stored<CFOrg> | Stored<CFSpace>)[]): NameAndGuid[] =>
  items.map(toNamed).toSorted((a, b) => a.name.localeCompare(b.name));

/** All orgs that the user can see, including those that are being deleted. @param labelSelector left out: all */
export async function readOrgs({ cluster, root, signal }: Reader, labelSelector?: string): Promise<Stored<CFOrg>[]> {
  const { items } = await cluster.list(kinds.org, { ns: root, signal, ...defined({ labelSelector }) });
  return items.filter((item) => !isRefused(item));
}

/** All spaces of an org, including those that are being deleted. @param labelSelector left out: all */
export async function readSpaces({ cluster, signal }: Reader, org: NameAndGuid, labelSelector?: string): Promise<Stored<CFSpace>[]> {
  const { items } = await cluster.list(kinds.space, { ns: org.guid, signal, ...defined({ labelSelector }) });
  return items.filter((item) => !isRefused(item));
}

/** All orgs that the user can see, by name. @param labels a label selector */
export async function listOrgs(reader: Reader, labels?: string): Promise<NameAndGuid[]> {
  return byName(await readOrgs(reader, labels));
}

/** All spaces of an org, by name. @param labels a label selector */
export async function listSpaces(reader: Reader, org: NameAndGuid, labels?: string): Promise<NameAndGuid[]> {
  return byName(await readSpaces(reader, org, labels));
}

/** @throws KfError `not-found` in cf's words, with the nearest name */
export async function findOrg(reader: Reader, name: string): Promise<NameAndGuid> {
  const { cluster, root, signal, bin } = reader;
  const { items } = await cluster.list(kinds.org, { ns: root, labelSelector: `${labels.orgName}=${sha224(name)}`, signal });
  const found = pick(items, name);
  if (found !== undefined) return found;
  const all = await readOrgs(reader);
  const late = pick(all, name);
  if (late !== undefined) return late;
  throw new KfError('not-found', `Organization '${name}' not found.`, {
    hints: didYouMean(
      name,
      all.map(({ spec }) => spec.displayName),
      `${bin} orgs`,
    ),
  });
}

/** @throws KfError `not-found` in cf's words, with the nearest name */
export async function findSpace(reader: Reader, org: NameAndGuid, name: string): Promise<NameAndGuid> {
  const { cluster, signal, bin } = reader;
  const { items } = await cluster.list(kinds.space, { ns: org.guid, labelSelector: `${labels.spaceName}=${sha224(name)}`, signal });
  const found = pick(items, name);
  if (found !== undefined) return found;
  const all = await readSpaces(reader, org);
  const late = pick(all, name);
  if (late !== undefined) return late;
  throw new KfError('not-found', `Space '${name}' not found.`, {
    hints: didYouMean(
      name,
      all.map(({ spec }) => spec.displayName),
      `${bin} spaces`,
    ),
  });
}

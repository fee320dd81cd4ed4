// What a cluster in memory holds, in a form that is equal in every run of the same life.

import { annotations } from '../../../src/lib/api/group.ts';
import type { ResourceType, Stored } from '../../../src/lib/api/object.ts';
import type { MemoryCluster } from '../../support/memory-cluster.ts';

/** Credentials and certificates, which are signed with the time, and the log of each app, which says when the controller looked. */
const ofTime = /^(kf-registry-push|image-registry-credentials|kf-gateway-tls|kf-ca(-certificate)?|.*-events)$/;
const time = /\d{4}-\d\d-\d\dT\d\d[:-]\d\d[:-]\d\d(\.\d+)?Z?/g;
const uuid = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;
/** The name of half a network policy has the uids of both apps in it. */
const hash = /\b[0-9a-f]{56}\b/g;
/** The number of a form of a route, which counts the forms before. */
const form = /(?<=\b[0-9a-f]{10}-)\d+(?=\.)/g;
/** The registry and the gateway get their ports from the system. */
const port = /127\.0\.0\.1:\d+|(?<="cidr":"127\.0\.0\.1\/32"\}\}\],"ports":\[\{"protocol":"TCP","port":)\d+/g;

/** Versions of Secrets. */
const versions = new Set<string>([annotations.instanceVersion, 'credentialsObservedVersion']);

function plain({ type, object }: { type: ResourceType; object: Stored }): string {
  const { uid: _uid, resourceVersion: _version, creationTimestamp: _made, generation, ownerReferences = [], ...metadata } = object.metadata;
  const owners = ownerReferences.map(({ kind, name }) => `${kind} ${name}`);
  const { data, ...body } = object as Stored & { data?: Record<string, string> };
  const shown = { ...body, metadata: { ...metadata, owners }, data: ofTime.test(metadata.name) ? data !== undefined : data };
  const text = JSON.stringify(shown, (key, value: unknown) => {
    if (key === 'observedGeneration') return value === generation ? 'present' : 'earlier';
    return versions.has(key) ? 'version' : value;
  });
  const line = `${type.kind} ${metadata.namespace ?? ''}/${metadata.name} ${text}`;
  const named = line.replaceAll(time, 'TIME').replaceAll(uuid, 'UUID').replaceAll(port, 'ADDRESS').replaceAll(form, 'N');
  return type.kind === 'CFNetworkPolicy' ? named.replaceAll(hash, 'HASH') : named;
}

const isOwn = ({ type, object }: { type: ResourceType; object: Stored }): boolean =>
  type.kind !== 'Event' && object.metadata.name !== 'kf-controller';

/** A line for each object but Events and those of the leader election, without uids, versions and times. */
export function allObjects(cluster: MemoryCluster): string[] {
  return cluster.everything().filter(isOwn).map(plain).toSorted();
}

/** Objects whose owners, or whose namespace, are gone. */
export function orphans(cluster: MemoryCluster): string[] {
  const all = cluster.everything();
  const uids = new Set(all.map(({ object }) => object.metadata.uid));
  const namespaces = new Set(all.filter(({ type }) => type.kind === 'Namespace').map(({ object }) => object.metadata.name));
  return all
    .filter(({ object: { metadata } }) => {
      const { namespace, ownerReferences = [] } = metadata;
      const isLost = ownerReferences.length > 0 && ownerReferences.every(({ uid }) => !uids.has(uid));
      return isLost || (namespace !== undefined && !namespaces.has(namespace));
    })
    .map(({ type, object: { metadata } }) => `${type.kind} ${metadata.namespace ?? ''}/${metadata.name}`);
}

const nameOf = (line: string): string => line.slice(0, line.indexOf(' {'));

/** Where two lines begin to differ, with what is around. */
function difference(wanted: string, seen: string): string {
  const at = [...wanted].findIndex((letter, index) => seen[index] !== letter);
  const part = (line: string): string => line.slice(Math.max(0, at - 60), at + 100);
  return `${nameOf(wanted)}: …${part(seen)}… in place of …${part(wanted)}…`;
}

/** What differs between two results of {@link allObjects}. */
export function differences(wanted: readonly string[], seen: readonly string[]): string[] {
  const [lacking, more] = [wanted.filter((line) => !seen.includes(line)), seen.filter((line) => !wanted.includes(line))];
  const partOf = (line: string): string | undefined => more.find((other) => nameOf(other) === nameOf(line));
  return [
    ...lacking.map((line) => {
      const other = partOf(line);
      return other === undefined ? `no ${nameOf(line)}` : difference(line, other);
    }),
    ...more.filter((line) => !lacking.some((other) => nameOf(other) === nameOf(line))).map((line) => `also ${nameOf(line)}`),
  ];
}

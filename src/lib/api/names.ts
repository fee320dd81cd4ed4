// Computed names, by Korifi's formulas.

import type { Stored } from './object.ts';
import { createHash } from 'node:crypto';
import { labels } from './group.ts';
import type { CFApp, CFDomain, CFOrg, CFProcess, CFRoute, CFServiceBinding, CFServiceInstance, CFSpace } from './types.generated.ts';

const dnsNamespace = '6ba7b810-9dad-11d1-80b4-00c04fd430c8';

const hex = (algorithm: 'sha1' | 'sha224' | 'sha256', text: string): string => createHash(algorithm).update(text, 'utf8').digest('hex');

/** RFC 9562 UUID version 5. */
export function uuidV5(namespace: string, name: string): string {
  const digest = createHash('sha1')
    .update(Buffer.from(namespace.replaceAll('-', ''), 'hex'))
    .update(name, 'utf8')
    .digest()
    .subarray(0, 16);
  digest[6] = ((digest[6] ?? 0) & 0x0f) | 0x50;
  digest[8] = ((digest[8] ?? 0) & 0x3f) | 0x80;
  return digest.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

/** The contract's NamespacedUUID: a GUID computed from another name and further strings. */
export function namespacedUuid(namespace: string, ...segments: string[]): string {
  return uuidV5(uuidV5(dnsNamespace, namespace), segments.join(':').trim());
}

/** Name of the CFProcess of an app and a process type. */
export function processGuid(appGuid: string, processType: string): string {
  return namespacedUuid(appGuid, processType);
}

/** Lower-case hex of SHA-224: the form of names in labels. */
export function sha224(text: string): string {
  return hex('sha224', text);
}

/** Name of the AppWorkload of one generation of a process. */
export function appWorkloadName(process: string, generation: string): string {
  return `${process}-${generation}`;
}

/** Name of the StatefulSet (and its budget) of one generation; pods add `-<index>`. */
export function statefulSetName(appGuid: string, namespace: string, process: string, generation: string): string {
  const wanted = `${appGuid}-${namespace}`.toLowerCase().replaceAll('_', '-');
  const prefix = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(wanted) ? wanted : process;
  return `${prefix.slice(0, 40)}-${hex('sha256', `${process}-${generation}`).slice(0, 10)}`;
}

/**
 * Name of the Service of one generation behind a route destination. Each protocol has one of its own: a gateway then changes the protocol with the
 * route, so it can be asked whether it has, and no request is sent with the wrong one.
 */
export function serviceName(destinationGuid: string, generation: string, protocol: 'http1' | 'http2' = 'http1'): string {
  return `s-${destinationGuid}${protocol === 'http2' ? '-http2' : ''}-${generation}`;
}

/** The format of times in labels: `2006-01-02T15-04-05`, UTC. */
export function timeLabel(time: Date | string): string {
  return new Date(time).toISOString().slice(0, 19).replaceAll(':', '-');
}

/** Name of the CFFeatureFlag of a flag: names of objects have no `_`. */
export const flagObjectName = (flag: string): string => flag.replaceAll('_', '-');

/** Name of the RoleBinding that gives `cfRole` to a user or a service account. */
export function roleBindingName(cfRole: string, subject: { user: string } | { namespace: string; name: string }): string {
  const who = 'user' in subject ? subject.user : `${subject.namespace}/${subject.name}`;
  return `cf-${hex('sha256', `${cfRole}::${who}`)}`;
}

/** The subject of a name claim, and the name of its Lease. */
export interface NameClaim {
  entityType: string;
  uniqueName: string;
  leaseName: string;
}

function claim(entityType: string, uniqueName: string): NameClaim {
  return { entityType, uniqueName, leaseName: `n-${hex('sha1', `${entityType}::${uniqueName}`)}` };
}

/** Entity type of the Lease with which a space holds a host. */
export const routeHostEntity = 'routehost';

/** Korifi's claims, and one of kf; the Lease's namespace is root for orgs and routes, otherwise the object's own. */
export const nameClaims = {
  org: (org: CFOrg): NameClaim => claim('cforg', org.spec.displayName.toLowerCase()),
  space: (space: CFSpace): NameClaim => claim('cfspace', space.spec.displayName.toLowerCase()),
  app: (app: CFApp): NameClaim => claim('app', app.spec.displayName.toLowerCase()),
  route: (route: CFRoute): NameClaim => {
    const { host = '', path = '', domainRef } = route.spec;
    return claim('route', [host.toLowerCase(), domainRef.namespace ?? '', domainRef.name ?? '', path.toLowerCase()].join('::'));
  },
  /** The whole host, which belongs to one space (docs/decisions/0020); in the root namespace. */
  routeHost: (fqdn: string): NameClaim => claim(routeHostEntity, fqdn.toLowerCase()),
  serviceInstance: (instance: CFServiceInstance): NameClaim => claim('serviceinstance', instance.spec.displayName),
  /** `instanceName` is the display name of the bound instance, used where the binding has none. */
  serviceBinding: (binding: Stored<CFServiceBinding>, instanceName: string): NameClaim => {
    const { appRef, service, displayName, type } = binding.spec;
    const name = displayName === undefined || displayName === '' ? instanceName : displayName;
    // An app mounts each binding under its name, whatever the instance.
    if (type === 'app') return claim('servicebinding', ['sb', appRef.name, name].join('::'));
    return claim(
      'servicebinding',
      ['sb', appRef.name, service.namespace ?? binding.metadata.namespace, service.name ?? '', name].join('::'),
    );
  },
} as const;

/** Annotation `app-guids` of a route: the GUIDs of all destinations, joined by a newline. */
export function appGuidsOf(route: CFRoute): string {
  return (route.spec.destinations ?? []).map((destination) => destination.appRef.name).join('\n');
}

/** `fqdn`: host plus domain, in lower case; `uri`: the same with the path. */
export function addressOf(route: CFRoute, domain: CFDomain): { fqdn: string; uri: string } {
  // A dot at the end of a domain's name changes nothing.
  const fqdn = `${(route.spec.host ?? '').toLowerCase()}.${domain.spec.name.toLowerCase().replace(/\.$/, '')}`;
  return { fqdn, uri: fqdn + (route.spec.path ?? '') };
}

/** Label selector of all pods of a process, over all generations. */
export function podSelectorOf(process: Stored<CFProcess>): string {
  return `${labels.guid}=${process.metadata.name}`;
}

/** Number of edits between two words; a swap of two neighbouring letters is one edit. */
function distance(a: string, b: string): number {
  let before: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = (previous[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1] ? (before[j - 2] ?? 0) + 1 : Infinity;
      row.push(Math.min(replaced, swapped, (previous[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1));
    }
    before = previous;
    previous = row;
  }
  return previous[b.length] ?? 0;
}

/** Number of edits from one name to the other; undefined when more than a third of the letters differ. */
function nearness(wanted: string, candidate: string): number | undefined {
  const edits = distance(wanted.toLowerCase(), candidate.toLowerCase());
  const limit = Math.max(1, Math.floor(Math.max(wanted.length, candidate.length) / 3));
  return edits <= limit ? edits : undefined;
}

/** The candidate that a mistyped name most likely means; undefined when none is similar. */
export function nearest(name: string, candidates: Iterable<string>): string | undefined {
  let best: { name: string; edits: number } | undefined;
  for (const candidate of candidates) {
    const edits = nearness(name, candidate);
    if (edits !== undefined && (best === undefined || edits < best.edits)) best = { name: candidate, edits };
  }
  return best?.name;
}

/** Limit of suggestions for an unknown word. */
const mostLikely = 3;

/** Likely meanings of a word: first names that begin with it, then similar ones, the most similar first. @param candidates in order of preference */
export function likely(typed: string, candidates: readonly string[]): string[] {
  const begun = candidates.filter((name) => name.startsWith(typed.toLowerCase()));
  const near = candidates
    .map((name) => ({ name, edits: nearness(typed, name) ?? Infinity }))
    .filter(({ name, edits }) => edits < Infinity && !begun.includes(name))
    .toSorted((a, b) => a.edits - b.edits);
  return [...begun, ...near.map(({ name }) => name)].slice(0, mostLikely);
}

/** The container of a sidecar; its number keeps names apart that differ in forbidden characters only. */
export function sidecarContainer(index: number, name: string): string {
  const allowed = name
    .toLowerCase()
    .replaceAll(/[^a-z0-9]/g, '-')
    .slice(0, 40);
  return `sidecar-${String(index)}-${allowed}-s`;
}

/** The name in it, as far as a container's name can have it; undefined for other containers. */
export function sidecarOf(container: string): string | undefined {
  return /^sidecar-\d+-(.*)-s$/.exec(container)?.[1];
}

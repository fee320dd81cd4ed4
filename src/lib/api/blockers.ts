// Explains what blocks the deletion of an object, from the object itself.

import type { Namespace } from './core.ts';
import type { KubeObject, Stored } from './object.ts';

const quoted = (names: readonly string[]): string => names.map((name) => `'${name}'`).join(', ');

/** Finalizers that Kubernetes' own controllers set and remove. */
const ofKubernetes = (finalizer: string): boolean =>
  ['foregroundDeletion', 'orphan', 'kubernetes'].includes(finalizer) || finalizer.split('/', 1)[0]?.endsWith('kubernetes.io') === true;

/** Finalizers that neither kf (`own`) nor Kubernetes itself removes. */
export function foreignFinalizers({ metadata }: KubeObject, own: readonly string[] = []): string[] {
  return (metadata.finalizers ?? []).filter((name) => !own.includes(name) && !ofKubernetes(name));
}

/** `CFOrg 'x' has the finalizer 'y'`, or undefined when it has no foreign finalizer. */
export function heldBy(kind: string, object: Stored, own: readonly string[] = []): string | undefined {
  const held = foreignFinalizers(object, own);
  if (held.length === 0) return undefined;
  return `${kind} '${object.metadata.name}' has the finalizer${held.length === 1 ? '' : 's'} ${quoted(held)}`;
}

/** The kinds of the remaining objects, as the API server lists them: `configmaps. has 1 resource instances, widgets.example.org has 2 …`. */
function remainingKinds(messages: readonly string[]): string[] {
  const parts = messages.flatMap((message) => message.split(/[:,]/)).filter((part) => part.endsWith(' resource instances'));
  const kinds = parts.filter((part) => part.includes(' has ')).map((part) => part.trim().split(' ', 1)[0]?.replace(/\.$/, '') ?? '');
  return [...new Set(kinds)].filter((kind) => kind !== '');
}

/**
 * What blocks the deletion of a namespace: its own finalizers, then the API server's text about its content.
 * @param objects known blocked objects in it, each in the format of {@link heldBy}
 */
export function namespaceBlockers(namespace: Stored<Namespace>, objects: readonly string[] = []): string {
  const own = heldBy('Namespace', namespace);
  const said = (namespace.status?.conditions ?? [])
    .filter((condition) => condition.status === 'True' && condition.type.startsWith('Namespace'))
    .map((condition) => condition.message ?? condition.reason ?? condition.type);
  const kinds = objects.length > 0 ? [] : remainingKinds(said);
  const look = kinds.length === 0 ? [] : [`See: kubectl get ${kinds.join(',')} -n ${namespace.metadata.name}`];
  const all = [...(own === undefined ? [] : [`${own}.`]), ...objects.map((object) => `${object}.`), ...said, ...look];
  return all.length === 0 ? 'its contents are being removed.' : all.join(' ');
}

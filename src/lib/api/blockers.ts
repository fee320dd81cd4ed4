// What keeps an object that is being deleted: read from the object itself, told in sentences.

import type { Namespace } from './core.ts';
import type { KubeObject, Stored } from './object.ts';

const quoted = (names: readonly string[]): string => names.map((name) => `'${name}'`).join(', ');

/** Finalizers that Kubernetes' own controllers set and take away by themselves. */
const ofKubernetes = (finalizer: string): boolean =>
  ['foregroundDeletion', 'orphan', 'kubernetes'].includes(finalizer) || finalizer.split('/', 1)[0]?.endsWith('kubernetes.io') === true;

/** Finalizers that neither we (`own`) nor Kubernetes itself will take away. */
export function foreignFinalizers({ metadata }: KubeObject, own: readonly string[] = []): string[] {
  return (metadata.finalizers ?? []).filter((name) => !own.includes(name) && !ofKubernetes(name));
}

/** `CFOrg 'x' has the finalizer 'y'`, or undefined when nothing foreign holds it. */
export function heldBy(kind: string, object: Stored, own: readonly string[] = []): string | undefined {
  const held = foreignFinalizers(object, own);
  if (held.length === 0) return undefined;
  return `${kind} '${object.metadata.name}' has the finalizer${held.length === 1 ? '' : 's'} ${quoted(held)}`;
}

/** The kinds of what remains, as the API server lists them: `configmaps. has 1 resource instances, widgets.example.org has 2 …`. */
function remainingKinds(messages: readonly string[]): string[] {
  const parts = messages.flatMap((message) => message.split(/[:,]/)).filter((part) => part.endsWith(' resource instances'));
  const kinds = parts.filter((part) => part.includes(' has ')).map((part) => part.trim().split(' ', 1)[0]?.replace(/\.$/, '') ?? '');
  return [...new Set(kinds)].filter((kind) => kind !== '');
}

/**
 * What keeps a namespace that is being deleted: its own finalizers, then its content in the API server's words.
 * @param objects what is known to be held inside, each as {@link heldBy} says it
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

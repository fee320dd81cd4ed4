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

/** The command that takes all finalizers from an object. */
export const withoutFinalizers = (kind: string, name: string, ns: string): string =>
  `kubectl patch ${kind} ${name} -n ${ns} --type=merge -p '{"metadata":{"finalizers":null}}'`;

/**
 * What the API server counts. `has`: the kinds of the remaining objects, as `configmaps. has 1 resource instances, widgets.example.org has 2 …`.
 * `in`: their finalizers, as `example.org/hold in 1 resource instances, …`.
 */
function remaining(messages: readonly string[], verb: 'has' | 'in'): string[] {
  const parts = messages.flatMap((message) => message.split(/[:,]/)).filter((part) => part.endsWith(' resource instances'));
  const names = parts.filter((part) => part.includes(` ${verb} `)).map((part) => part.trim().split(' ', 1)[0]?.replace(/\.$/, '') ?? '');
  return [...new Set(names)].filter((name) => name !== '');
}

const failedDeletion = /^Failed to delete all resource types, \d+ remaining: /;
const leftItems = /unexpected items still remain in namespace: \S+ for gvr: \S+, Resource=([^\s,\]]+)/g;

/**
 * The kinds that a namespace controller has deleted, and that are not gone yet: it says so as of a failure (k8s.io/kubernetes/pkg/controller/namespace).
 * Empty for a text that says anything else.
 */
function leavingIn(message: string): string[] {
  const errors = message.replace(failedDeletion, '');
  const isKnown = errors !== message && /^[\s,[\]]*$/.test(errors.replaceAll(leftItems, ''));
  return isKnown ? [...new Set([...errors.matchAll(leftItems)].map(([, resource = '']) => resource))] : [];
}

/** The API server's texts. What only waits for its end is told shortly, and once. */
function calmly(messages: readonly string[]): string[] {
  const leaving = new Set(messages.flatMap(leavingIn));
  return messages.flatMap((message) => {
    const own = leavingIn(message);
    if (own.length > 0) return [`still to go: ${own.join(', ')}.`];
    const counted = remaining([message], 'has');
    return counted.length > 0 && counted.every((kind) => leaving.has(kind.split('.', 1)[0] ?? '')) ? [] : [message];
  });
}

/** The commands that list the remaining objects and, if a finalizer of others holds one, take it away. */
function commandsFor(ns: string, kinds: readonly string[], isHeld: boolean): string[] {
  if (kinds.length === 0) return [];
  const list = `See: kubectl get ${kinds.join(',')} -n ${ns}`;
  if (!isHeld) return [list];
  const kind = kinds.length === 1 ? kinds.join() : 'KIND';
  return [
    `${list} -o custom-columns=KIND:.kind,NAME:.metadata.name,FINALIZERS:.metadata.finalizers`,
    `If nothing else removes a finalizer: ${withoutFinalizers(kind, 'NAME', ns)}`,
  ];
}

/**
 * What blocks the deletion of a namespace: its own finalizers, then the API server's text about its content, then commands for it.
 * @param objects known blocked objects in it, each in the format of {@link heldBy}
 */
export function namespaceBlockers(namespace: Stored<Namespace>, objects: readonly string[] = []): string {
  const own = heldBy('Namespace', namespace);
  const said = (namespace.status?.conditions ?? [])
    .filter((condition) => condition.status === 'True' && condition.type.startsWith('Namespace'))
    .map((condition) => condition.message ?? condition.reason ?? condition.type);
  const isHeld = remaining(said, 'in').some((finalizer) => !ofKubernetes(finalizer));
  const kinds = objects.length > 0 && !isHeld ? [] : remaining(said, 'has');
  const look = commandsFor(namespace.metadata.name, kinds, isHeld);
  const all = [...(own === undefined ? [] : [`${own}.`]), ...objects.map((object) => `${object}.`), ...calmly(said), ...look];
  return all.length === 0 ? 'its contents are being removed.' : all.join(' ');
}

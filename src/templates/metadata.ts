// The common parts of all objects that the CLI creates: kind, index labels, author, owner.

import { annotations, contractVersion } from '../lib/api/group.ts';
import { indexLabels } from '../lib/api/labels.ts';
import { apiVersionOf } from '../lib/api/object.ts';
import type { KubeObject, ObjectMeta, OwnerReference, ResourceType, Stored } from '../lib/api/object.ts';

/** Who creates the object, and when. */
export interface Authorship {
  /** The user name that the API server sees; a policy rejects any other. */
  changedBy: string;
  now: Date;
}

/** The annotations of an object's author. */
export function authorOf(author: Authorship): Record<string, string> {
  return { [annotations.creationVersion]: contractVersion, [annotations.changedBy]: author.changedBy };
}

/** A reference to an owner that exists on the server. Never with `blockOwnerDeletion`, which needs a right on finalizers. */
export function ownerReference(type: ResourceType, owner: Stored, controller = true): OwnerReference {
  return {
    apiVersion: apiVersionOf(type),
    kind: type.kind,
    name: owner.metadata.name,
    uid: owner.metadata.uid,
    ...(controller ? { controller } : {}),
  };
}

interface Parts<T extends KubeObject> {
  metadata: ObjectMeta;
  body: Omit<T, keyof KubeObject>;
  author: Authorship;
}

/** The complete object: given labels and annotations override the computed ones. */
export function assemble<T extends KubeObject>(type: ResourceType<T>, { metadata, body, author }: Parts<T>): T {
  const object = { apiVersion: apiVersionOf(type), kind: type.kind, metadata, ...body } as T;
  const labels = { ...indexLabels(object, { now: author.now }), ...metadata.labels };
  return { ...object, metadata: { ...metadata, labels, annotations: { ...authorOf(author), ...metadata.annotations } } };
}

/** Encodes texts as the `data` of a Secret. */
export function encoded(texts: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(texts).map(([key, text]) => [key, Buffer.from(text, 'utf8').toString('base64')]));
}

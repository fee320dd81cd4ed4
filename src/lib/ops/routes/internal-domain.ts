// What the internal domain needs beside its CFDomain: a namespace with a Service, and the controller's right to write addresses there.

import { namespaceType, roleBindingType, serviceType } from '../../api/core.ts';
import { labels } from '../../api/group.ts';
import type { KubeObject, ResourceType } from '../../api/object.ts';
import { KfError } from '../../errors.ts';
import { isAlreadyExists } from '../../kube/errors.ts';
import type { Session } from '../../session/session.ts';
import {
  buildInternalNamespace,
  buildInternalRights,
  buildInternalService,
  internalDomain,
  internalNamespace,
} from '../../../templates/internal-domain.ts';

/** @throws KfError `usage` for another name: the name service of the cluster answers for this one only */
export function assertInternalName(name: string): void {
  if (name === internalDomain) return;
  throw new KfError(
    'usage',
    `The internal domain of kf is '${internalDomain}', not '${name}': the name service of the cluster answers for no other.`,
  );
}

async function create<T extends KubeObject>({ cluster, signal }: Session, type: ResourceType<T>, object: T): Promise<void> {
  await cluster.create(type, object, { signal }).catch((error: unknown) => {
    if (!isAlreadyExists(error)) throw error;
  });
}

/** @throws KfError `conflict` when the namespace is somebody else's, `forbidden` for all but administrators of the cluster */
export async function prepareInternalDomain(session: Session): Promise<void> {
  const { cluster, signal } = session;
  const present = await cluster.get(namespaceType, undefined, internalNamespace, signal);
  if (present !== undefined && present.metadata.labels?.[labels.managedBy] !== 'kf') {
    const why = `'${internalDomain}' needs the namespace '${internalNamespace}', which exists and is not kf's.`;
    throw new KfError('conflict', why, { hints: [`kubectl get namespace ${internalNamespace} --show-labels`] });
  }
  const { controller } = await session.info();
  await create(session, namespaceType, buildInternalNamespace());
  await create(session, serviceType, buildInternalService());
  await create(session, roleBindingType, buildInternalRights({ namespace: controller.namespace, name: 'kf-controller' }));
}

/** Removes the namespace with everything in it. */
export async function removeInternalDomain({ cluster, signal }: Session): Promise<void> {
  const present = await cluster.get(namespaceType, undefined, internalNamespace, signal);
  if (present?.metadata.labels?.[labels.managedBy] !== 'kf') return;
  await cluster.delete(namespaceType, undefined, internalNamespace, { uid: present.metadata.uid, signal });
}

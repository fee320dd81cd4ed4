// User and password of the registry of an app's image (`--docker-username`, CF_DOCKER_PASSWORD), in a Secret that the app owns.

import { annotations } from '../../api/group.ts';
import { secretType } from '../../api/core.ts';
import type { Stored } from '../../api/object.ts';
import { credentialIn, userIn, withRegistry } from '../../api/registry-credentials.ts';
import type { CFApp } from '../../api/types.generated.ts';
import { configKeyOf } from '../../oci/credentials.ts';
import { parseReference } from '../../oci/reference.ts';
import type { SpaceSession } from '../../session/session.ts';
import type { Authorship } from '../../../templates/metadata.ts';
import { dockerConfigKey, imagePullSecret, imagePullSecretName } from '../../../templates/registry-secret.ts';

const keyOf = (image: string): string => configKeyOf(parseReference(image).registry);
const textOf = (data: Readonly<Record<string, string>> = {}): string => Buffer.from(data[dockerConfigKey] ?? '', 'base64').toString();

export interface ImageCredential {
  image: string;
  username: string;
  password: string;
}

/**
 * Writes the credential into the app's Secret, beside those of other registries: earlier droplets may be in them. A new password also reaches the
 * instances of earlier droplets, because all of them name this Secret.
 * @returns the Secret's name
 */
export async function keepImageCredential(
  { cluster, space, signal }: SpaceSession,
  app: Stored<CFApp>,
  { image, username, password }: ImageCredential,
  author: Authorship,
): Promise<string> {
  const name = imagePullSecretName(app);
  const present = await cluster.get(secretType, space.guid, name, signal);
  const before = textOf(present?.data);
  const after = withRegistry(before, keyOf(image), username, password);
  const wanted = imagePullSecret(app, after, author);
  if (present === undefined) await cluster.create(secretType, wanted, { signal });
  else if (after !== before) {
    const metadata = { uid: present.metadata.uid, annotations: { [annotations.changedBy]: author.changedBy } };
    await cluster.mergePatch(secretType, space.guid, name, { metadata, data: wanted.data }, { signal });
  }
  return name;
}

/** The user that the app's Secret has for the registry of an image. */
export async function imageUser({ cluster, space, signal }: SpaceSession, secretName: string, image: string): Promise<string | undefined> {
  const secret = await cluster.get(secretType, space.guid, secretName, signal);
  return userIn(textOf(secret?.data), keyOf(image));
}

/** The credential that a Secret of the space has for the registry of an image. @throws KubeError `forbidden` without the right to read it */
export async function readImageCredential(
  { cluster, space, signal }: SpaceSession,
  secretName: string,
  image: string,
): Promise<ImageCredential | undefined> {
  const secret = await cluster.get(secretType, space.guid, secretName, signal);
  const credential = credentialIn(textOf(secret?.data), keyOf(image));
  return credential === undefined ? undefined : { image, ...credential };
}

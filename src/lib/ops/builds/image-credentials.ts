// User and password of the registry of an app's image (`--docker-username`, CF_DOCKER_PASSWORD), in a Secret that the app owns.

import { annotations } from '../../api/group.ts';
import { secretType, type Secret } from '../../api/core.ts';
import type { Stored } from '../../api/object.ts';
import { credentialIn, userIn, withRegistry } from '../../api/registry-credentials.ts';
import type { CFApp } from '../../api/types.generated.ts';
import { defined } from '../../defined.ts';
import { retryOnConflict } from '../../kube/retry-on-conflict.ts';
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

/** A credential in the app's Secret. */
export interface KeptCredential {
  secretName: string;
  /**
   * Gives the registry the credential back that it had before, if it had another one, unless somebody has changed it since. Does so after an
   * interruption too, so the session's signal does not end it.
   * @param assertOurs throws when a later command may use the new credential: it writes none that is there already
   */
  putBack: (assertOurs: () => Promise<void>) => Promise<void>;
}

/** Changes the text of the app's Secret. Pushes for other registries may write it at the same time. @returns the text before */
async function changeSecret(
  { cluster, space, signal }: Pick<SpaceSession, 'cluster' | 'space'> & { signal?: AbortSignal },
  app: Stored<CFApp>,
  author: Authorship,
  change: (text: string) => string,
): Promise<string> {
  const name = imagePullSecretName(app);
  const read = (): Promise<Stored<Secret> | undefined> => cluster.get(secretType, space.guid, name, signal);
  const options = defined({ signal });
  const write = async (present: Stored<Secret> | undefined): Promise<string> => {
    const before = textOf(present?.data);
    const after = change(before);
    if (after === before) return before;
    const wanted = imagePullSecret(app, after, author);
    if (present === undefined) await cluster.create(secretType, wanted, options);
    else {
      const { uid, resourceVersion } = present.metadata;
      const metadata = { uid, resourceVersion, annotations: { [annotations.changedBy]: author.changedBy } };
      await cluster.mergePatch(secretType, space.guid, name, { metadata, data: wanted.data }, options);
    }
    return before;
  };
  return retryOnConflict(await read(), write, read, signal);
}

/**
 * Writes the credential into the app's Secret, beside those of other registries: earlier droplets may be in them. A new password also reaches the
 * instances of earlier droplets, because all of them name this Secret. So one that a registry refuses has to be put back.
 */
export async function keepImageCredential(
  session: SpaceSession,
  app: Stored<CFApp>,
  { image, username, password }: ImageCredential,
  author: Authorship,
): Promise<KeptCredential> {
  const key = keyOf(image);
  const before = await changeSecret(session, app, author, (text) => withRegistry(text, key, username, password));
  const earlier = credentialIn(before, key);
  const isOurs = (one: typeof earlier): boolean => one?.username === username && one.password === password;
  const putBack = async (assertOurs: () => Promise<void>): Promise<void> => {
    if (earlier === undefined || isOurs(earlier)) return;
    await assertOurs();
    await changeSecret({ cluster: session.cluster, space: session.space }, app, author, (text) =>
      isOurs(credentialIn(text, key)) ? withRegistry(text, key, earlier.username, earlier.password) : text,
    );
  };
  return { secretName: imagePullSecretName(app), putBack };
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

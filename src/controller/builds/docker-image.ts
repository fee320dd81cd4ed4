// Builds of packages that are images: finds the digest of the image, and whether the image can run here.

import { KfError, messageOf } from '../../lib/errors.ts';
import { challengeAuthenticator } from '../../lib/oci/auth.ts';
import { credentialsFromConfig } from '../../lib/oci/credentials.ts';
import type { RegistryCredentialSource } from '../../lib/oci/credentials.ts';
import { credentialNote, RegistryError, type CredentialUse } from '../../lib/oci/errors.ts';
import { directConnection } from '../../lib/oci/http.ts';
import { formatReference, parseReference } from '../../lib/oci/reference.ts';
import { RegistryClient } from '../../lib/oci/registry.ts';
import type { ResolvedImage } from '../../lib/oci/registry.ts';
import { cutText } from '../../lib/api/text.ts';
import { ownUserId } from '../../templates/pod-security.ts';
import { tableIn, textIn } from './untrusted.ts';
import type { UntrustedTable } from './untrusted.ts';

const buildMetadataLabel = 'io.buildpacks.build.metadata';

/** What an image's registry says about how the image runs. */
export interface ImageFacts {
  /** Digest of what the tag points at: the index when there is one. */
  digest: string;
  user: string;
  ports: number[];
  /** Left out for an index with images of several architectures. */
  architecture?: string;
  /** Text of label `io.buildpacks.build.metadata`; empty when there is none. */
  buildMetadata: string;
}

/** Text of a docker config. */
export interface NamedConfig {
  text: string;
  /** Where it is from, for messages: `Secret 'x'`. */
  from: string;
}

export interface ReadOptions {
  /** The first one with a credential for the registry is used. */
  dockerConfigs: readonly NamedConfig[];
  insecureRegistries: string[];
  /** The architecture that is read from an index, as in GOARCH. */
  architecture: string;
  signal: AbortSignal;
}

function credentials(configs: ReadOptions['dockerConfigs']): RegistryCredentialSource {
  const sources = configs.map(({ text, from }) => ({ source: credentialsFromConfig(text, 'the pull secret'), from }));
  return async (registry) => {
    for (const { source, from } of sources) {
      const found = await source(registry);
      if (found !== undefined) return { ...found, from };
    }
    return undefined;
  };
}

/**
 * Reads the image's manifest and config from its registry.
 * @throws KfError `not-found` when there is no such image; RegistryError when the registry refuses; else the error of the connection
 */
export async function readImage(image: string, options: ReadOptions): Promise<ImageFacts> {
  const { registry, repository, tag, digest } = parseReference(image);
  const isInsecure = options.insecureRegistries.includes(registry);
  const connection = directConnection(registry, { guarded: true, ...(isInsecure ? { insecure: true } : {}) });
  try {
    const authenticator = challengeAuthenticator({
      registry,
      credentials: credentials(options.dockerConfigs),
      sendUrl: connection.sendUrl,
    });
    const client = new RegistryClient({ send: connection.send, authenticator, retryDelaysMs: [300, 1000] });
    const found = await client.resolve(repository, digest ?? tag ?? 'latest', options.architecture, options.signal);
    if (found === undefined) throw new KfError('not-found', `The image '${image}' does not exist.`);
    const config = await client.readConfig(repository, found.manifest, options.signal);
    return factsOf({ ...config }, found);
  } finally {
    connection.close();
  }
}

/** Of an image that exposes more ports, the lowest ones are kept. */
const mostPorts = 64;

/** @param file the image config as the registry sent it: each of its values may have any type */
function factsOf(file: UntrustedTable, { rootDigest, hasOtherArchitectures }: ResolvedImage): ImageFacts {
  const config = tableIn(file['config']);
  const ports = Object.keys(tableIn(config['ExposedPorts']))
    .filter((port) => !/\/(udp|sctp)$/.test(port))
    .map((port) => Number(port.split('/', 1)[0]))
    .filter((port) => Number.isInteger(port) && port > 0 && port < 65536)
    .toSorted((a, b) => a - b)
    .slice(0, mostPorts);
  const architecture = cutText(textIn(file['architecture']), 63);
  const facts = {
    digest: rootDigest,
    user: cutText(textIn(config['User']), 255),
    ports,
    buildMetadata: textIn(tableIn(config['Labels'])[buildMetadataLabel]),
    ...(hasOtherArchitectures || architecture === '' ? {} : { architecture }),
  };
  // A piece of a text keeps the whole text in memory; a copy does not.
  return structuredClone(facts);
}

/**
 * Why an image with this user cannot run; undefined when it can. Pods run under PodSecurity `restricted`, and the kubelet can compare only a
 * numeric user with root. The user of kf's own pods is theirs, because the kernel limits what all pods of one user have on a node.
 */
export function userProblem(image: string, user: string): string | undefined {
  const name = user.split(':')[0] ?? '';
  if (name === '' || name === 'root' || /^0+$/.test(name))
    return `The image '${image}' runs as root, which is not allowed here. Build it with another user, e.g. a line 'USER 1000' in its Dockerfile.`;
  if (!/^\d+$/.test(name))
    return `The image '${image}' runs as the user '${name}', and a name cannot be checked to be other than root. Give the user as a number, e.g. 'USER 1000'.`;
  if (Number(name) === ownUserId)
    return `The image '${image}' runs as the user ${ownUserId}, which only kf's own pods use. Build it with another user, e.g. a line 'USER 1000' in its Dockerfile.`;
  return undefined;
}

/** The image by digest. Its name stays as it was typed, without registry and folders that docker would add. */
export function pinned(image: string, digest: string): string {
  const beforeDigest = image.split('@')[0] ?? image;
  const colon = beforeDigest.lastIndexOf(':');
  const name = colon > beforeDigest.lastIndexOf('/') ? beforeDigest.slice(0, colon) : beforeDigest;
  return `${name}@${digest}`;
}

/**
 * The reference by which a droplet names an image that could not be read. A single word such as `cafe` is completed: a node could take it for the
 * first characters of the ID of an image that it has.
 */
export function unreadReference(image: string): string {
  return image.includes('/') ? image : formatReference(parseReference(image));
}

export interface ReadFailure {
  kind: 'refused' | 'unreachable';
  message: string;
}

/** Which credential was refused, and how to give one, or another one. */
function adviceOn({ answer }: RegistryError, hasSecret: boolean): string {
  if (answer.status !== 401 && answer.status !== 403) return '';
  const note = credentialNote(answer);
  const advice = adviceFor(answer.credential, hasSecret);
  return note === undefined ? advice : ` ${note}${advice}`;
}

function adviceFor(use: CredentialUse | undefined, hasSecret: boolean): string {
  const isOpen = use === undefined || ('none' in use && use.isUnasked === true);
  const hasCredential = isOpen ? hasSecret : 'sent' in use;
  if (!hasCredential) return ' If the registry asks for a user, push with --docker-username USER and set CF_DOCKER_PASSWORD.';
  if (use !== undefined && 'sent' in use && use.hasToken === true) return ' Check the name of the image and the user (--docker-username).';
  return ' Check the user (--docker-username) and the password (CF_DOCKER_PASSWORD).';
}

/**
 * A failure is `refused` when it shall end the build. It is `unreachable` without a final answer: the kubelet may reach a registry that the controller cannot.
 * @param hasSecret a Secret of the package may have a credential; the error may know which
 */
export const classifyReadError = (image: string, error: unknown, hasSecret = false): ReadFailure =>
  classify(image, error, error instanceof RegistryError ? adviceOn(error, hasSecret) : '');

/** The same of an image that kf has built: no user can give another credential for it. */
export const classifyDropletError = (image: string, error: unknown): ReadFailure => classify(image, error, '');

function classify(image: string, error: unknown, advice: string): ReadFailure {
  const message = messageOf(error).replace(/\s+/g, ' ').replace(/ \./g, '.').trim();
  if (error instanceof RegistryError)
    return error.temporary()
      ? { kind: 'unreachable', message }
      : { kind: 'refused', message: `The image '${image}' cannot be read: ${message}${advice}` };
  // kf's own judgement of an answer: no such image, no image for this architecture, an invalid document.
  const isJudged = error instanceof KfError && error.cause === undefined && ['not-found', 'usage', 'upload'].includes(error.code);
  return { kind: isJudged ? 'refused' : 'unreachable', message };
}

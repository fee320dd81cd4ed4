// A build of a ready image: which exact image the tag means, and whether it can run here.

import { KfError, messageOf } from '../../lib/errors.ts';
import { challengeAuthenticator } from '../../lib/oci/auth.ts';
import { credentialsFromConfig } from '../../lib/oci/credentials.ts';
import type { RegistryCredentialSource } from '../../lib/oci/credentials.ts';
import { RegistryError } from '../../lib/oci/errors.ts';
import { directConnection } from '../../lib/oci/http.ts';
import { formatReference, parseReference } from '../../lib/oci/reference.ts';
import { RegistryClient } from '../../lib/oci/registry.ts';
import { cutText } from '../../lib/api/text.ts';
import { tableIn, textIn } from './untrusted.ts';
import type { UntrustedTable } from './untrusted.ts';

const buildMetadataLabel = 'io.buildpacks.build.metadata';

/** What of an image decides how it runs. */
export interface ReadImage {
  /** Of what the tag points at: an index where there is one. */
  digest: string;
  user: string;
  ports: number[];
  /** Left out when the image exists for several. */
  architecture?: string;
  /** Text of label `io.buildpacks.build.metadata`; empty when there is none. */
  buildMetadata: string;
}

export interface ReadOptions {
  /** Texts of docker configs, the first that knows the registry counts. */
  dockerConfigs: string[];
  insecureRegistries: string[];
  /** Which of several architectures is looked at, as in GOARCH. */
  architecture: string;
  signal: AbortSignal;
}

function credentials(configs: readonly string[]): RegistryCredentialSource {
  const sources = configs.map((text) => credentialsFromConfig(text, 'the pull secret'));
  return async (registry) => {
    for (const source of sources) {
      const found = await source(registry);
      if (found !== undefined) return found;
    }
    return undefined;
  };
}

/** Asks the image's registry. Throws KfError `not-found` when there is no such image, RegistryError for a refusal, else the connection's failure. */
export async function readImage(image: string, options: ReadOptions): Promise<ReadImage> {
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
    const isIndex = found.rootDigest !== found.digest;
    return factsOf({ ...config }, found.rootDigest, isIndex);
  } finally {
    connection.close();
  }
}

/** An image may name more; the lowest count. */
const mostPorts = 64;

/** The config is what somebody's registry sent: each part of it may be of any type. */
function factsOf(file: UntrustedTable, digest: string, isIndex: boolean): ReadImage {
  const config = tableIn(file['config']);
  const ports = Object.keys(tableIn(config['ExposedPorts']))
    .filter((port) => !/\/(udp|sctp)$/.test(port))
    .map((port) => Number(port.split('/', 1)[0]))
    .filter((port) => Number.isInteger(port) && port > 0 && port < 65536)
    .toSorted((a, b) => a - b)
    .slice(0, mostPorts);
  const architecture = cutText(textIn(file['architecture']), 63);
  return {
    digest,
    user: cutText(textIn(config['User']), 255),
    ports,
    buildMetadata: textIn(tableIn(config['Labels'])[buildMetadataLabel]),
    ...(isIndex || architecture === '' ? {} : { architecture }),
  };
}

/** Why an image with this user cannot run, or undefined. Pods run under PodSecurity `restricted`, and the kubelet can check numbers only. */
export function userProblem(image: string, user: string): string | undefined {
  const name = user.split(':')[0] ?? '';
  if (name === '' || name === 'root' || /^0+$/.test(name))
    return `The image '${image}' runs as root, which is not allowed here. Build it with another user, e.g. a line 'USER 1000' in its Dockerfile.`;
  if (!/^\d+$/.test(name))
    return `The image '${image}' runs as the user '${name}', and a name cannot be checked to be other than root. Give the user as a number, e.g. 'USER 1000'.`;
  return undefined;
}

/** The image by digest, in the words of whoever typed it. */
export function pinned(image: string, digest: string): string {
  const beforeDigest = image.split('@')[0] ?? image;
  const colon = beforeDigest.lastIndexOf(':');
  const name = colon > beforeDigest.lastIndexOf('/') ? beforeDigest.slice(0, colon) : beforeDigest;
  return `${name}@${digest}`;
}

/** The image as a droplet names it when nobody read it: a lone word such as `cafe` could be the beginning of the ID of an image that a node has. */
export function unread(image: string): string {
  return image.includes('/') ? image : formatReference(parseReference(image));
}

export type ReadFailure = { kind: 'refused'; message: string } | { kind: 'unreachable'; message: string };

/** A registry's answer ends the build; no answer does not: the kubelet may reach what the controller cannot. */
export function classifyReadError(image: string, error: unknown): ReadFailure {
  const message = messageOf(error).replace(/\s+/g, ' ').replace(/ \./g, '.').trim();
  if (error instanceof RegistryError)
    return error.temporary()
      ? { kind: 'unreachable', message }
      : { kind: 'refused', message: `The image '${image}' cannot be read: ${message}` };
  // Our own words about what came: no such image, no image for this architecture, a document that is none.
  const isJudged = error instanceof KfError && error.cause === undefined && ['not-found', 'usage', 'upload'].includes(error.code);
  return { kind: isJudged ? 'refused' : 'unreachable', message };
}

// Decides which images of the installation's own registry a space may use: those below its own name, however the reference is written.

import type { KfInfo } from '../../lib/api/kf-info.ts';
import { isInClusterRegistry } from '../../lib/api/repositories.ts';
import { canonicalRegistry, parseReference } from '../../lib/oci/reference.ts';
import type { Reference } from '../../lib/oci/reference.ts';

type Registry = KfInfo['registry'];

interface Place {
  /** Normalized as by a URL parser: lower case, addresses in their usual form. */
  host: string;
  port: string;
}

function placeOf(registry: string): Place {
  const [, name = '', port = ''] = /^(.*?)(?::(\d+))?$/.exec(registry) ?? [];
  const host = URL.canParse(`http://${name}`) ? new URL(`http://${name}`).hostname : name.toLowerCase();
  return { host: host.replace(/\.$/, ''), port: ['80', '443'].includes(port) ? '' : port };
}

const isAddress = (host: string): boolean => host.startsWith('[') || /^\d+(\.\d+){3}$/.test(host);
const isLocal = (host: string): boolean => host === 'localhost' || host.endsWith('.localhost');

/**
 * True for every name of the gate's ports: the pull port at any address of a node, and both Services under each of their names in the cluster's
 * DNS.
 */
function isOwnGate(registry: Registry, { host, port }: Place): boolean {
  const pull = placeOf(registry.pullPrefix.split('/', 1)[0] ?? '');
  if (port === pull.port && (host === pull.host || isLocal(host) || isAddress(host))) return true;
  const [service = '', namespace, ...rest] = host.split('.');
  if (service !== registry.service && service !== `${registry.service}-pull`) return false;
  return namespace === undefined || (namespace === registry.namespace && (rest.length === 0 || rest[0] === 'svc'));
}

/** The path below the prefix of kf's images; undefined for a reference to another place. */
function pathBelow(registry: Registry, reference: Reference): string | undefined {
  const place = placeOf(reference.registry);
  if (isInClusterRegistry(registry)) return isOwnGate(registry, place) ? reference.repository : undefined;
  const [host = '', ...folders] = registry.pullPrefix.split('/');
  const prefix = folders.join('/');
  const own = [host, registry.pushHost].map((name) => placeOf(canonicalRegistry(name)));
  if (!own.some((known) => known.host === place.host && known.port === place.port)) return undefined;
  return reference.repository.startsWith(prefix) ? reference.repository.slice(prefix.length) : undefined;
}

/**
 * Why a space may not use an image, or undefined. A node may have cached images of all spaces, and not every kubelet checks again who may use
 * them. Text that is not a reference is not checked here.
 */
export function foreignImageProblem(registry: Registry, space: string, image: string): string | undefined {
  // A container runtime reads such text as the ID of a cached image, or as the beginning of one, whoever pulled that image.
  if (/^(sha256|sha384|sha512)[:@]/i.test(image.trim()) || /^[a-z0-9]+:[0-9a-f]{32,}$/i.test(image.trim()))
    return `'${image}' names an image by its ID. Name it by its registry and repository.`;
  let reference: Reference;
  try {
    reference = parseReference(image);
  } catch {
    return undefined;
  }
  const path = pathBelow(registry, reference);
  if (path === undefined || path.startsWith(`${space}/`)) return undefined;
  return `The image '${image}' lies in the registry of this installation, but not among the images of this space ('${space}/…'). Push its source here, or name it in another registry.`;
}

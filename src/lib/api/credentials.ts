// The credentials of a user-provided service instance: a JSON object in a Secret that kf wrote, or the keys of a Secret that something else maintains.

import type { Secret } from './core.ts';
import { annotations, group, labels } from './group.ts';
import type { Stored } from './object.ts';
import type { CFServiceInstance } from './types.generated.ts';

/** What an app gets: in VCAP_SERVICES, and as files. */
export interface Credentials {
  values: Record<string, unknown>;
  /** Base64, by the name of the file. */
  files: Record<string, string>;
}

/** The name of the Secret of a database operator or a secret store that the instance follows. */
export function followedSecret(instance: CFServiceInstance): string | undefined {
  return instance.metadata.annotations?.[annotations.fromSecret] === 'true' ? instance.spec.secretName : undefined;
}

/** @returns a sentence without its end if the Secret has no usable credentials */
export function readCredentials(instance: Stored<CFServiceInstance>, secret: Stored<Secret>): Credentials | string {
  if (followedSecret(instance) === undefined) return ownCredentials(secret);
  return whyNotFollowed(secret) ?? keysOf(secret);
}

function ownCredentials(secret: Stored<Secret>): Credentials | string {
  const values = jsonObject(secret.data?.['credentials'] ?? '');
  if (values === undefined) return `The Secret '${secret.metadata.name}' holds no JSON object under the key 'credentials'`;
  const texts = Object.entries(values).map(([name, value]): [string, string] => [
    name,
    typeof value === 'string' ? value : JSON.stringify(value),
  ]);
  return { values, files: Object.fromEntries(texts.map(([name, text]) => [name, Buffer.from(text).toString('base64')])) };
}

function jsonObject(data: string): Record<string, unknown> | undefined {
  try {
    const parsed: unknown = JSON.parse(Buffer.from(data, 'base64').toString('utf8'));
    return typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed) ? (parsed as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

/** One credential per key, as operators and https://servicebinding.io write them. */
function keysOf({ type = '', data = {} }: Stored<Secret>): Credentials {
  const declared = type.startsWith(bindingTypes) && data['type'] === undefined ? { type: type.slice(bindingTypes.length) } : {};
  const values = Object.fromEntries(Object.entries(data).map(([key, value]) => [key, textOf(value)]));
  return { values: { ...values, ...declared }, files: data };
}

const bindingTypes = 'servicebinding.io/';

/** What is no text (a key store, for example) stays in base64. */
function textOf(value: string): string {
  const bytes = Buffer.from(value, 'base64');
  const text = bytes.toString('utf8');
  return Buffer.from(text).equals(bytes) ? text : value;
}

/** Types of Secrets that Kubernetes and its tools keep for themselves. */
const reservedTypes = /^(?:kubernetes\.io\/(?:service-account-token|dockercfg|dockerconfigjson)|bootstrap\.kubernetes\.io\/|helm\.sh\/)/;

/**
 * Why a Secret cannot be the credentials of a service instance: kf's own Secrets, which apps must not get, those of Kubernetes, and empty ones.
 * @returns a sentence without its end
 */
export function whyNotFollowed({ metadata, type = '', data = {} }: Stored<Secret>): string | undefined {
  const { name } = metadata;
  const isKfs =
    metadata.labels?.[labels.managedBy] === 'kf' ||
    (metadata.ownerReferences ?? []).some(({ apiVersion }) => apiVersion.startsWith(`${group}/`));
  if (isKfs) return `The Secret '${name}' is one of kf's own, and no service can have it`;
  if (reservedTypes.test(type)) return `The Secret '${name}' has the type '${type}', and no service can have it`;
  return Object.keys(data).length === 0 ? `The Secret '${name}' is empty` : undefined;
}

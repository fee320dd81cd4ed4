// What a traced request sends and gets, as indented JSON. What is secret in it is hidden, as cf hides it.

import { apiVersionOf, type ResourceType } from '../api/object.ts';
import { secretType } from '../api/core.ts';
import type { RawRequest } from '../kube/cluster.ts';

const hidden = '[PRIVATE DATA HIDDEN]';
/** Fields whose content is secret, in whatever object they are. */
const privateField = /pass(?:word|wd|phrase)|token$|credentials?$|secret$|private[-_]?key$|authorization$|last-applied-configuration$/i;
/** What the server keeps about earlier writers. It is longer than the object. */
const bookkeeping = 'managedFields';

type Fields = Record<string, unknown>;

const isFields = (value: unknown): value is Fields => typeof value === 'object' && value !== null && !Array.isArray(value);

/** `https://user:password@host` without the user and the password. */
const withoutUser = (text: string): string => text.replace(/\/\/[^/\s@]+@/g, `//${hidden}@`);

const hiddenValues = (value: unknown): unknown =>
  isFields(value) ? Object.fromEntries(Object.keys(value).map((key) => [key, hidden])) : hidden;

/** A variable of a container has its value in the object itself, unless it names a Secret. */
const hiddenVariable = (value: unknown): unknown =>
  isFields(value) && 'value' in value ? { ...value, value: hidden } : visible(value, false);

function visibleField(key: string, value: unknown, isSecret: boolean): unknown {
  if (value === null || typeof value === 'boolean' || typeof value === 'number') return value;
  if (isSecret && (key === 'data' || key === 'stringData')) return hiddenValues(value);
  if (key === 'env' && Array.isArray(value)) return value.map(hiddenVariable);
  return privateField.test(key) ? hidden : visible(value, isSecret);
}

function visible(value: unknown, isSecret: boolean): unknown {
  if (typeof value === 'string') return withoutUser(value);
  if (Array.isArray(value)) return value.map((one) => visible(one, isSecret));
  if (!isFields(value)) return value;
  const holdsSecrets = isSecret || value['kind'] === secretType.kind;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key, field]) => key !== bookkeeping && field !== undefined)
      .map(([key, field]) => [key, visibleField(key, field, holdsSecrets)]),
  );
}

const isSecretType = (type: ResourceType | undefined): boolean =>
  type !== undefined && type.plural === secretType.plural && apiVersionOf(type) === apiVersionOf(secretType);

/** Indented JSON; undefined for what is no object. */
export function visibleJson(value: unknown, type?: ResourceType): string | undefined {
  return typeof value === 'object' && value !== null ? JSON.stringify(visible(value, isSecretType(type)), null, 2) : undefined;
}

/** The JSON in a text; undefined for another text. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** What a call of this method sends; undefined when that is nothing, or no JSON. */
export function sentBy(method: string, [first, second, , fourth]: readonly unknown[]): unknown {
  if (method === 'create' || method === 'apply' || method === 'replace') return second;
  if (method === 'mergePatch') return fourth;
  if (method === 'canI') return first;
  if (method !== 'raw') return undefined;
  const { body } = first as RawRequest;
  return typeof body === 'string' ? parsed(body) : undefined;
}

/** What a call of this method got. The answer of a raw request is still on its way then. */
export const gotBy = (method: string, result: unknown): unknown =>
  method === 'raw' || method === 'openChannels' || method === 'logs' ? undefined : result;

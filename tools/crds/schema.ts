// A compact notation for CRD schemas: `object({'name!': string()})`, where a trailing `!` marks a required key.

export type Schema = Record<string, unknown>;
export type Properties = Record<string, Schema>;

export interface Rule {
  rule: string;
  message: string;
}

export interface Column {
  name: string;
  jsonPath: string;
  type?: 'string' | 'date' | 'boolean';
  priority?: number;
}

/** A kind of the group, from which the generator makes a CustomResourceDefinition. */
export interface Kind {
  kind: string;
  plural: string;
  description: string;
  columns: Column[];
  spec: Schema;
  /** If it is left out: no status subresource and no status. */
  status?: Schema;
  scale?: { spec: string; status: string; selector: string };
  /** CEL rules over the whole object. */
  rules?: Rule[];
}

export const object = (properties: Properties, extra: Schema = {}): Schema => {
  const required = Object.keys(properties)
    .filter((key) => key.endsWith('!'))
    .map((key) => key.slice(0, -1));
  return {
    type: 'object',
    ...(required.length > 0 ? { required } : {}),
    properties: Object.fromEntries(Object.entries(properties).map(([key, value]) => [key.replace(/!$/, ''), value])),
    ...extra,
  };
};
/**
 * Every value that can grow has a limit: the controller keeps all objects in memory, and one tenant must not fill it for everybody. A field that
 * needs more than the usual limit sets its own.
 */
const usual = { maxLength: 255, maxItems: 64, maxProperties: 64 } as const;

export const string = (extra: Schema = {}): Schema => ({ type: 'string', maxLength: usual.maxLength, ...extra });
export const oneOf = (...values: string[]): Schema => ({ type: 'string', enum: values });
export const boolean = (extra: Schema = {}): Schema => ({ type: 'boolean', ...extra });
export const int = (extra: Schema = {}): Schema => ({ type: 'integer', ...extra });
export const int32 = (extra: Schema = {}): Schema => ({ type: 'integer', format: 'int32', ...extra });
export const int64 = (extra: Schema = {}): Schema => ({ type: 'integer', format: 'int64', ...extra });
export const time = (extra: Schema = {}): Schema => ({ type: 'string', format: 'date-time', maxLength: 64, ...extra });
export const map = (values: Schema, extra: Schema = {}): Schema => ({
  type: 'object',
  additionalProperties: values,
  maxProperties: usual.maxProperties,
  ...extra,
});
export const freeForm = (): Schema => ({
  type: 'object',
  maxProperties: usual.maxProperties,
  'x-kubernetes-preserve-unknown-fields': true,
});
export const list = (items: Schema, extra: Schema = {}): Schema => ({ type: 'array', items, maxItems: usual.maxItems, ...extra });
export const setOf = (items: Schema, extra: Schema = {}): Schema => list(items, { 'x-kubernetes-list-type': 'set', ...extra });
export const listBy = (key: string, items: Schema, extra: Schema = {}): Schema =>
  list(items, { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': [key], ...extra });
export const rules = (...all: Rule[]): Schema => ({ 'x-kubernetes-validations': all });
export const immutable = (message: string): Schema => rules({ rule: 'self == oldSelf', message });

/** The key under which a schema contains the name of its TypeScript type; never part of a CRD. */
export const typeName = 'x-kf-type';
export const named = (name: string, schema: Schema): Schema => ({ [typeName]: name, ...schema });

export const createdAt: Column = { name: 'Created At', jsonPath: '.metadata.labels.korifi\\.cloudfoundry\\.org/created_at' };
export const updatedAt: Column = { name: 'Updated At', jsonPath: '.metadata.labels.korifi\\.cloudfoundry\\.org/updated_at' };
export const age: Column = { name: 'Age', jsonPath: '.metadata.creationTimestamp', type: 'date' };
export const column = (name: string, jsonPath: string): Column => ({ name, jsonPath });
export const readyColumn = column('Ready', ".status.conditions[?(@.type=='Ready')].status");

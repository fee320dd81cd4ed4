// Compares the schemas of kf's kinds: what objects of an earlier release could say, they can still say.

import { parse } from 'yaml';

/** A part of a structural schema (OpenAPI v3, as in a CustomResourceDefinition). */
interface Schema {
  type?: string;
  format?: string;
  properties?: Record<string, Schema>;
  items?: Schema;
  additionalProperties?: Schema | boolean;
  required?: string[];
  enum?: unknown[];
  nullable?: boolean;
  pattern?: string;
  'x-kubernetes-validations'?: { rule: string }[];
  'x-kubernetes-preserve-unknown-fields'?: boolean;
  'x-kubernetes-int-or-string'?: boolean;
  'x-kubernetes-list-type'?: string;
  'x-kubernetes-list-map-keys'?: string[];
  [limit: string]: unknown;
}

interface Definition {
  metadata: { name: string };
  spec: {
    scope: string;
    versions: { name: string; served: boolean; storage: boolean; schema: { openAPIV3Schema: Schema } }[];
  };
}

/** A difference that an object of the earlier release, or a program that reads one, could notice. */
export interface Difference {
  /** `cfroutes.korifi.cloudfoundry.org/v1alpha1 spec.destinations[].port` */
  at: string;
  /** `removed`: no reason excuses it. `narrowed`: fewer values are valid, which needs a reason. */
  kind: 'removed' | 'narrowed';
  /** What differs: `property`, `type`, `maxLength`, `enum` … */
  what: string;
  before: string;
  now: string;
}

type Found = (kind: Difference['kind'], what: string, before: unknown, now: unknown) => void;

const text = (value: unknown): string => (value === undefined ? 'none' : typeof value === 'string' ? value : JSON.stringify(value));
const most = ['maximum', 'maxLength', 'maxItems', 'maxProperties'] as const;
const least = ['minimum', 'minLength', 'minItems', 'minProperties'] as const;
/** Another value of these changes what stored objects mean. */
const fixed = ['type', 'format', 'x-kubernetes-int-or-string', 'x-kubernetes-list-type', 'x-kubernetes-list-map-keys'] as const;
/** Without them, the API server drops or refuses what it kept before. */
const allowing = ['nullable', 'x-kubernetes-preserve-unknown-fields'] as const;

/** What stored values mean, and which numbers limit them. */
function compareLimits(before: Schema, now: Schema, found: Found): void {
  for (const key of fixed) if (text(before[key]) !== text(now[key])) found('removed', key, before[key], now[key]);
  for (const key of allowing) if (before[key] === true && now[key] !== true) found('removed', key, true, now[key]);
  for (const key of most) {
    if (Number(now[key] ?? Infinity) < Number(before[key] ?? Infinity)) found('narrowed', key, before[key], now[key]);
  }
  for (const key of least) {
    if (Number(now[key] ?? -Infinity) > Number(before[key] ?? -Infinity)) found('narrowed', key, before[key], now[key]);
  }
}

/** Which values are valid beside their type and size. */
function compareRules(before: Schema, now: Schema, found: Found): void {
  if (now.pattern !== undefined && now.pattern !== before.pattern) found('narrowed', 'pattern', before.pattern, now.pattern);
  const lost = (before.enum ?? []).filter((value) => now.enum !== undefined && !now.enum.includes(value));
  if (lost.length > 0) found('removed', 'enum', before.enum, now.enum);
  if (before.enum === undefined && now.enum !== undefined) found('narrowed', 'enum', undefined, now.enum);
  for (const name of now.required ?? []) if (before.required?.includes(name) !== true) found('narrowed', 'required', undefined, name);
  const rules = new Set((before['x-kubernetes-validations'] ?? []).map(({ rule }) => rule));
  for (const { rule } of now['x-kubernetes-validations'] ?? []) if (!rules.has(rule)) found('narrowed', 'rule', undefined, rule);
}

const below = (schema: Schema): [string, Schema][] => [
  ...Object.entries(schema.properties ?? {}).map(([name, child]): [string, Schema] => [`.${name}`, child]),
  ...(schema.items === undefined ? [] : [['[]', schema.items] as [string, Schema]]),
  ...(typeof schema.additionalProperties === 'object' ? [['{}', schema.additionalProperties] as [string, Schema]] : []),
];

function compareSchemas(kind: string, path: string, before: Schema, now: Schema, differences: Difference[]): void {
  const found: Found = (degree, what, earlier, present) => {
    differences.push({ at: `${kind} ${path.replace(/^\./, '')}`.trim(), kind: degree, what, before: text(earlier), now: text(present) });
  };
  compareLimits(before, now, found);
  compareRules(before, now, found);
  if (before.additionalProperties === true && now.additionalProperties !== true) found('removed', 'additionalProperties', true, false);
  const present = new Map(below(now));
  for (const [step, child] of below(before)) {
    const same = present.get(step);
    if (same === undefined) found('removed', 'property', step.replace(/^\./, ''), undefined);
    else compareSchemas(kind, path + step, child, same, differences);
  }
}

function compareDefinitions(before: Definition, now: Definition | undefined): Difference[] {
  const { name } = before.metadata;
  if (now === undefined) return [{ at: name, kind: 'removed', what: 'kind', before: name, now: 'none' }];
  const differences: Difference[] = [];
  if (before.spec.scope !== now.spec.scope)
    differences.push({ at: name, kind: 'removed', what: 'scope', before: before.spec.scope, now: now.spec.scope });
  for (const version of before.spec.versions.filter(({ served }) => served)) {
    const same = now.spec.versions.find((candidate) => candidate.name === version.name && candidate.served);
    const at = `${name}/${version.name}`;
    if (same === undefined) differences.push({ at, kind: 'removed', what: 'version', before: version.name, now: 'none' });
    else compareSchemas(at, '', version.schema.openAPIV3Schema, same.schema.openAPIV3Schema, differences);
  }
  return differences;
}

/** What the present definitions (texts of YAML files) take away from the earlier ones. Additions are no differences. */
export function compareKinds(before: readonly string[], now: readonly string[]): Difference[] {
  const definitions = now.map((one) => parse(one) as Definition);
  return before.flatMap((one) => {
    const earlier = parse(one) as Definition;
    return compareDefinitions(
      earlier,
      definitions.find(({ metadata }) => metadata.name === earlier.metadata.name),
    );
  });
}

/** Why fewer values are valid than before. */
export interface Narrowing {
  /** Matches `AT WHAT`, as in `cfroutes.korifi.cloudfoundry.org/v1alpha1 spec.host maxLength`. */
  where: RegExp;
  /** The last release in which more was valid. */
  until: string;
  why: string;
}

/** The differences from a release that no reason excuses. What is removed, no reason excuses. */
export function unexcused(differences: readonly Difference[], reasons: readonly Narrowing[]): Difference[] {
  const isExcused = ({ at, what, kind }: Difference): boolean =>
    kind === 'narrowed' && reasons.some(({ where }) => where.test(`${at} ${what}`));
  return differences.filter((difference) => !isExcused(difference));
}

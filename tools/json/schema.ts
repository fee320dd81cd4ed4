// The JSON Schema of a type of TypeScript: of what `--json` prints.

import ts from 'typescript';
import { defined } from '../../src/lib/defined.ts';

export interface Schema {
  $ref?: string;
  type?: string;
  const?: unknown;
  enum?: unknown[];
  anyOf?: Schema[];
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: boolean | Schema;
  description?: string;
}

const primitives: [flag: ts.TypeFlags, schema: Schema][] = [
  [ts.TypeFlags.String | ts.TypeFlags.TemplateLiteral, { type: 'string' }],
  [ts.TypeFlags.Number, { type: 'number' }],
  [ts.TypeFlags.Boolean, { type: 'boolean' }],
  [ts.TypeFlags.Null, { type: 'null' }],
  [ts.TypeFlags.Any | ts.TypeFlags.Unknown, {}],
];

const isNothing = (type: ts.Type): boolean => (type.flags & (ts.TypeFlags.Undefined | ts.TypeFlags.Void | ts.TypeFlags.Never)) !== 0;

/** Writes the schemas of types; those with a name of their own go to `definitions` once. */
export class SchemaWriter {
  readonly definitions: Record<string, Schema> = {};
  readonly #named = new Map<string, ts.Type>();
  readonly #checker: ts.TypeChecker;

  constructor(checker: ts.TypeChecker) {
    this.#checker = checker;
  }

  /** @returns undefined for a type that has no value */
  schemaOf(type: ts.Type): Schema | undefined {
    if (isNothing(type)) return undefined;
    const simple = primitives.find(([flag]) => (type.flags & flag) !== 0);
    if (simple !== undefined) return simple[1];
    if (type.isLiteral()) return { const: type.value };
    if ((type.flags & ts.TypeFlags.BooleanLiteral) !== 0) return { const: this.#checker.typeToString(type) === 'true' };
    if (type.isUnion()) return this.#unionOf(type.types);
    return this.#isList(type) ? this.#listOf(type) : this.#referenceTo(type);
  }

  #unionOf(types: readonly ts.Type[]): Schema | undefined {
    const schemas = types.flatMap((one) => this.schemaOf(one) ?? []);
    const constants = schemas.filter((one) => 'const' in one).map((one) => one.const);
    const isBoolean = constants.includes(true) && constants.includes(false);
    const words = constants.filter((one) => typeof one !== 'boolean' || !isBoolean);
    const parts: Schema[] = [
      ...(words.length > 1 ? [{ enum: words }] : words.map((one) => ({ const: one }))),
      ...(isBoolean ? [{ type: 'boolean' }] : []),
      ...schemas.filter((one) => !('const' in one)),
    ];
    return parts.length > 1 ? { anyOf: parts } : parts[0];
  }

  #isList(type: ts.Type): boolean {
    return this.#checker.isArrayType(type) || this.#checker.isTupleType(type);
  }

  #listOf(type: ts.Type): Schema {
    const [item, ...others] = this.#checker.getTypeArguments(type as ts.TypeReference);
    const items = item === undefined ? undefined : others.length === 0 ? this.schemaOf(item) : this.#unionOf([item, ...others]);
    return { type: 'array', items: items ?? {} };
  }

  /** An exported interface is written once; a type that only one command has, where it is used. */
  #referenceTo(type: ts.Type): Schema {
    const symbol: ts.Symbol | undefined = type.aliasSymbol ?? type.getSymbol();
    if (symbol === undefined) return this.#objectOf(type);
    const isOwn = (symbol.flags & (ts.SymbolFlags.Interface | ts.SymbolFlags.TypeAlias)) !== 0 && type.aliasTypeArguments === undefined;
    const { name } = symbol;
    if (!isOwn || name === 'Result' || (this.#named.get(name) ?? type) !== type) return this.#objectOf(type);
    if (!this.#named.has(name)) {
      this.#named.set(name, type);
      this.definitions[name] = this.#objectOf(type);
    }
    return { $ref: `#/definitions/${name}` };
  }

  #objectOf(type: ts.Type): Schema {
    const others = this.#checker.getIndexInfoOfType(type, ts.IndexKind.String);
    const properties: Record<string, Schema> = {};
    const required: string[] = [];
    for (const symbol of this.#checker.getPropertiesOfType(type)) {
      const own = this.#checker.getTypeOfSymbol(symbol);
      const schema = this.schemaOf(own);
      if (schema === undefined) continue;
      properties[symbol.name] = { ...schema, ...this.#commentOf(symbol) };
      const mayLack = (symbol.flags & ts.SymbolFlags.Optional) !== 0 || (own.isUnion() && own.types.some(isNothing));
      if (!mayLack) required.push(symbol.name);
    }
    const rest = others === undefined ? undefined : this.schemaOf(others.type);
    return {
      type: 'object',
      properties,
      ...(required.length > 0 ? { required } : {}),
      ...defined({ additionalProperties: rest }),
    };
  }

  #commentOf(symbol: ts.Symbol): { description?: string } {
    const text = ts.displayPartsToString(symbol.getDocumentationComment(this.#checker)).replace(/\s+/g, ' ').trim();
    return text === '' ? {} : { description: text };
  }
}

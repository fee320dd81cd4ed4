// docs/json.md and docs/json-schema.json: what the commands print with --json.

import { resultsOf, type Results } from './results.ts';
import type { Schema } from './schema.ts';

const head = '<!-- Written by `node tools/generate.ts` from the types of src/commands: change it there. -->';

const introduction = `# \`--json\`

With \`--json\`, a command prints one JSON document on stdout: \`{status, result, warnings}\`, or \`{status, error, warnings}\` when it fails ([exit-codes.md](exit-codes.md)). \`status\` is the exit code and \`warnings\` a list of sentences. This page shows \`result\` of each command, in the notation of TypeScript; \`?\` marks what may be left out. [json-schema.json](json-schema.json) has the same for programs: \`properties.apps\` is the JSON Schema of the result of \`kf apps\`.

New versions of kf may add fields. A field that is there keeps its name and its type. Sizes are in bytes or MB, as named; times are RFC 3339.

\`kf logs --json\` prints a document for each line, and for each gap ([exit-codes.md](exit-codes.md)). The result of \`kf curl\` depends on the path: [curl.md](curl.md).`;

const identifier = /^[A-Za-z_]\w*$/;

/** A schema as a type of TypeScript. */
function notationOf(schema: Schema, indent: string): string {
  if (schema.$ref !== undefined) return schema.$ref.replace('#/definitions/', '');
  if ('const' in schema) return JSON.stringify(schema.const);
  if (schema.enum !== undefined) return schema.enum.map((one) => JSON.stringify(one)).join(' | ');
  if (schema.anyOf !== undefined) return schema.anyOf.map((one) => notationOf(one, indent)).join(' | ');
  if (schema.items !== undefined) {
    const item = notationOf(schema.items, indent);
    return item.includes(' | ') ? `(${item})[]` : `${item}[]`;
  }
  return schema.type === 'object' ? objectNotation(schema, indent) : (schema.type ?? 'unknown');
}

function objectNotation({ properties = {}, required = [], additionalProperties }: Schema, indent: string): string {
  const inner = `${indent}  `;
  const rows = Object.entries(properties).flatMap(([name, schema]) => {
    const key = identifier.test(name) ? name : JSON.stringify(name);
    const row = `${inner}${key}${required.includes(name) ? '' : '?'}: ${notationOf(schema, inner)};`;
    return schema.description === undefined ? [row] : [`${inner}// ${schema.description}`, row];
  });
  if (typeof additionalProperties === 'object') rows.push(`${inner}[name: string]: ${notationOf(additionalProperties, inner)};`);
  return rows.length === 0 ? '{}' : `{\n${rows.join('\n')}\n${indent}}`;
}

function pageOf({ results, definitions }: Results): string {
  const commands = Object.entries(results).map(([name, schema]) => `// kf ${name}\n${notationOf(schema, '')}`);
  const types = Object.entries(definitions)
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, schema]) => `type ${name} = ${notationOf(schema, '')};`);
  const block = (parts: string[]): string => ['```ts', parts.join('\n\n'), '```'].join('\n');
  return `${[head, introduction, '## Results', block(commands), '## Types', block(types)].join('\n\n')}\n`;
}

function schemaFileOf({ results, definitions }: Results): string {
  const schema = {
    $schema: 'http://json-schema.org/draft-07/schema#',
    $comment: 'Written by `node tools/generate.ts` from the types of src/commands.',
    type: 'object',
    properties: results,
    definitions,
  };
  return `${JSON.stringify(schema, null, 2)}\n`;
}

/** @param commands names of the files in src/commands */
export function jsonFiles(root: string, commands: readonly string[]): { file: string; text: string }[] {
  const found = resultsOf(root, commands.toSorted());
  return [
    { file: 'docs/json.md', text: pageOf(found) },
    { file: 'docs/json-schema.json', text: schemaFileOf(found) },
  ];
}

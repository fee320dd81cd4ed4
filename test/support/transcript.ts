// A session as a text: commands, and below each what it printed. It is run again, and what differs from run to run is replaced by words.

import { Ajv, type ValidateFunction } from 'ajv';
import { readFileSync } from 'node:fs';
import type { Pipeline } from './pipelines.ts';

/** No field may be there that the schema does not name. */
function strict(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(strict);
  if (typeof schema !== 'object' || schema === null) return schema;
  const parts = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, strict(value)]));
  return 'properties' in schema && !('additionalProperties' in schema) ? { ...parts, additionalProperties: false } : parts;
}

/** Compares results of `--json` with docs/json-schema.json. */
export class ResultSchemas {
  readonly #validate: ValidateFunction;

  constructor() {
    const schema: unknown = JSON.parse(readFileSync('docs/json-schema.json', 'utf8'));
    this.#validate = new Ajv({ allErrors: true, strict: false }).compile(strict(schema) as object);
  }

  /** What a document of a command has to do with its schema, as one line. */
  judge(command: string, document: string): string {
    const { result, error } = JSON.parse(document) as { result?: unknown; error?: { code: string } };
    if (error !== undefined) return `json: an error, ${error.code}`;
    if (this.#validate({ [command]: result })) return `json: a result of ${command}`;
    return `json: ${(this.#validate.errors ?? []).map(({ instancePath, message, params }) => `${instancePath} ${message} ${JSON.stringify(params)}`).join('; ')}`;
  }
}

const fixed: readonly (readonly [pattern: RegExp, word: string])[] = [
  [/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g, 'GUID'],
  [/\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d{4})/g, 'TIME'],
  [/\bv\d+\.\d+\.\d+\b/g, 'VERSION'],
  // The gateway of a second cluster has another port outside.
  [/(?<=\.localhost):\d+\b/g, ''],
  [/\/\S*\/kf-pipeline-\w+\/work\b/g, '/FOLDER'],
  [/\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? \d\d \w{3} (?:\d{4} )?\d\d:\d\d:\d\d \w+(?: \d{4})?/g, 'DATE'],
];
/** The table of instances has columns as wide as the usage that was measured, if it was measured yet. */
function maskedInstance(line: string): string {
  if (!/^(?: {5}state {2}|#\d+ )/.test(line)) return line;
  const usage = /(?:\d+\.\d%|-) +\S+ of (\S+) +\S+ of /;
  return line.replace(usage, 'CPU  SIZE of $1  SIZE of ').replace(/ {2,}/g, '  ').trimEnd();
}

/** A line without what differs from run to run. @param names what stands for what, as the name of a user for USER */
export function masked(line: string, names: Readonly<Record<string, string>>): string {
  const named = Object.entries(names).reduce((now, [value, word]) => now.replaceAll(value, word), line);
  return maskedInstance(fixed.reduce((now, [pattern, word]) => now.replace(pattern, word), named));
}

export interface Places {
  /** The pipelines of the users that lines with `@` name. */
  users: Readonly<Record<string, Pipeline>>;
  names: Readonly<Record<string, string>>;
  schemas: ResultSchemas;
}

/** What a command says while it waits depends on how long it waits. */
const progress = /^(?:Waiting|Staging|Writing|Task \S+ is)\b/;

const commandOf = (line: string): string => /^cf (?:-v )?([\w-]+)/.exec(line)?.[1] ?? '';

async function answered(line: string, pipeline: Pipeline, { names, schemas }: Places): Promise<string[]> {
  const { code, stdout, stderr } = await pipeline.shell(line);
  const isDocument = /^cf .*--json$/.test(line) && stdout.startsWith('{');
  const out = isDocument ? schemas.judge(commandOf(line), stdout) : stdout;
  const rows = out.replace(/\n$/, '').split('\n');
  const errors =
    code === 0 || stderr.trim() === ''
      ? []
      : stderr
          .trimEnd()
          .split('\n')
          .filter((row) => !progress.test(row));
  return [...(out === '' ? [] : rows), ...(code === 0 ? [] : [...errors.map((row) => `! ${row}`), `[${code}]`])].map((row) =>
    masked(row, names),
  );
}

/** Runs the commands of a transcript and returns it as it is now. */
export async function replay(transcript: string, places: Places): Promise<string> {
  const lines: string[] = [];
  let pipeline: Pipeline | undefined;
  for (const line of transcript.split('\n')) {
    if (line.startsWith('@ ')) pipeline = places.users[line.slice(2)];
    if (/^(?:@|##?) /.test(line)) lines.push(...(line.startsWith('## ') ? ['', line] : [line]));
    if (!line.startsWith('$ ')) continue;
    if (pipeline === undefined) throw new Error(`Nobody runs: ${line}`);
    lines.push(line, ...(await answered(line.slice(2), pipeline, places)));
  }
  return `${lines.join('\n')}\n`;
}

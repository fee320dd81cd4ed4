// What the registry lane reports about the droplet, and the same facts from an image's labels.

import { gunzipSync } from 'node:zlib';
import type { Droplet } from '../../lib/api/types.generated.ts';
import { parseToml } from './build-toml.ts';
import type { TomlTable } from './build-toml.ts';

/** What of a droplet the lifecycle tells; places and names are the caller's. */
export interface DropletFacts {
  processTypes: NonNullable<Droplet['processTypes']>;
  buildpacks: NonNullable<Droplet['buildpacks']>;
}

export interface LaneReport {
  digest: string;
  /** Left out when the message had no room for it. */
  facts?: DropletFacts;
}

interface Process {
  type: string;
  command: string[];
  args: string[];
  direct: boolean;
}

/** Largest metadata that is unpacked: a message of 4 KiB that grows beyond this is no report. */
const longestMetadata = 4 * 1024 * 1024;

// The launcher runs what it is given through a shell; words are kept whole by quoting those that need it.
function quoted(word: string, direct: boolean): string {
  if (/^[A-Za-z0-9_@%+=:,./-]+$/.test(word)) return word;
  // The arguments of an indirect process are shell text themselves: variables in them count.
  return direct ? `'${word.replaceAll("'", `'\\''`)}'` : `"${word.replace(/["\\`]/g, '\\$&')}"`;
}

/** What `bash -c '<script>'` runs: the launcher gives every command to a shell, so the script alone means the same. */
function shellScript(all: string[]): string | undefined {
  const [program = '', flag, script, ...more] = all;
  return /^(\/(usr\/)?bin\/)?(ba)?sh$/.test(program) && flag === '-c' && more.length === 0 ? script : undefined;
}

/** The start command of a process type as one line for a shell. */
export function commandLine({ command, args, direct }: Pick<Process, 'command' | 'args' | 'direct'>): string {
  const script = shellScript([...command, ...args]);
  if (script !== undefined) return script;
  const [program = '', ...words] = command;
  const first = direct ? quoted(program, true) : program;
  return [first, ...[...words, ...args].map((word) => quoted(word, direct))].join(' ');
}

function processTypes(processes: Process[]): DropletFacts['processTypes'] {
  return processes.filter(({ type }) => type !== '').map((process) => ({ type: process.type, command: commandLine(process) }));
}

const words = (value: unknown): string[] =>
  Array.isArray(value)
    ? value.filter((word): word is string => typeof word === 'string')
    : typeof value === 'string' && value !== ''
      ? [value]
      : [];

function factsFromTables(tables: TomlTable[]): DropletFacts {
  const named = (name: string) => tables.filter((table) => table.name === name).map((table) => table.values);
  const processes = named('processes').map(({ type, command, args, direct }) => ({
    type: String(type ?? ''),
    command: words(command),
    args: words(args),
    direct: direct === true,
  }));
  const buildpacks = named('buildpacks').map(({ id, version }) => ({ name: String(id ?? ''), version: String(version ?? '') }));
  return { processTypes: processTypes(processes), buildpacks };
}

/** The facts of a metadata.toml (/layers/config/metadata.toml). */
export function factsFromMetadata(toml: string): DropletFacts {
  return factsFromTables(parseToml(toml));
}

/** The facts of image label `io.buildpacks.build.metadata`. */
export function factsFromLabel(json: string): DropletFacts {
  const label = JSON.parse(json) as {
    processes?: { type?: string; command?: string | string[]; args?: string[]; direct?: boolean }[];
    buildpacks?: { id?: string; version?: string }[];
  };
  const processes = (label.processes ?? []).map(({ type, command, args, direct }) => ({
    type: type ?? '',
    command: words(command),
    args: words(args),
    direct: direct === true,
  }));
  const buildpacks = (label.buildpacks ?? []).map(({ id, version }) => ({ name: id ?? '', version: version ?? '' }));
  return { processTypes: processTypes(processes), buildpacks };
}

/** The registry lane's termination message; undefined when it is none. */
export function parseLaneReport(message: string): LaneReport | undefined {
  const digest = /^digest=(sha256:[0-9a-f]{64})$/m.exec(message)?.[1];
  if (digest === undefined) return undefined;
  const packed = /^metadata=([A-Za-z0-9+/=]+)$/m.exec(message)?.[1];
  if (packed === undefined) return { digest };
  try {
    const toml = gunzipSync(Buffer.from(packed, 'base64'), { maxOutputLength: longestMetadata }).toString('utf8');
    return { digest, facts: factsFromMetadata(toml) };
  } catch {
    return { digest };
  }
}

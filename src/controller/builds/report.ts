// Reads the report of the registry container about the droplet, and the same facts from the labels of an image.

import type { Droplet } from '../../lib/api/types.generated.ts';
import { cutText } from '../../lib/api/text.ts';
import { isDigest } from '../../lib/oci/descriptor.ts';
import { readJson, readToml, tablesIn, textIn, textsIn, unpackText, UntrustedError } from './untrusted.ts';
import type { UntrustedTable } from './untrusted.ts';

/** The lifecycle's facts about a droplet; the caller adds references and names. */
export interface DropletFacts {
  processTypes: NonNullable<Droplet['processTypes']>;
  buildpacks: NonNullable<Droplet['buildpacks']>;
}

export interface ExportReport {
  digest: string;
  /** Left out when the message had no space for them, or when they are invalid. */
  facts?: DropletFacts;
}

interface Process {
  type: string;
  command: string[];
  args: string[];
  direct: boolean;
}

// Quotes a word if the shell, through which the launcher runs commands, would split or change it.
function quoted(word: string, direct: boolean): string {
  if (/^[A-Za-z0-9_@%+=:,./-]+$/.test(word)) return word;
  // The arguments of an indirect process are shell text: variables in them are expanded.
  return direct ? `'${word.replaceAll("'", `'\\''`)}'` : `"${word.replace(/["\\`]/g, '\\$&')}"`;
}

/** The script of `bash -c '<script>'`. The launcher gives every command to a shell, so the script alone means the same. */
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

/** Limits for one droplet. A status holds these facts, twice per build, for each build that is kept. */
export const dropletLimits = {
  processTypes: 64,
  typeCharacters: 63,
  longestCommand: 8192,
  commandCharacters: 16 * 1024,
  buildpacks: 64,
  nameCharacters: 255,
} as const;

function processesIn(value: unknown): Process[] {
  return tablesIn(value).map(({ type, command, args, direct }) => ({
    type: textIn(type),
    command: textsIn(command),
    args: textsIn(args),
    direct: direct === true,
  }));
}

function processTypesIn(value: unknown): DropletFacts['processTypes'] {
  const processes = processesIn(value).filter(({ type }) => type !== '');
  const { processTypes: most, typeCharacters, longestCommand, commandCharacters } = dropletLimits;
  if (processes.length > most) throw new UntrustedError(`The build declares ${processes.length} process types; at most ${most} are taken.`);
  const long = processes.find(({ type }) => type.length > typeCharacters);
  if (long !== undefined)
    throw new UntrustedError(`The build declares a process type of ${long.type.length} characters; at most ${typeCharacters} are taken.`);
  // If a type occurs twice, the last one counts, as in the lifecycle.
  const types = [...new Map(processes.map((process) => [process.type, commandLine(process)]))];
  const characters = types.reduce((sum, [, command]) => sum + command.length, 0);
  const longest = Math.max(0, ...types.map(([, command]) => command.length));
  if (longest > longestCommand)
    throw new UntrustedError(`The build declares a start command of ${longest} characters; at most ${longestCommand} are taken.`);
  if (characters > commandCharacters)
    throw new UntrustedError(
      `The start commands of the build have ${characters} characters in all; at most ${commandCharacters} are taken.`,
    );
  return types.map(([type, command]) => ({ type, command }));
}

function buildpacksIn(value: unknown): DropletFacts['buildpacks'] {
  const cut = (text: unknown): string => cutText(textIn(text), dropletLimits.nameCharacters);
  return tablesIn(value)
    .slice(0, dropletLimits.buildpacks)
    .map(({ id, version }) => ({ name: cut(id), version: cut(version) }));
}

const factsIn = ({ processes, buildpacks }: UntrustedTable): DropletFacts => ({
  processTypes: processTypesIn(processes),
  buildpacks: buildpacksIn(buildpacks),
});

/** The facts of a metadata.toml (/layers/config/metadata.toml). Throws UntrustedError. */
export function factsFromMetadata(toml: string): DropletFacts {
  return factsIn(readToml(toml, "The build's metadata.toml"));
}

/** The facts of image label `io.buildpacks.build.metadata`. Throws UntrustedError. */
export function factsFromLabel(json: string): DropletFacts {
  return factsIn(readJson(json, "The droplet's label io.buildpacks.build.metadata"));
}

function lineOf(message: string, key: string): string | undefined {
  const line = message.split('\n').find((candidate) => candidate.startsWith(`${key}=`));
  return line?.slice(key.length + 1);
}

/**
 * Parses the registry container's termination message; undefined for any other text. Invalid facts are left out: the caller reads the image's
 * label instead.
 */
export function parseExportReport(message: string): ExportReport | undefined {
  const digest = lineOf(message, 'digest');
  if (digest === undefined || !isDigest(digest)) return undefined;
  const packed = lineOf(message, 'metadata') ?? '';
  if (packed === '') return { digest };
  try {
    return { digest, facts: factsFromMetadata(unpackText(packed, "The build's metadata.toml")) };
  } catch (error) {
    if (error instanceof UntrustedError) return { digest };
    throw error;
  }
}
